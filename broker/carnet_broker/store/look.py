"""A look at a store from outside: nothing is made, brought to another schema, held or written."""

import fcntl
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from carnet.errors import ConfigError
from carnet_broker.store.base import Health, Unavailable
from carnet_broker.store.clock import BACKWARD, HighWater, system
from carnet_broker.store.files import beside
from carnet_broker.store.limits import Limits
from carnet_broker.store.migrate import APPLICATION_ID, SCHEMA

__all__ = ["Missing", "look"]


class Missing(ConfigError):
    """There is no file at the store's path."""


def look(path: Path, clock: Callable[[], int] = system) -> Health:
    """What an operator must know of a store that no broker holds. Raises Missing, ConfigError where the file is no
    store of this version, and Unavailable where a broker holds it or it cannot be read."""
    if not path.exists():
        raise Missing(f"the store {path} does not exist")
    _refuse_held(path)
    try:
        with closing(_connect(path)) as conn:
            version, epoch, mark = _read(conn, path)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorname in ("SQLITE_NOTADB", "SQLITE_CORRUPT"):
            raise ConfigError(f"{path} is damaged or no store; restore it from a backup or name another file") from None
        raise Unavailable(f"The store {path} cannot be read ({error}); check its disk and rights.") from None
    time = HighWater(clock, mark)
    return Health(now=time.now(), epoch=epoch, problems=_problems(path, time), facts=_facts(path, version))


def _refuse_held(path: Path) -> None:
    """A shared lock is tried and let go at once: a broker holds an exclusive one."""
    try:
        fd = os.open(beside(path, ".lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(fd, 20).decode("ascii", "replace").strip() or "unknown"
        raise Unavailable(f"Another process (pid {holder}) holds the store {path}") from None
    finally:
        os.close(fd)


def _connect(path: Path) -> sqlite3.Connection:
    """`immutable` makes no log files. It does not see a log that a killed broker left, so that is read as it stands."""
    log = beside(path, "-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?{how}", uri=True, isolation_level=None)


def _read(conn: sqlite3.Connection, path: Path) -> tuple[int, str, int]:
    version: int = conn.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA:
        raise ConfigError(f"the store {path} has schema {version}, newer than {SCHEMA}; install the newer Carnet")
    if version == 0:
        raise ConfigError(f"{path} is empty or no Carnet store; restore it from a backup or name another file")
    if conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise ConfigError(f"{path} is an SQLite file but not a Carnet store; name another file")
    for table in ("meta", "tenant"):
        word = conn.execute(f"PRAGMA quick_check({table})").fetchone()[0]
        if word != "ok":
            raise ConfigError(f"the store {path} is damaged ({word}); restore it from a backup")
    epoch, mark = conn.execute("SELECT epoch, high_water FROM meta").fetchone()
    return version, epoch, mark


def _problems(path: Path, clock: HighWater) -> tuple[str, ...]:
    found = []
    if (behind := clock.behind()) > BACKWARD:
        found.append(f"The system clock is {behind} s behind the time that this store has seen; set it right.")
    reserve, size = beside(path, ".reserve"), Limits().reserve
    kept = reserve.exists() and reserve.stat().st_size >= size
    if not kept and _free(path) < 2 * size:
        found.append("The disk has no room for the reserve of revocations; free space on it.")
    return tuple(found)


def _facts(path: Path, version: int) -> dict[str, str]:
    space = {"bytes": str(path.stat().st_size), "free_bytes": str(_free(path))}
    return {"store": "sqlite", "sqlite": sqlite3.sqlite_version, "schema": str(version), **space}


def _free(path: Path) -> int:
    space = os.statvfs(path.parent)
    return space.f_bavail * space.f_frsize
