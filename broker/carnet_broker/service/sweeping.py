"""Sweep: write down what the clock, the policy or a revocation has ended. No rule rests on it; any node may do it."""

import logging
from collections.abc import Awaitable
from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.audit import Record
from carnet.reasons import Reason, Refusal
from carnet_broker.core.lifecycle import ApprovalEvent, CallEvent, advance
from carnet_broker.core.registry import MAX_RUN_TTL, Registry
from carnet_broker.core.rows import Approval, ApprovalState, Call, CallState, Delegation
from carnet_broker.core.standing import killer, marks_of
from carnet_broker.core.status import State, status
from carnet_broker.service.context import Context
from carnet_broker.service.ending import ended_key
from carnet_broker.service.falling import carrying
from carnet_broker.service.lines import BROKER, by_approval, by_call, by_delegation
from carnet_broker.service.paging import walk
from carnet_broker.service.settling import Plan, Settled, settle
from carnet_broker.service.timeouts import moves_of, time_out
from carnet_broker.store.base import Change, Index, Move, Where
from carnet_broker.store.codec import Corrupt

__all__ = ["sweep"]

_LOG = logging.getLogger("carnet.sweep")

_DUE = 500
_OLD = 2 * MAX_RUN_TTL + 86_400  # seconds: an older mark reaches no run that still lasts
_ENDING = frozenset({"dlg", "agent", "client", "policy", "tenant"})


async def sweep(ctx: Context, now: int) -> int:
    """How many changes were written."""
    written = 0
    for tenant, kind, id in await ctx.store.due(now, _DUE):
        registry = ctx.registries.get(tenant)
        if registry is not None:
            written += await _apart(id, _settle_due(ctx, registry, kind, id))
    for registry in tuple(ctx.registries.values()):
        written += await _apart(registry.tenant, _supersede_all(ctx, registry))
        written += await _apart(registry.tenant, _write_fallen(ctx, registry.tenant, now))
    return written


async def _apart(name: str, step: Awaitable[int]) -> int:
    """A row that cannot be read is said and left: what does not concern it must not wait for it."""
    try:
        return await step
    except Corrupt as fault:
        _LOG.error("the sweep met a row that cannot be read", extra={"fields": {"of": name, "problem": str(fault)}})
        return 0


async def _settle_due(ctx: Context, registry: Registry, kind: str, id: str) -> int:
    if kind == "approval":
        return await _approval_due(ctx, registry, id)
    if kind == "call":
        return await _call_due(ctx, registry, id)
    return await _run_due(ctx, registry.tenant, id)


async def _approval_due(ctx: Context, registry: Registry, id: str) -> int:
    row = await ctx.store.get(Approval, registry.tenant, id)
    if row is not None and row.state is ApprovalState.APPROVED:
        return await _move_approval(ctx, registry.tenant, id, ApprovalEvent.LAPSE, Event.LAPSED)
    return int(await time_out(ctx, registry, registry.tenant, id))


async def _move_approval(ctx: Context, tenant: str, id: str, event: ApprovalEvent, kind: str) -> int:
    async def plan(now: int) -> Plan[None] | Refusal:
        row = await ctx.store.get(Approval, tenant, id)
        if row is None:
            return Refusal(Reason.NOT_FOUND)
        moved = advance(row, event, now, ends=row.due or now)
        if isinstance(moved, Refusal):
            return moved
        moves = await moves_of(ctx, row, moved, CallEvent.REFUSE, row.due or now, now)
        line = replace(by_approval(row, kind, BROKER, at=now), reason=moved.reason)
        return Plan(Change(tenant=tenant, at=now, records=(line,), moves=moves), None)

    return int(isinstance(await settle(ctx.store, plan), Settled))


async def _call_due(ctx: Context, registry: Registry, id: str) -> int:
    row = await ctx.store.get(Call, registry.tenant, id)
    if row is None:
        return 0
    if row.state is CallState.WAITING and row.approval is not None:
        return await _approval_due(ctx, registry, row.approval)

    async def plan(now: int) -> Plan[None] | Refusal:
        call = await ctx.store.get(Call, registry.tenant, id) or row
        lost = advance(call, CallEvent.LOSE, now, ends=now, reason=Reason.LOST_OUTCOME.value)
        if isinstance(lost, Refusal):
            return lost
        line = by_call(call, Event.OUTCOME_UNKNOWN, BROKER, now)
        line = replace(line, outcome=lost.state.value, reason=Reason.LOST_OUTCOME.value)
        move = Move(expect=call.version, to=lost)
        return Plan(Change(tenant=call.tenant, at=now, records=(line,), moves=(move,)), None)

    return int(isinstance(await settle(ctx.store, plan), Settled))


async def _run_due(ctx: Context, tenant: str, run: str) -> int:
    """The run's time is over, and so is that of everything below it: one record each, then the run is done with."""
    written = 0
    async for row in walk(ctx.store, Delegation, tenant, Where(index=Index.DELEGATIONS_BY_RUN, value=run)):
        written += await _write_ended(ctx, row)

    async def plan(now: int) -> Plan[None] | Refusal:
        line = Record(at=now, tenant=tenant, kind=Event.ENDED, actor=BROKER, run=run, detail="The run is done with.")
        return Plan(Change(tenant=tenant, at=now, records=(line,), done=(run,)), None)

    return written + int(isinstance(await settle(ctx.store, plan), Settled))


async def _write_fallen(ctx: Context, tenant: str, now: int) -> int:
    """One `ended` record for each delegation that a revocation reached since the last sweep."""
    epoch, after = ctx.swept.get(tenant, ("", 0))
    feed = await ctx.store.changes(tenant, epoch, after, 0)
    written = 0
    for entry in feed.entries:
        if entry.mark.partition(":")[0] in _ENDING and entry.at > now - _OLD:
            async for row in carrying(ctx, tenant, entry.mark, now):
                written += await _write_ended(ctx, row)
    last = feed.entries[-1].seq if feed.entries and not feed.snapshot else feed.seq
    ctx.swept[tenant] = (feed.epoch, last)
    return written


async def _write_ended(ctx: Context, row: Delegation) -> int:
    async def plan(now: int) -> Plan[None] | Refusal:
        approval = await ctx.store.get(Approval, row.tenant, row.approval) if row.approval is not None else None
        revoked = await ctx.store.revoked(row.tenant, tuple(marks_of(row)))
        found = status(row, approval, revoked, now)
        if found.state is not State.ENDED or found.reason is None:
            return Refusal(Reason.CALL_STATE, "It lives.")
        first = killer(revoked.values(), dict.fromkeys(revoked, row.created_at if found.start is None else found.start))
        by_mark = first is not None and first.at == found.at
        line = by_delegation(row, Event.ENDED, first.actor if first is not None and by_mark else BROKER, at=now)
        line = replace(
            line,
            reason=found.reason.value,
            cause=first.mark if first is not None and by_mark else found.reason.value,
            facts={"at": found.at},
        )
        return Plan(Change(tenant=row.tenant, at=now, records=(line,), key=ended_key(row)), None)

    outcome = await settle(ctx.store, plan)
    return int(isinstance(outcome, Settled) and outcome.done.first is None)


async def _supersede_all(ctx: Context, registry: Registry) -> int:
    """Questions about calls that were put under another policy: the call must be asked anew under this one."""
    in_force, _ = await ctx.ledgers.policy(ctx.store, registry.tenant)
    if in_force is None:
        return 0
    page = await ctx.store.find(Approval, registry.tenant, Where(index=Index.APPROVALS_PENDING), None, 200)
    old = [row for row in page.rows if row.subject != row.delegation and row.policy_digest != in_force.digest]
    written = 0
    for row in old:
        written += await _move_approval(ctx, row.tenant, row.id, ApprovalEvent.SUPERSEDE, Event.SUPERSEDED)
    return written
