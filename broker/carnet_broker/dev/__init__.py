"""`carnet dev`: a broker for one developer's machine. Loopback only, secrets random at each start, gone at exit."""

__all__: list[str] = []
