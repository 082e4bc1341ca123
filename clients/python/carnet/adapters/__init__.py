"""Adapters put a guard into a framework. Each is imported only when something of its framework is installed into."""

__all__: list[str] = []
