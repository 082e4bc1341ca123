"""Many followers of one feed for the price of one: per tenant a single task reads the store, all followers share it.

Each reading becomes one link of a chain; a follower walks the chain at its own speed and misses nothing. A reading that
fails becomes no link: without a store there is no heartbeat, and guards notice that within their staleness budget.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from carnet.reasons import Refusal
from carnet.token.claims import Claims
from carnet_broker.http.feed_document import Position, beat, document, event, position
from carnet_broker.service.facade import Service
from carnet_broker.service.principals import Principal
from carnet_broker.service.views import FeedView
from carnet_broker.store.base import Unavailable

__all__ = ["BEAT_SECONDS", "Followers", "Link"]

BEAT_SECONDS = 0.2
Guard = Principal | Claims


@dataclass(slots=True)
class Link:
    """One reading: where it started from, what it says, and the bytes that are the same for all who stood there."""

    before: Position | None = None
    after: Position | None = None
    payload: bytes = b""
    next: "Link | None" = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def append(self, link: "Link") -> None:
        self.next = link
        self.ready.set()


class _Tenant:
    """The reader of one tenant's feed. It lives while somebody follows."""

    def __init__(self, service: Service, clock: Callable[[], float]) -> None:
        self._service, self._clock = service, clock
        self.tail = Link()
        self.guards: dict[int, Guard] = {}
        self.task: asyncio.Task[None] | None = None

    async def run(self, start: Position) -> None:
        known = start
        while self.guards:
            try:
                known = await self._round(known)
            except Unavailable:
                await asyncio.sleep(BEAT_SECONDS)

    async def _round(self, known: Position) -> Position:
        """Wait a beat for news, then publish what one reading of the store says."""
        key, guard = next(iter(self.guards.items()))
        mono = self._clock()
        view = await _read(self._service, guard, known, BEAT_SECONDS)
        if isinstance(view, FeedView) and position(view) == known:
            mono = self._clock()  # the wait is over and nothing came: read once more, so that the beat is fresh
            view = await _read(self._service, guard, known, 0)
        if isinstance(view, Refusal):
            self.guards.pop(key, None)  # this follower's own right has ended; the next one asks
            return known
        self._publish(known, view, mono)
        return position(view)

    def _publish(self, known: Position, view: FeedView, mono: float) -> None:
        after = position(view)
        payload = beat(view, mono) if after == known else event("feed", document(view, mono))
        link = Link(before=known, after=after, payload=payload)
        self.tail.append(link)
        self.tail = link


class Followers:
    """clock: monotonic seconds of this process, the `mono` of every event."""

    def __init__(self, service: Service, clock: Callable[[], float]) -> None:
        self._service, self.clock = service, clock
        self._tenants: dict[str, _Tenant] = {}

    async def read(self, guard: Guard, known: Position, wait: float, instance: str | None) -> FeedView | Refusal:
        return await _read(self._service, guard, known, wait, instance)

    def join(self, key: int, guard: Guard, known: Position) -> Link:
        """The last link so far; what comes after it is for the follower to wait for. Pair with `leave`."""
        tenant = self._tenants.get(guard.tenant)
        if tenant is None:
            tenant = self._tenants[guard.tenant] = _Tenant(self._service, self.clock)
        tenant.guards[key] = guard
        if tenant.task is None or tenant.task.done():
            tenant.task = asyncio.create_task(tenant.run(known), name=f"feed of {guard.tenant}")
        return tenant.tail

    def leave(self, key: int, guard: Guard) -> None:
        tenant = self._tenants.get(guard.tenant)
        if tenant is None:
            return
        tenant.guards.pop(key, None)
        if not tenant.guards:
            del self._tenants[guard.tenant]
            if tenant.task is not None:
                tenant.task.cancel()

    def follows(self, key: int, guard: Guard) -> bool:
        """False once the follower has left, or its right to read has ended."""
        tenant = self._tenants.get(guard.tenant)
        return tenant is not None and key in tenant.guards


async def _read(
    service: Service, guard: Guard, known: Position, wait: float, instance: str | None = None
) -> FeedView | Refusal:
    return await service.feed(
        guard,
        epoch=known.epoch,
        after=known.seq,
        wait=wait,
        system_epoch=known.system_epoch,
        system_after=known.system_seq,
        instance=instance,
    )
