"""The one thread that writes: it drains its queue into one transaction per batch and replies after the COMMIT.

A savepoint round each job keeps its failure its own. A job after which the transaction is gone (SQLite rolls back by
itself when the disk is full) fails the whole batch, and nothing more is run on it: what would follow would be committed
on its own, unseen.
"""

import sqlite3
import threading
import time
from collections.abc import Callable

from carnet import failpoints
from carnet_broker.store.base import Unavailable
from carnet_broker.store.clock import HighWater
from carnet_broker.store.faults import is_full, unavailable
from carnet_broker.store.job import Job, Undo
from carnet_broker.store.lanes import Lanes
from carnet_broker.store.limits import Limits
from carnet_broker.store.reserve import Reserve
from carnet_broker.store.wakeups import Wakeups, deliver

__all__ = ["Writer"]

_IDLE = 1.0  # seconds without work after which chores are done
_CHORES = 5.0  # seconds between two rounds of chores
_FULL = "The disk of the store is full; free space on it (revocations still go through)."
Chore = Callable[[sqlite3.Connection, int], None]


class _Gone(Exception):
    """The batch's transaction ended under it; `cause` is why."""

    def __init__(self, cause: BaseException | None) -> None:
        super().__init__("the transaction is gone")
        self.cause = cause


class Writer:
    """Owns the writing connection. Its thread ends only with `close`."""

    def __init__(
        self, conn: sqlite3.Connection, clock: HighWater, reserve: Reserve, limits: Limits, chore: Chore
    ) -> None:
        self.lanes = Lanes(limits.queue)
        self.wakeups = Wakeups()
        self._conn = conn
        self._clock = clock
        self._reserve = reserve
        self._limits = limits
        self._chore = chore
        self._chored = time.monotonic()
        self._thread = threading.Thread(target=self._loop, name="carnet-store-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Finish what is queued, check-point the log and close the file. Blocks."""
        self.lanes.close()
        self._thread.join()

    def _loop(self) -> None:
        while (jobs := self.lanes.take(self._limits.batch, _IDLE)) is not None:
            waiting = [job for job in jobs if not job.future.done()]  # who has given up needs no commit
            if waiting:
                self._serve(waiting)
            if time.monotonic() - self._chored >= _CHORES:
                self._chores(idle=not jobs)
        try:
            self._conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass  # the log stays and is read at the next start: nothing is lost
        finally:
            self._conn.close()

    def _serve(self, jobs: list[Job]) -> None:
        if not self._reserve.regain():
            jobs = self._refuse(jobs)
        error = self._commit(jobs) if jobs else None
        if error is not None and is_full(error.__cause__ or error):
            self._reserve.release()
            jobs = self._refuse(jobs)
            error = self._commit(jobs) if jobs else None
        if error is not None:
            for job in jobs:
                job.error = Unavailable(*error.args)  # one each: raising marks an exception with its place
                job.error.__cause__ = error.__cause__
            deliver([(job.loop, job.settle) for job in jobs])

    def _refuse(self, jobs: list[Job]) -> list[Job]:
        """Tell those who revoke nothing that there is no room; the rest is returned."""
        refused = [job for job in jobs if not job.urgent]
        for job in refused:
            job.error = Unavailable(_FULL)
        deliver([(job.loop, job.settle) for job in refused])
        return [job for job in jobs if job.urgent]

    def _commit(self, jobs: list[Job]) -> Unavailable | None:
        """One transaction for all jobs; their callers are told. Unavailable when nobody was told anything yet."""
        try:
            failpoints.hit("before_tx")
            self._begin()
            now = self._tick()
            for job in jobs:
                self._run(job, now)
            self._conn.execute("COMMIT")
            failpoints.hit("after_tx_before_reply")
            self._publish(jobs)
        except _Gone as gone:
            self._rollback()
            return unavailable(gone.cause or RuntimeError("a change ended its transaction"))
        except Exception as error:  # noqa: BLE001 - the thread must outlive every fault; the callers are told
            self._rollback()
            return unavailable(error)
        return None

    def _begin(self) -> None:
        self._conn.execute("BEGIN IMMEDIATE")

    def _tick(self) -> int:
        """The time of this transaction, after everything that any process has committed."""
        stored: int = self._conn.execute("SELECT high_water FROM meta").fetchone()[0]
        self._clock.raise_to(stored)
        now = self._clock.now()
        if now > stored:
            self._conn.execute("UPDATE meta SET high_water = ?", (now,))
        return now

    def _run(self, job: Job, now: int) -> None:
        conn = self._conn
        job.result, job.error = None, None
        conn.execute("SAVEPOINT job")
        try:
            job.result = job.work(conn, now)
        except Undo as undo:
            job.result = undo.result
            self._undo(undo)
        except sqlite3.IntegrityError as error:  # the file's own rules: a bug of the change, not of the disk
            job.error = ValueError(f"the store refuses this: {error}")
            self._undo(error)
        except sqlite3.Error as error:
            job.error = unavailable(error)
            self._undo(error)
            if is_full(error):
                raise _Gone(error) from error
        except Exception as error:  # noqa: BLE001 - a bug of one change is told to its caller and stays its own
            job.error = error
            self._undo(error)
        try:
            conn.execute("RELEASE job")  # fails when the job ended the transaction and began another
        except sqlite3.Error as error:
            raise _Gone(None) from error
        if not conn.in_transaction:
            raise _Gone(None)

    def _undo(self, why: BaseException) -> None:
        if not self._conn.in_transaction:
            raise _Gone(why) from why
        try:
            self._conn.execute("ROLLBACK TO job")
        except sqlite3.Error:
            raise _Gone(why) from why

    def _rollback(self) -> None:
        try:
            if self._conn.in_transaction:
                self._conn.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # SQLite has rolled back by itself

    def _publish(self, jobs: list[Job]) -> None:
        failpoints.hit("before_publish")
        touches = {touch for job in jobs if job.error is None for touch in job.touches}
        deliver([(job.loop, job.settle) for job in jobs] + self.wakeups.touched(touches))
        failpoints.hit("after_publish")

    def _chores(self, *, idle: bool) -> None:
        self._chored = time.monotonic()
        try:
            self._chore(self._conn, self._clock.now())
            if idle:
                self._conn.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error:
            self._rollback()  # chores only tidy; the next round tries again
