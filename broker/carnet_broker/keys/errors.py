"""The one error of the key directory."""

__all__ = ["KeysError"]


class KeysError(Exception):
    """The key directory cannot be used. The message is one sentence with the fix and never holds key material."""
