"""From rows to what callers are shown. States are computed here from rows, marks and the clock, and stored nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass

from carnet.reasons import Reason
from carnet_broker.core.ceilings import unasked_tools
from carnet_broker.core.registry import Registry
from carnet_broker.core.rows import Approval, ApprovalState, Call, Delegation
from carnet_broker.core.standing import marks_of
from carnet_broker.core.status import Status, status
from carnet_broker.service.context import Context
from carnet_broker.service.views import ApprovalBrief, ApprovalView, DelegationView, Issued
from carnet_policy import Policy

__all__ = ["Known", "approval_view", "brief", "delegation_view", "known", "look_up"]

_FOR_APPROVERS = ("agent", "target", "tool", "args", "task", "payload", "envelope", "rule")


@dataclass(frozen=True, slots=True)
class Known:
    """A delegation with what its state follows from."""

    row: Delegation
    approval: Approval | None
    status: Status
    now: int


async def known(ctx: Context, row: Delegation) -> Known:
    """The state of a delegation now."""
    approval = await ctx.store.get(Approval, row.tenant, row.approval) if row.approval is not None else None
    revoked = await ctx.store.revoked(row.tenant, tuple(marks_of(row)))
    now = await ctx.store.now()
    return Known(row, approval, status(row, approval, revoked, now), now)


async def look_up(ctx: Context, tenant: str, delegation: str) -> Known | None:
    row = await ctx.store.get(Delegation, tenant, delegation)
    return None if row is None else await known(ctx, row)


async def delegation_view(
    ctx: Context, registry: Registry, found: Known, tokens: Mapping[str, Issued] | None = None
) -> DelegationView:
    row, state = found.row, found.status
    ledger = await ctx.ledgers.peek(ctx.store, row.tenant, row.run, registry.policy)
    agent = registry.agent(row.agent)
    return DelegationView(
        id=row.id,
        run=row.run,
        parent=row.parent,
        agent=row.agent,
        client=row.client,
        state=state.state.value,
        reason=None if state.reason is None else state.reason.value,
        approval=None if found.approval is None else brief(found.approval, found.now),
        envelope=row.envelope,
        created_at=row.created_at,
        start=state.start,
        expires_at=state.end,
        hosts=tuple(host.name for host in registry.hosts_of(row.envelope.tools)),
        receives=None if agent is None else agent.returns_document,
        calls=ledger.calls_of(row.id),
        tokens=tokens or {},
    )


def _state(row: Approval, now: int) -> ApprovalState:
    """A question that nobody answered in time is over by the clock, written or not."""
    late = row.state is ApprovalState.PENDING and now >= row.deadline
    return ApprovalState.TIMED_OUT if late else row.state


def _reason(row: Approval, state: ApprovalState) -> str:
    """How it ended, also where the clock has ended it and nothing has written that down yet."""
    return Reason.APPROVAL_TIMED_OUT.value if state is ApprovalState.TIMED_OUT else row.reason


def brief(row: Approval, now: int) -> ApprovalBrief:
    state = _state(row, now)
    return ApprovalBrief(
        id=row.id,
        state=state.value,
        deadline=row.deadline,
        answered_at=row.answered_at,
        answered_by=row.answered_by,
        reason=_reason(row, state),
    )


def approval_view(
    row: Approval, delegation: Delegation | None, call: Call | None, policy: Policy, now: int
) -> ApprovalView:
    """What a person sees. Arguments and payload stand in it only while the question is open. policy: the one in force,
    for that is what will decide."""
    shown = dict(row.shown or {})
    told = {name: shown.get(name) for name in _FOR_APPROVERS}
    if told["agent"] is None and delegation is not None:
        told["agent"] = delegation.agent
    if told["tool"] is None and call is not None:
        told["tool"], told["rule"] = call.tool, call.rule
    state, whole = _state(row, now), row.subject == row.delegation
    return ApprovalView(
        id=row.id,
        delegation=row.delegation,
        run=row.run,
        subject=row.subject,
        kind="delegation" if whole else "call",
        state=state.value,
        deadline=row.deadline,
        seconds_left=max(0, row.deadline - now) if state is ApprovalState.PENDING else 0,
        created_at=row.created_at,
        answered_at=row.answered_at,
        answered_by=row.answered_by,
        note=row.note,
        reason=_reason(row, state) or str(shown.get("reason", "")),
        unasked_tools=unasked_tools(delegation.envelope, policy) if whole and delegation is not None else (),
        chain=delegation.chain if delegation is not None else (),
        approvers=row.approvers,
        trace_id=row.trace_id,
        **told,
    )
