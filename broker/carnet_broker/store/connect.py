"""Connections with the settings that durability and integrity need; each is per connection, so every one gets them."""

import os
import sqlite3
import threading
from pathlib import Path
from urllib.parse import quote

from carnet_broker.store.base import ConfigError, Unavailable
from carnet_broker.store.faults import unavailable

__all__ = ["BUSY_MILLISECONDS", "Readers", "connect"]

BUSY_MILLISECONDS = 2000
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


class Readers:
    """One read connection per thread, so that a read is a function call and never waits for the writer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._closed = False
        self._pid = os.getpid()

    def connection(self) -> sqlite3.Connection:
        conn: sqlite3.Connection | None = getattr(self._local, "conn", None)
        if conn is not None and os.getpid() == self._pid and not self._closed:
            return conn
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        if os.getpid() != self._pid:
            raise Unavailable("The store was opened before a fork; open it in the process that uses it.")
        with self._lock:
            if self._closed:
                raise Unavailable("The store is closed.")
            for thread, conn in [entry for entry in self._open if not entry[0].is_alive()]:
                conn.close()
                self._open.remove((thread, conn))
            try:
                conn = connect(self._path, read=True)
            except sqlite3.Error as error:
                raise unavailable(error) from error
            self._open.append((threading.current_thread(), conn))
        self._local.conn = conn
        return conn

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for _, conn in self._open:
                conn.close()
            self._open.clear()
