"""Whose call is this? One context variable for the child of an in-process agent and for the bearer of a request.

Tasks, `asyncio.to_thread`, anyio and FastAPI's thread pool carry it along; `executor.submit`, `run_in_executor` and
bare threads do not: use `bind` there. Without a current child every guarded call is refused.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from carnet.trace import Trace

__all__ = ["Holder", "bind", "current_child", "entered"]

P = ParamSpec("P")
R = TypeVar("R")


class Holder(Protocol):
    """What a guard needs of the current child. `max_wait`: seconds that a call may wait for a person, None = 50."""

    @property
    def id(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def level(self) -> int: ...
    @property
    def tools(self) -> frozenset[str]: ...
    @property
    def expires_at(self) -> int | None: ...
    @property
    def max_wait(self) -> float | None: ...
    @property
    def trace(self) -> Trace | None: ...
    def token(self, host: str) -> str: ...


_current: ContextVar[Holder | None] = ContextVar("carnet_child", default=None)


def current_child() -> Holder | None:
    """The child whose context this code runs in (the innermost one), or None."""
    return _current.get()


@contextmanager
def entered(holder: Holder | None) -> Iterator[None]:
    """Make `holder` the current child inside the block."""
    token = _current.set(holder)
    try:
        yield
    finally:
        # A fixture or dependency with `yield` may be closed in another context, whose variable is not ours to reset.
        with suppress(ValueError):
            _current.reset(token)


def bind(fn: Callable[P, R]) -> Callable[P, R]:
    """`fn` with the child that is current now, for threads and executors: `executor.submit(bind(work), item)`."""
    holder = _current.get()
    if inspect.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def later(*args: P.args, **kwargs: P.kwargs) -> Any:
            with entered(holder):
                return await fn(*args, **kwargs)

        return cast(Callable[P, R], later)

    @functools.wraps(fn)
    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        with entered(holder):
            return fn(*args, **kwargs)

    return bound
