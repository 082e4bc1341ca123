"""What concurrency means to the client: the blocking half of a pair. `_io_async` has the same names."""

import threading
import time
import typing
from collections.abc import Callable

from carnet.wire.channel import Channel

__all__ = ["Channel", "Lock", "Transport", "shielded", "sleep"]

if typing.TYPE_CHECKING:
    from httpx2 import BaseTransport as Transport
else:
    Transport = object

Lock = threading.Lock
sleep = time.sleep


def shielded(work: Callable[[], object], seconds: float) -> None:  # noqa: ARG001 - the same signature as its twin
    """Do the work. Nothing cancels a thread; how long it takes is up to the work's own time-outs."""
    work()
