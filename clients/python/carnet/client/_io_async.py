"""What concurrency means to the client: the asynchronous half of a pair. `_io_sync` has the same names."""

from collections.abc import Awaitable, Callable

from carnet.wire.achannel import AsyncChannel as Channel

__all__ = ["Channel", "Lock", "Transport", "shielded", "sleep"]

import typing

if typing.TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport as Transport
else:
    Transport = object


class Lock:
    """Mutual exclusion; made on first use, because a lock belongs to an event loop."""

    def __init__(self) -> None:
        self._lock: typing.Any = None

    async def __aenter__(self) -> None:
        if self._lock is None:
            import anyio

            self._lock = anyio.Lock()
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


async def sleep(seconds: float) -> None:
    """Do nothing for so long."""
    import anyio

    await anyio.sleep(seconds)


async def shielded(work: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Do the work although the caller is being cancelled, but no longer than this."""
    import anyio

    with anyio.move_on_after(seconds, shield=True):
        await work()
