"""A question that nobody answered in time: its end, its call's and its delegation's, in one commit."""

from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.reasons import Reason, Refusal
from carnet_broker.core.lifecycle import ApprovalEvent, CallEvent, advance
from carnet_broker.core.registry import Registry
from carnet_broker.core.rows import FOREVER, Approval, Call, CallState, Delegation, Revocation
from carnet_broker.core.standing import ending_mark
from carnet_broker.service.context import Context
from carnet_broker.service.lines import BROKER, by_approval
from carnet_broker.service.settling import Plan, settle
from carnet_broker.store.base import Change, Move

__all__ = ["ending", "moves_of", "spares", "time_out", "time_out_all"]


async def time_out_all(ctx: Context, registry: Registry, tenant: str, run: str, delegation: str | None) -> None:
    """Write every time-out that the run (or one delegation of it) is due, before anything else is decided about it."""
    ledger = await ctx.ledgers.peek(ctx.store, tenant, run, registry.policy)
    for approval in ledger.overdue(await ctx.store.now(), delegation):
        await time_out(ctx, registry, approval.tenant, approval.id)


async def time_out(ctx: Context, registry: Registry, tenant: str, approval_id: str) -> bool:
    """Whether this call of it wrote the time-out; another one may have been first."""

    async def plan(now: int) -> Plan[None] | Refusal:
        approval = await ctx.store.get(Approval, tenant, approval_id)
        if approval is None:
            return Refusal(Reason.NOT_FOUND)
        if now < approval.deadline:
            return Refusal(Reason.APPROVAL_PENDING, "Its deadline has not come yet.")
        about = await ctx.store.get(Delegation, tenant, approval.delegation)
        # it ended at its deadline, however much later that is written
        over = approval.deadline
        moved = advance(approval, ApprovalEvent.TIME_OUT, over, ends=over)
        if isinstance(moved, Refusal):
            return moved
        moves = await moves_of(ctx, approval, moved, CallEvent.REFUSE, over, over)
        revoke = () if spares(registry, approval) else (ending(approval, Reason.APPROVAL_TIMED_OUT, BROKER, over),)
        line = replace(
            by_approval(approval, Event.TIMED_OUT, BROKER, at=now, about=about), reason=moved.reason, decision="deny"
        )
        return Plan(Change(tenant=tenant, at=now, records=(line,), moves=moves, revoke=revoke), None)

    return not isinstance(await settle(ctx.store, plan), Refusal)


async def moves_of(
    ctx: Context, approval: Approval, moved: Approval, event: CallEvent, ends: int, now: int
) -> tuple[Move, ...]:
    """The approval's move, and its call's when that still waits. A refused call keeps the approval's end as reason."""
    moves = [Move(expect=approval.version, to=moved)]
    call = (
        await ctx.store.get(Call, approval.tenant, approval.subject)
        if approval.subject != approval.delegation
        else None
    )
    if call is not None and call.state is CallState.WAITING:
        reason = moved.reason if event is CallEvent.REFUSE else None
        after = advance(call, event, now, ends=ends, reason=reason)
        if not isinstance(after, Refusal):
            moves.append(Move(expect=call.version, to=after))
    return tuple(moves)


def spares(registry: Registry, approval: Approval) -> bool:
    """Whether the policy lets a delegation live on after the denial or time-out of a call's approval."""
    return approval.subject != approval.delegation and registry.policy.approvals.on_denial == "continue"


def ending(approval: Approval, reason: Reason, actor: str, now: int) -> Revocation:
    """The mark that ends the delegation of an approval."""
    return Revocation(
        tenant=approval.tenant, mark=ending_mark(approval), until=FOREVER, at=now, reason=reason.value, actor=actor
    )
