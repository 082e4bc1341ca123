"""The HTTP interface: what callers send becomes one use case, what it answers becomes one document."""
