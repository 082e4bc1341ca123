"""The one error of configuration."""

__all__ = ["ConfigError"]


class ConfigError(ValueError):
    """A configuration that must not come into force: one sentence with the place (file:line:column) and the fix. The
    last good configuration stays."""
