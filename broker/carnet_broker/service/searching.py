"""What operators look at: questions, delegations, trees, revocations, audit lines. Reading decides nothing."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from anyio.lowlevel import checkpoint

from carnet.audit import Record
from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Registry, Role
from carnet_broker.core.rows import Approval, Call, Delegation, Revocation
from carnet_broker.service.context import Context
from carnet_broker.service.paging import MOST, page, walk
from carnet_broker.service.permitting import permitted
from carnet_broker.service.principals import Principal
from carnet_broker.service.showing import approval_view, delegation_view, known, look_up
from carnet_broker.service.views import ApprovalView, DelegationView, Listing, TreeView
from carnet_broker.store.base import Index, R, Where

__all__ = [
    "find_approval",
    "find_approvals",
    "find_delegations",
    "find_records",
    "find_revocations",
    "show_approval",
    "tree",
]

_SCAN = 1000  # rows looked at for one answer
V = TypeVar("V")


async def find_approvals(
    ctx: Context, who: Principal, state: str, after: str | None, limit: int
) -> Listing[ApprovalView] | Refusal:
    """state: pending or all."""
    registry = permitted(ctx, who, Role.VIEWER)
    if isinstance(registry, Refusal):
        return registry
    index = Index.APPROVALS_PENDING if state == "pending" else Index.APPROVALS
    found = await page(ctx.store, Approval, who.tenant, Where(index=index), after, limit)
    if isinstance(found, Refusal):
        return found
    now = await ctx.store.now()
    live = [row for row in found.rows if state != "pending" or row.deadline > now]
    return Listing(rows=tuple([await show_approval(ctx, registry, row) for row in live]), next=found.next)


async def find_approval(ctx: Context, who: Principal, approval: str) -> ApprovalView | Refusal:
    registry = permitted(ctx, who, Role.VIEWER)
    row = await ctx.store.get(Approval, who.tenant, approval) if isinstance(registry, Registry) else None
    if isinstance(registry, Refusal):
        return registry
    return Refusal(Reason.NOT_FOUND) if row is None else await show_approval(ctx, registry, row)


async def show_approval(ctx: Context, registry: Registry, row: Approval) -> ApprovalView:
    delegation = await ctx.store.get(Delegation, row.tenant, row.delegation)
    call = await ctx.store.get(Call, row.tenant, row.subject) if row.subject != row.delegation else None
    return approval_view(row, delegation, call, registry.policy, await ctx.store.now())


async def find_delegations(
    ctx: Context, who: Principal, state: str, run: str | None, agent: str | None, after: str | None, limit: int
) -> Listing[DelegationView] | Refusal:
    """state: active, pending, ended or all. A page may come short, for a state is computed and not indexed."""
    registry = permitted(ctx, who, Role.VIEWER)
    if isinstance(registry, Refusal):
        return registry

    async def shown(row: Delegation) -> DelegationView | None:
        if agent not in (None, row.agent):
            return None
        view = await delegation_view(ctx, registry, await known(ctx, row))
        return view if state in ("all", view.state) else None

    where = await _where(ctx, state, run, agent)
    return await _scanned(ctx, Delegation, who.tenant, where, after, limit, shown)


async def _where(ctx: Context, state: str, run: str | None, agent: str | None) -> Where:
    if run is not None:
        return Where(index=Index.DELEGATIONS_BY_RUN, value=run)
    if agent is not None:
        return Where(index=Index.DELEGATIONS_BY_AGENT, value=agent)
    if state in ("active", "pending"):
        return Where(index=Index.DELEGATIONS_LIVE, since=await ctx.store.now())
    return Where(index=Index.DELEGATIONS)


async def tree(ctx: Context, who: Principal, delegation: str) -> TreeView | Refusal:
    registry = permitted(ctx, who, Role.VIEWER)
    if isinstance(registry, Refusal):
        return registry
    found = await look_up(ctx, who.tenant, delegation)
    if found is None:
        return Refusal(Reason.NOT_FOUND)
    where = Where(index=Index.DELEGATIONS_BY_RUN, value=found.row.run)
    below = [row async for row in walk(ctx.store, Delegation, who.tenant, where) if row.parent == found.row.id]
    children = []
    for row in below:
        children.append(await delegation_view(ctx, registry, await known(ctx, row)))
        await checkpoint()
    return TreeView(node=await delegation_view(ctx, registry, found), children=tuple(children))


async def find_revocations(
    ctx: Context, who: Principal, after: str | None, limit: int
) -> Listing[Mapping[str, Any]] | Refusal:
    registry = permitted(ctx, who, Role.VIEWER)
    if isinstance(registry, Refusal):
        return registry
    found = await page(ctx.store, Revocation, who.tenant, Where(index=Index.REVOCATIONS), after, limit)
    if isinstance(found, Refusal):
        return found
    return Listing(rows=tuple(asdict(row) for row in found.rows), next=found.next)


async def find_records(
    ctx: Context, who: Principal, filters: Mapping[str, str | int], after: str | None, limit: int
) -> Listing[Mapping[str, Any]] | Refusal:
    """filters: run, delegation, agent, tool, call, decision, reason, trace, since, until (Unix seconds)."""
    registry = permitted(ctx, who, Role.VIEWER)
    if isinstance(registry, Refusal):
        return registry

    async def shown(row: Record) -> Mapping[str, Any] | None:
        return asdict(row) if _fits(row, filters) else None

    where = await _records_where(ctx, who.tenant, filters)
    return await _scanned(ctx, Record, who.tenant, where, after, limit, shown)


async def _scanned(
    ctx: Context,
    kind: type[R],
    tenant: str,
    where: Where,
    after: str | None,
    limit: int,
    shown: Callable[[R], Awaitable[V | None]],
) -> Listing[V] | Refusal:
    """Up to `limit` rows of those that are shown (not None). Looks at a bounded number: a page may come short."""
    found: list[V] = []
    looked_at, most = 0, min(limit, MOST)
    while True:
        rows = await page(ctx.store, kind, tenant, where, after, most - len(found))
        if isinstance(rows, Refusal):
            return rows
        for row in rows.rows:
            await checkpoint()
            view = await shown(row)
            found += [] if view is None else [view]
        looked_at, after = looked_at + len(rows.rows), rows.next
        if after is None or len(found) >= most or looked_at >= _SCAN:
            return Listing(rows=tuple(found), next=after)


async def _records_where(ctx: Context, tenant: str, filters: Mapping[str, str | int]) -> Where:
    since, until = (None if name not in filters else int(filters[name]) for name in ("since", "until"))
    call = await ctx.store.get(Call, tenant, str(filters["call"])) if "call" in filters else None
    if call is not None:  # its first record is as old as itself
        begins = max(call.at, since or 0)
        return Where(index=Index.RECORDS_BY_DELEGATION, value=call.delegation, since=begins, until=until)
    for name, index in (
        ("delegation", Index.RECORDS_BY_DELEGATION),
        ("run", Index.RECORDS_BY_RUN),
        ("trace", Index.RECORDS_BY_TRACE),
    ):
        if name in filters:
            return Where(index=index, value=str(filters[name]), since=since, until=until)
    return Where(index=Index.RECORDS, since=since, until=until)


def _fits(row: Record, filters: Mapping[str, str | int]) -> bool:
    found = {
        "run": row.run,
        "delegation": row.delegation,
        "agent": row.agent,
        "tool": row.tool,
        "decision": row.decision,
        "reason": row.reason,
        "trace": row.trace_id,
        "call": row.call,
    }
    return all(found[name] == value for name, value in filters.items() if name in found)
