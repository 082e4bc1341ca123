"""Which delegations a mark reaches: for the preview of a revocation, and for the records after it."""

from collections.abc import AsyncIterator

from carnet_broker.core.rows import Delegation
from carnet_broker.core.standing import marks_of
from carnet_broker.service.context import Context
from carnet_broker.service.paging import walk
from carnet_broker.store.base import Index, Where

__all__ = ["MOST", "carrying"]

MOST = 1000  # ids named in one answer


async def carrying(ctx: Context, tenant: str, mark: str, since: int) -> AsyncIterator[Delegation]:
    """Delegations that carry the mark and whose run lasts beyond `since`."""
    where = await _where(ctx, tenant, mark, since)
    if where is None:
        return
    async for row in walk(ctx.store, Delegation, tenant, where):
        if row.live_until > since and _carries(row, mark):
            yield row


async def _where(ctx: Context, tenant: str, mark: str, since: int) -> Where | None:
    kind, _, name = mark.partition(":")
    if kind in ("dlg", "tool"):
        row = await ctx.store.get(Delegation, tenant, name.partition("/")[0])
        return None if row is None else Where(index=Index.DELEGATIONS_BY_RUN, value=row.run)
    if kind == "client":
        return Where(index=Index.DELEGATIONS_BY_CLIENT, value=name)
    return Where(index=Index.DELEGATIONS_LIVE, since=since)  # a parent's agent is in the chain and in no index


def _carries(row: Delegation, mark: str) -> bool:
    kind, _, name = mark.partition(":")
    if kind == "tool":
        owner, _, tool = name.partition("/")
        return any(dlg == owner for dlg, _, _ in row.chain) and tool in row.envelope.tools
    return kind == "host" or mark in marks_of(row)
