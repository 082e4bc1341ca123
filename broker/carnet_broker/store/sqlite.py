"""The embedded store: one SQLite file in write-ahead mode, one writing thread, reads inline.

The store stays right when several processes use the file; a broker process nevertheless holds it alone (`lock`), since
its own locks per run are what spares it retries.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from carnet.audit import Record
from carnet_broker.core.rows import Checkpoint, GuardSeen, Revocation
from carnet_broker.store import acts, reads
from carnet_broker.store.apply import apply_change
from carnet_broker.store.base import (
    SEEN_ANEW,
    Change,
    Committed,
    Conflict,
    Feed,
    Health,
    LedgerDelta,
    Page,
    R,
    Unavailable,
    Where,
)
from carnet_broker.store.clock import HighWater, system
from carnet_broker.store.connect import Readers
from carnet_broker.store.faults import unavailable
from carnet_broker.store.files import HeldLock
from carnet_broker.store.health import examine
from carnet_broker.store.job import Job, Work
from carnet_broker.store.limits import Limits
from carnet_broker.store.orders import page
from carnet_broker.store.prepare import Prepared, Touch, prepare
from carnet_broker.store.reserve import Reserve
from carnet_broker.store.select import read_row
from carnet_broker.store.start import start
from carnet_broker.store.wakeups import deliver
from carnet_broker.store.writer import Writer

__all__ = ["SqliteStore"]

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """The `Store` protocol on one file. Make it with `open`, after any fork; usable from several event loops."""

    writer_type: ClassVar[type[Writer]] = Writer

    def __init__(
        self, path: Path, writer: Writer, clock: HighWater, reserve: Reserve, held: HeldLock | None, limits: Limits
    ) -> None:
        self._path = path
        self._writer = writer
        self._clock = clock
        self._reserve = reserve
        self._held = held
        self._limits = limits
        self._readers = Readers(path)
        self._closing = threading.Lock()

    @classmethod
    def open(
        cls, path: Path, *, clock: Callable[[], int] = system, lock: bool = True, limits: Limits | None = None
    ) -> Self:
        """Open or create the store. ConfigError when the file cannot be a store of this version, Unavailable when
        another process holds it. `lock=False` is for several processes on one file."""
        limits = limits or Limits()
        path = path.absolute()  # the process may change its folder, and connections are opened later too
        held = HeldLock.take(path) if lock and path.parent.is_dir() else None
        try:
            conn, high_water = start(path, clock)
            reserve = Reserve(path, limits.reserve)
            writer = cls.writer_type(conn, high_water, reserve, limits, acts.chore)
            store = cls(path, writer, high_water, reserve, held, limits)
        except BaseException:
            if held is not None:
                held.release()
            raise
        writer.start()
        return store

    @property
    def epoch(self) -> str:
        """Random id of this life of the store; another one after `new_epoch`."""
        return self._read(reads.epoch)

    async def new_epoch(self) -> str:
        epoch: str = await self._do(lambda conn, _: acts.renew_epoch(conn), urgent=True)
        deliver(self._writer.wakeups.touched(None))
        return epoch

    async def commit(self, change: Change) -> Committed | Conflict:
        """Make the change whole or not at all; answer only once it is durable. ValueError for one without sense."""
        prepared = prepare(change)
        told: Committed | Conflict = await self._do(
            lambda conn, now: self._apply(conn, prepared, now), urgent=bool(change.revoke), touches=prepared.touches
        )
        return told

    def _apply(self, conn: sqlite3.Connection, prepared: Prepared, now: int) -> Committed | Conflict:
        return apply_change(conn, prepared, now)

    async def once(self, tenant: str, key: str, until: int) -> bool:
        """True the first time this key is seen before `until`; durable. Unavailable when the tenant's room is full."""
        first: bool = await self._do(lambda conn, now: acts.once(conn, now, tenant, key, until, self._limits.onces))
        return first

    async def get(self, kind: type[R], tenant: str, id: str) -> R | None:
        return self._read(read_row, kind, tenant, id)

    async def find(self, kind: type[R], tenant: str, where: Where, after: str | None, limit: int) -> Page[R]:
        if limit < 1:
            raise ValueError("a page has at least one row")
        return self._read(page, kind, tenant, where, after, min(limit, self._limits.page))

    async def ledger(self, tenant: str, have: Mapping[str, int], since: int | None = None) -> LedgerDelta:
        return self._read(reads.ledger, tenant, have, since)

    async def revoked(self, tenant: str, marks: Sequence[str]) -> Mapping[str, Revocation]:
        return self._read(reads.revoked, tenant, marks)

    async def changes(self, tenant: str, epoch: str, after: int, wait: float) -> Feed:
        """What is new after `after`; returns early when another policy comes into force."""
        with self._writer.wakeups.waiter(("feed", tenant, "")) as waiter:
            deadline = waiter.loop.time() + wait
            first = self._feed(tenant, epoch, after)
            feed = first
            while not (feed.snapshot or feed.entries or feed.policy_digest != first.policy_digest):
                left = deadline - waiter.loop.time()
                if left <= 0:
                    break
                await waiter.wait(min(left, self._limits.poll))
                feed = self._feed(tenant, epoch, after)
        return feed

    def _feed(self, tenant: str, epoch: str, after: int) -> Feed:
        return self._read(reads.feed, tenant, epoch, after, self._clock.now(), self._limits.feed)

    async def watch(self, tenant: str, id: str, version: int, wait: float) -> None:
        with self._writer.wakeups.waiter(("row", tenant, id)) as waiter:
            deadline = waiter.loop.time() + wait
            while not self._read(reads.touched, tenant, id, version):
                left = deadline - waiter.loop.time()
                if left <= 0:
                    return
                await waiter.wait(min(left, self._limits.poll))

    async def due(self, now: int, limit: int) -> Sequence[tuple[str, str, str]]:
        return self._read(reads.due, now, limit)

    async def seen(self, tenant: str, guard: str, seq: int) -> None:
        old = self._read(read_row, GuardSeen, tenant, guard)
        if old is not None and old.seq == seq and 0 <= self._clock.now() - old.at < SEEN_ANEW:
            return
        await self._do(lambda conn, now: acts.note_guard(conn, now, tenant, guard, seq))

    async def unsealed(self, tenant: str, limit: int) -> tuple[str, int, Sequence[Record]]:
        return self._read(reads.unsealed, tenant, limit)

    async def seal(self, tenant: str, after: int, links: Sequence[tuple[int, str]], checkpoint: Checkpoint) -> bool:
        done: bool = await self._do(lambda conn, _: acts.seal(conn, tenant, after, links, checkpoint))
        return done

    async def now(self) -> int:
        return self._clock.now()

    async def health(self) -> Health:
        """Asks file and writer; never raises. A problem is one sentence with the fix."""
        answer = None
        try:
            await self._do(lambda conn, _: conn.execute("SELECT one FROM meta").fetchone())
        except Unavailable as error:
            answer = str(error)
        return examine(self._path, self._readers, self._clock, self._reserve, len(self._writer.lanes), answer)

    async def close(self) -> None:
        """Finish what is queued, check-point, free the lock. A second close waits for the first."""
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """The same for callers without an event loop. Blocks."""
        with self._closing:
            self._writer.close()
            self._readers.close()
            if self._held is not None:
                self._held.release()

    async def _do(self, work: Work, *, urgent: bool = False, touches: frozenset[Touch] = frozenset()) -> Any:
        job = Job(work, answer=self._limits.answer, urgent=urgent, touches=touches)
        try:
            self._writer.lanes.put(job)
            return await job.future
        finally:
            job.drop()

    def _read(self, read: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return self._readers.read(read, *args, **kwargs)
        except sqlite3.Error as error:
            raise unavailable(error) from error
