"""Numbered schema steps. `PRAGMA user_version` is the number of steps that a file has had."""

import secrets
import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from carnet.errors import ConfigError

__all__ = ["APPLICATION_ID", "SCHEMA", "STEPS", "migrate"]

APPLICATION_ID = 0x43524E54  # "CRNT": tells this file from any other SQLite file
STEPS = ("schema.sql",)  # step n takes a file from schema n - 1 to n; a published step is never edited
SCHEMA = len(STEPS)


def migrate(conn: sqlite3.Connection, path: Path, now: int) -> None:
    """Bring the file to this version's schema, whole or not at all. ConfigError when it is newer or no store."""
    _refuse(conn, path)
    if _version(conn) == SCHEMA:
        return
    conn.execute("BEGIN IMMEDIATE")
    try:
        _refuse(conn, path)  # another process may have come first
        for number in range(_version(conn), SCHEMA):
            for statement in _statements(STEPS[number]):
                conn.execute(statement)
            if number == 0:
                conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                conn.execute("INSERT INTO meta VALUES (1, ?, ?)", (secrets.token_hex(16), now))
            conn.execute(f"PRAGMA user_version = {number + 1}")
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _refuse(conn: sqlite3.Connection, path: Path) -> None:
    version = _version(conn)
    if version > SCHEMA:
        raise ConfigError(
            f"The store {path} has schema {version} and this Carnet knows up to {SCHEMA}; install the newer Carnet."
        )
    tables: int = conn.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and conn.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise ConfigError(f"{path} is an SQLite file but not a Carnet store; name another file.")


def _version(conn: sqlite3.Connection) -> int:
    version: int = conn.execute("PRAGMA user_version").fetchone()[0]
    return version


def _statements(step: str) -> Iterator[str]:
    text = ""
    for line in files("carnet_broker.store").joinpath(step).read_text("utf-8").splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""
    if text.strip():
        raise ValueError(f"{step} ends inside a statement")
