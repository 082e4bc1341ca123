"""Guards with one known mistake each; the suite must fail on every one of them. Calling one puts it in force here."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from carnet.failpoints import hit
from carnet.guard import setup
from carnet.guard.binding import Frozen
from carnet.guard.dispatch import Dispatch

__all__ = ["audit_after_dispatch"]

R = TypeVar("R")


class _AuditAfterDispatch(Dispatch):
    """Runs the tool first and puts the call on record when it has returned."""

    def run(self, tool: str, frozen: Frozen, fn: Callable[..., R]) -> R:
        case = self._cleared(tool, frozen)
        result = fn(*frozen.args, **frozen.kwargs)
        hit("after_dispatch_before_outcome")
        self._lanes.end(self._opened(case), "done", "")
        return result

    async def arun(self, tool: str, frozen: Frozen, fn: Callable[..., Awaitable[R]]) -> R:
        case = await self._acleared(tool, frozen)
        result = await fn(*frozen.args, **frozen.kwargs)
        hit("after_dispatch_before_outcome")
        await self._aend(await self._aopened(case), "done", "")
        return result


def audit_after_dispatch() -> None:
    setattr(setup, "Dispatch", _AuditAfterDispatch)  # noqa: B010 - the mistake is put where the guard takes its parts
