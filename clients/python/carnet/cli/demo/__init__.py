"""`carnet demo`: the whole story against a real broker process and two real guarded tool servers, without a model."""

__all__: list[str] = []
