"""A store by its address."""

from collections.abc import Callable
from pathlib import Path

from carnet.errors import ConfigError
from carnet_broker.store.base import Store
from carnet_broker.store.clock import system
from carnet_broker.store.sqlite import SqliteStore

__all__ = ["open_store", "store_path"]

_SQLITE = "sqlite:///"


def open_store(url: str, clock: Callable[[], int] = system) -> Store:
    """`sqlite:///relative/path` or `sqlite:////absolute/path`. ConfigError for anything else."""
    return SqliteStore.open(store_path(url), clock=clock)


def store_path(url: str) -> Path:
    """The file that an address names. ConfigError for an address of no known store."""
    path = url.removeprefix(_SQLITE)
    if not url.startswith(_SQLITE) or not path or "?" in path or "#" in path:
        scheme = url.partition(":")[0]  # not the whole address: it may hold a password
        raise ConfigError(f"No store is known for this address ({scheme}:…); use sqlite:///path/to/carnet.db.")
    return Path(path)
