"""Pages over the store's indexes for people: a cursor that the store did not give is a refusal, not a fault."""

from carnet.reasons import Reason, Refusal
from carnet_broker.service.context import Context
from carnet_broker.store.base import Page, R, Where

__all__ = ["MOST", "page"]

MOST = 200  # rows in one answer


async def page(
    ctx: Context, kind: type[R], tenant: str, where: Where, after: str | None, limit: int
) -> Page[R] | Refusal:
    try:
        return await ctx.store.find(kind, tenant, where, after, max(1, min(limit, MOST)))
    except ValueError:
        return Refusal(Reason.REQUEST_INVALID, "after must be the `next` of the answer before.")
