"""The broker of Carnet. Needs the extra `carnet[server]`."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("carnet")
