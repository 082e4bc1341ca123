"""One lock per run in this process. It saves retries, no rule rests on it: the store compares the run's version."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

__all__ = ["Locks"]


class _Entry:
    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.users = 0


class Locks:
    """Locks by name; one that nobody holds or waits for takes no memory."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        entry = self._entries.setdefault(name, _Entry())
        entry.users += 1
        try:
            async with entry.lock:
                yield
        finally:
            entry.users -= 1
            if entry.users == 0:
                del self._entries[name]

    def __len__(self) -> int:
        return len(self._entries)
