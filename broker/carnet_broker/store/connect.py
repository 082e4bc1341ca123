"""Connections with the settings that durability and integrity need; each is per connection, so every one gets them."""

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from carnet.errors import ConfigError
from carnet_broker.store.base import Unavailable
from carnet_broker.store.faults import unavailable

__all__ = ["BUSY_MILLISECONDS", "Readers", "connect"]

P = ParamSpec("P")
T = TypeVar("T")
BUSY_MILLISECONDS = 2000
_CLOSED = "The store is closed."
_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}",
    "PRAGMA synchronous = FULL",  # NORMAL may lose the last commits at a power failure
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",  # so that REPLACE meets the triggers against DELETE
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA journal_size_limit = 67108864",
)


def connect(path: Path, *, read: bool) -> sqlite3.Connection:
    """An autocommit connection to an existing file. ConfigError where the file system has no write-ahead log."""
    uri = f"file:{quote(str(path.absolute()))}?mode=rw"
    conn = sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        timeout=BUSY_MILLISECONDS / 1000,
    )
    try:
        for pragma in _PRAGMAS:
            conn.execute(pragma)
        word = conn.execute("PRAGMA journal_mode" if read else "PRAGMA journal_mode = WAL").fetchone()[0]
        if word != "wal":
            raise ConfigError(
                f"The file system of {path} has no write-ahead log ({word}); put the store on a local disk."
            )
        if read:
            conn.execute("PRAGMA query_only = ON")
    except BaseException:
        conn.close()
        raise
    return conn


class _Reader:
    """One thread's connection. using: held during each read, so that nobody closes the connection under it; only the
    thread itself and who closes ever ask for it."""

    __slots__ = ("conn", "thread", "using")

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn: sqlite3.Connection | None = conn
        self.thread = threading.current_thread()
        self.using = threading.Lock()

    def close(self) -> None:
        with self.using:
            if self.conn is not None:
                self.conn.close()
            self.conn = None


class Readers:
    """One read connection per thread, so that a read is a function call and never waits for the writer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: list[_Reader] = []
        self._closed = False
        self._pid = os.getpid()

    def read(self, read: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function reads from this thread's connection; it reads by this alone. Unavailable once closed."""
        reader = self._reader()
        with reader.using:
            if reader.conn is None:
                raise Unavailable(_CLOSED)
            return read(reader.conn, *args, **kwargs)

    def close(self) -> None:
        """Close every connection; each one as soon as the read that uses it is over. A later read is Unavailable."""
        with self._lock:
            self._closed = True
            for reader in self._open:
                reader.close()
            self._open.clear()

    def _reader(self) -> _Reader:
        reader: _Reader | None = getattr(self._local, "reader", None)
        if reader is not None and os.getpid() == self._pid:
            return reader
        return self._connect()

    def _connect(self) -> _Reader:
        if os.getpid() != self._pid:
            raise Unavailable("The store was opened before a fork; open it in the process that uses it.")
        with self._lock:
            if self._closed:
                raise Unavailable(_CLOSED)
            for old in [old for old in self._open if not old.thread.is_alive()]:
                old.close()
                self._open.remove(old)
            try:
                reader = _Reader(connect(self._path, read=True))
            except sqlite3.Error as error:
                raise unavailable(error) from error
            self._open.append(reader)
        self._local.reader = reader
        return reader
