"""Who waits for what, so that a commit wakes them at once."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Self

from carnet_broker.store.prepare import Touch

__all__ = ["Waiter", "Wakeups", "deliver"]

Delivery = tuple[asyncio.AbstractEventLoop, Callable[[], None]]


class Waiter:
    """One waiting caller. Enter before the first look at the store, so that no commit falls between look and wait."""

    def __init__(self, wakeups: "Wakeups", touches: tuple[Touch, ...]) -> None:
        self._wakeups = wakeups
        self._touches = touches
        self._event = asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        self._wakeups.add(self, self._touches)
        return self

    def __exit__(self, *_: object) -> None:
        self._wakeups.remove(self, self._touches)

    def wake(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Return after a commit that touches, or after `seconds`."""
        timer = self.loop.call_later(seconds, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
            self._event.clear()


class Wakeups:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Touch, set[Waiter]] = {}

    def waiter(self, *touches: Touch) -> Waiter:
        return Waiter(self, touches)

    def add(self, waiter: Waiter, touches: Iterable[Touch]) -> None:
        with self._lock:
            for touch in touches:
                self._waiting.setdefault(touch, set()).add(waiter)

    def remove(self, waiter: Waiter, touches: Iterable[Touch]) -> None:
        with self._lock:
            for touch in touches:
                waiting = self._waiting.get(touch, set())
                waiting.discard(waiter)
                if not waiting:
                    self._waiting.pop(touch, None)

    def touched(self, touches: Iterable[Touch] | None) -> list[Delivery]:
        """Whom to wake for these touches; None = everybody."""
        with self._lock:
            wanted = self._waiting.keys() if touches is None else touches
            woken = {waiter for touch in wanted for waiter in self._waiting.get(touch, ())}
        return [(waiter.loop, waiter.wake) for waiter in woken]


def deliver(deliveries: Iterable[Delivery]) -> None:
    """Run each callable on its loop, with one hop per loop; a loop that is closed has nobody left to tell."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}
    for loop, act in deliveries:
        by_loop.setdefault(loop, []).append(act)
    for loop, acts in by_loop.items():
        try:
            loop.call_soon_threadsafe(_run, acts)
        except RuntimeError:
            if not loop.is_closed():
                raise


def _run(acts: list[Callable[[], None]]) -> None:
    for act in acts:
        act()
