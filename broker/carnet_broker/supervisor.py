"""Background work under one roof: each chore repeats at its pace; one that breaks ends the broker's readiness.

A store that does not answer is weather: the chore tries again. Anything else is a fault of ours, and a broker whose
upkeep has stopped must not look well.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from carnet_broker.store.base import Unavailable

__all__ = ["Chore", "Supervisor"]

_LOG = logging.getLogger("carnet.upkeep")


@dataclass(frozen=True, slots=True)
class Chore:
    """seconds: from the end of one round to the start of the next."""

    name: str
    seconds: float
    round: Callable[[], Awaitable[object]]


class Supervisor:
    def __init__(self, chores: Sequence[Chore]) -> None:
        self._chores = tuple(chores)
        self._fallen: list[str] = []

    def fallen(self) -> list[str]:
        """Names of the chores that have broken."""
        return list(self._fallen)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """All chores run while the context is open; leaving it waits for the rounds that are under way."""
        stop = asyncio.Event()
        tasks = [asyncio.create_task(self._repeat(chore, stop), name=chore.name) for chore in self._chores]
        try:
            yield
        finally:
            stop.set()
            _, late = await asyncio.wait(tasks, timeout=5) if tasks else (set(), set())
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _repeat(self, chore: Chore, stop: asyncio.Event) -> None:
        away = False
        while not stop.is_set():
            try:
                await chore.round()
                away = False
            except Unavailable:
                if not away:
                    _LOG.warning("the store does not answer", extra={"fields": {"chore": chore.name}})
                away = True
            except Exception:  # noqa: BLE001 - a fault of any kind ends this chore, and readiness with it
                self._fallen.append(chore.name)
                _LOG.exception("a background task has ended", extra={"fields": {"chore": chore.name}})
                return
            await _pause(stop, chore.seconds)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
