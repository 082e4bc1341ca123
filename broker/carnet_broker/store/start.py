"""Opening the file: made safely, brought to this schema, looked at. Costs the same with any number of rows."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from carnet.errors import ConfigError
from carnet_broker.store.clock import HighWater
from carnet_broker.store.connect import connect
from carnet_broker.store.faults import unavailable
from carnet_broker.store.files import create, fsync_folder
from carnet_broker.store.migrate import migrate

__all__ = ["start"]


def start(path: Path, clock: Callable[[], int]) -> tuple[sqlite3.Connection, HighWater]:
    """The writing connection and the clock with the stored mark. ConfigError or Unavailable when it is no store."""
    create(path)
    try:
        conn = connect(path, read=False)
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from error
    try:
        migrate(conn, path, clock())
        for table in ("meta", "tenant"):  # small ones: a check of all tables would grow with the rows
            word = conn.execute(f"PRAGMA quick_check({table})").fetchone()[0]
            if word != "ok":
                raise ConfigError(f"The store {path} is damaged ({word}); restore it from a backup.")
        mark = conn.execute("SELECT high_water FROM meta").fetchone()[0]
        fsync_folder(path.parent)  # the names of the log files too
    except sqlite3.DatabaseError as error:
        conn.close()
        raise _refusal(path, error) from error
    except BaseException:
        conn.close()
        raise
    return conn, HighWater(clock, mark)


def _refusal(path: Path, error: sqlite3.DatabaseError) -> Exception:
    if error.sqlite_errorname in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
        return ConfigError(f"{path} is damaged or no store; restore it from a backup or name another file.")
    return unavailable(error)
