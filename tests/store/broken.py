"""Stores with one known mistake each. The suites must fail on every one of them; a suite that does not is no proof."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

from carnet_broker.core.rows import Approval
from carnet_broker.store.apply import write
from carnet_broker.store.base import Change, Committed, Conflict, Why
from carnet_broker.store.clock import system
from carnet_broker.store.limits import Limits
from carnet_broker.store.prepare import Prepared
from carnet_broker.store.sqlite import SqliteStore
from carnet_broker.store.writer import Writer


class CheckThenSet(SqliteStore):
    """Looks at the approval first and sets it afterwards, in two steps: two callers may both have looked."""

    async def commit(self, change: Change) -> Committed | Conflict:
        for move in change.moves:
            row = await self.get(Approval, change.tenant, move.to.id)
            if row is None or row.version != move.expect:
                return Conflict(why=Why.STATE, now=change.at, row=row)
        return await super().commit(change)

    def _apply(self, conn: sqlite3.Connection, prepared: Prepared, now: int) -> Committed | Conflict:
        for update in prepared.updates:
            conn.execute(
                "UPDATE approval SET state = ?, version = version + 1, body = ? WHERE tenant = ? AND id = ?",
                (update.row.state.value, update.body, update.row.tenant, update.row.id),
            )
        return write(conn, replace(prepared, updates=()), now, prepared.scopes)


class CheckThenSetUnguarded(CheckThenSet):
    """The same on a file whose own rules were taken away."""

    @classmethod
    def open(
        cls, path: Path, *, clock: Callable[[], int] = system, lock: bool = True, limits: Limits | None = None
    ) -> Self:
        store = super().open(path, clock=clock, lock=lock, limits=limits)
        conn = sqlite3.connect(path)
        conn.execute("DROP TRIGGER IF EXISTS approval_moves")
        conn.close()
        return store


class _DeferredWriter(Writer):
    def _begin(self) -> None:
        self._conn.execute("BEGIN DEFERRED")


class DeferredBegin(SqliteStore):
    """Begins as a reader and becomes a writer later: fails at once when another process has written in between."""

    writer_type = _DeferredWriter


class SynchronousNormal(SqliteStore):
    """Answers before the disk has the commit."""

    @classmethod
    def open(
        cls, path: Path, *, clock: Callable[[], int] = system, lock: bool = True, limits: Limits | None = None
    ) -> Self:
        store = super().open(path, clock=clock, lock=lock, limits=limits)
        store._writer._conn.execute("PRAGMA synchronous = NORMAL")
        return store


class _UnisolatedWriter(Writer):
    def _undo(self, why: BaseException) -> None:
        """Leaves what the failed change had written."""


class NoSavepoint(SqliteStore):
    """A change that fails halfway leaves its half behind."""

    writer_type = _UnisolatedWriter
