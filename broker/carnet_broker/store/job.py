"""One piece of work for the writer, and the caller who waits for its outcome."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any

from carnet_broker.store.base import Unavailable
from carnet_broker.store.prepare import Touch

__all__ = ["Job", "Undo", "Work"]

Work = Callable[[sqlite3.Connection, int], Any]  # (connection inside the transaction, now) -> what the caller is told


class Undo(Exception):
    """Raised by work: take back what it has written, and tell the caller `result`."""

    def __init__(self, result: object) -> None:
        super().__init__("undone")
        self.result = result


class Job:
    """Made and settled on the event loop of its caller; run in the writer's thread in between."""

    __slots__ = ("_timer", "error", "future", "loop", "result", "touches", "urgent", "work")

    def __init__(self, work: Work, *, answer: float, urgent: bool = False, touches: frozenset[Touch] = frozenset()):
        self.work = work
        self.urgent = urgent
        self.touches = touches
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self._timer = self.loop.call_later(answer, self._late)

    def settle(self) -> None:
        """Hand the outcome to the caller, if it still waits."""
        self._timer.cancel()
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)

    def drop(self) -> None:
        """The caller is gone or never was queued: no timer is left behind."""
        self._timer.cancel()

    def _late(self) -> None:
        if not self.future.done():
            self.future.set_exception(Unavailable("The store did not answer in time; its disk may be too slow."))
