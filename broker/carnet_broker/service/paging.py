"""Pages over the store's indexes for people: a cursor that the store did not give is a refusal, not a fault."""

from collections.abc import AsyncIterator

from anyio.lowlevel import checkpoint

from carnet.reasons import Reason, Refusal
from carnet_broker.store.base import Page, R, Store, Where

__all__ = ["MOST", "page", "walk"]

MOST = 500  # rows in one answer
_STEP = 100  # rows between which the event loop gets its turn: guards must hear from the broker meanwhile


async def page(
    store: Store, kind: type[R], tenant: str, where: Where, after: str | None, limit: int
) -> Page[R] | Refusal:
    try:
        return await store.find(kind, tenant, where, after, max(1, min(limit, MOST)))
    except ValueError:
        return Refusal(Reason.REQUEST_INVALID, "after must be the `next` of the answer before.")


async def walk(store: Store, kind: type[R], tenant: str, where: Where) -> AsyncIterator[R]:
    """Every row of an index, however many, without keeping others waiting."""
    after: str | None = None
    while True:
        found = await store.find(kind, tenant, where, after, _STEP)
        for row in found.rows:
            yield row
        after = found.next
        if after is None:
            return
        await checkpoint()
