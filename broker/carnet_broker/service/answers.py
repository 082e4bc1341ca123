"""Answer: a person approves, denies or withdraws. Approving takes a fresh proof of that person, every time."""

from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.reasons import Reason, Refusal
from carnet_broker.core.lifecycle import ApprovalEvent, CallEvent, advance
from carnet_broker.core.registry import Agent, Operator, Registry, Role
from carnet_broker.core.rows import Approval, ApprovalState, Delegation, Revocation
from carnet_broker.core.standing import alive, marks_of
from carnet_broker.service.context import Context
from carnet_broker.service.lines import by_approval, by_principal
from carnet_broker.service.principals import Kind, Principal
from carnet_broker.service.requests import Verdict
from carnet_broker.service.searching import show_approval
from carnet_broker.service.settling import Plan, refuse, revoked_reason, settle
from carnet_broker.service.showing import known
from carnet_broker.service.timeouts import ending, moves_of, spares, time_out
from carnet_broker.service.views import ApprovalView
from carnet_broker.store.base import Change, Conflict, Why

__all__ = ["answer"]

_EVENTS = {
    Verdict.APPROVE: (ApprovalEvent.APPROVE, CallEvent.HOLD),
    Verdict.DENY: (ApprovalEvent.DENY, CallEvent.REFUSE),
    Verdict.WITHDRAW: (ApprovalEvent.WITHDRAW, CallEvent.REFUSE),
}
_ENDS = {Verdict.DENY: Reason.APPROVAL_DENIED, Verdict.WITHDRAW: Reason.APPROVAL_WITHDRAWN}


async def answer(
    ctx: Context, who: Principal, approval_id: str, verdict: Verdict, note: str, passphrase: str | None, trace: str
) -> ApprovalView | Refusal:
    registry = ctx.registry(who.tenant)
    approval = await ctx.store.get(Approval, who.tenant, approval_id)
    if isinstance(registry, Refusal) or approval is None:
        line = replace(by_principal(who, Event.ANSWER_REFUSED, trace), facts={"approval": approval_id[:128]})
        return await refuse(ctx.store, line, Refusal(Reason.NOT_FOUND, "There is no approval of this id."))
    done = await _answered(ctx, registry, who, approval, verdict, note, passphrase, trace)
    if not isinstance(done, Refusal):
        return await show_approval(ctx, registry, done)
    line = replace(by_approval(approval, Event.ANSWER_REFUSED, who.actor, trace), facts={"verdict": verdict.value})
    return await refuse(ctx.store, line, done)


async def _answered(
    ctx: Context,
    registry: Registry,
    who: Principal,
    approval: Approval,
    verdict: Verdict,
    note: str,
    passphrase: str | None,
    trace: str,
) -> Approval | Refusal:
    delegation = await ctx.store.get(Delegation, who.tenant, approval.delegation)
    if delegation is None:
        return Refusal(Reason.NOT_FOUND, "The delegation of this approval is not on record.")
    refused = await _may_answer(ctx, registry, who, approval, delegation, verdict, passphrase)
    if refused is not None:
        return refused
    if approval.state is ApprovalState.PENDING and await ctx.store.now() >= approval.deadline:
        await time_out(ctx, registry, who.tenant, approval.id)
    outcome = await settle(
        ctx.store, lambda now: _plan(ctx, registry, who, approval.id, delegation, verdict, note, trace, now)
    )
    if isinstance(outcome, Conflict):
        late = Refusal(Reason.APPROVAL_EXPIRED, "The deadline had passed; the answer changes nothing.")
        return late if outcome.why is Why.LATE else revoked_reason(outcome)
    return outcome if isinstance(outcome, Refusal) else outcome.answer


async def _may_answer(
    ctx: Context,
    registry: Registry,
    who: Principal,
    approval: Approval,
    delegation: Delegation,
    verdict: Verdict,
    passphrase: str | None,
) -> Refusal | None:
    operator = registry.operators.get(who.name) if who.kind is Kind.OPERATOR else None
    if operator is None or operator.role < Role.APPROVER:
        return Refusal(Reason.FORBIDDEN, "Answering takes the role approver or a higher one.")
    if verdict is not Verdict.WITHDRAW and approval.approvers and operator.groups.isdisjoint(approval.approvers):
        return Refusal(Reason.NOT_APPROVER, f"The policy names the groups {', '.join(approval.approvers)}.")
    if verdict is not Verdict.APPROVE:
        return None
    opener = registry.agent(delegation.chain[0][1])
    if opener is None:  # whoever owned it must not approve, and nobody can tell any more who that was
        gone = f"The agent {delegation.chain[0][1]} that opened the run is not registered any more, so its owner is"
        return Refusal(Reason.SELF_APPROVAL, f"{gone} unknown and nobody can approve. Deny or withdraw it instead.")
    if operator.name in _own(opener, delegation) or opener.owner in operator.groups:
        return Refusal(Reason.SELF_APPROVAL)
    missing = (*registry.strangers(delegation.chain), *registry.lost(delegation.chain, delegation.envelope.tools))
    if missing:
        no = f"The registry changed since it was asked; not there any more: {', '.join(missing)}. Deny or withdraw it."
        return Refusal(Reason.SCOPE_NOT_GRANTABLE, no)
    return await _fresh_proof(ctx, who, operator, passphrase)


def _own(opener: Agent, delegation: Delegation) -> set[str]:
    """Whoever asked for it: the chain itself, and the owner of the agent that opened the run."""
    names: set[str] = set()
    for _, agent, client in delegation.chain:
        names |= {agent, client}
    return names if opener.owner is None else names | {opener.owner}


async def _fresh_proof(ctx: Context, who: Principal, operator: Operator, passphrase: str | None) -> Refusal | None:
    if passphrase is None or operator.passphrase is None:
        return Refusal(Reason.FRESH_PROOF)
    now = await ctx.store.now()
    if not ctx.attempts.may_try(who.tenant, operator.name, now):
        return Refusal(Reason.TOO_MANY_REQUESTS, "Too many wrong passphrases; wait a minute.")
    if await ctx.proofs.holds(passphrase, operator.passphrase):
        return None
    ctx.attempts.failed(who.tenant, operator.name, now)
    return Refusal(Reason.FRESH_PROOF, "The passphrase is wrong.")


async def _plan(
    ctx: Context,
    registry: Registry,
    who: Principal,
    approval_id: str,
    delegation: Delegation,
    verdict: Verdict,
    note: str,
    trace: str,
    now: int,
) -> Plan[Approval] | Refusal:
    approval = await ctx.store.get(Approval, who.tenant, approval_id)
    if approval is None:
        return Refusal(Reason.NOT_FOUND)
    of_call = approval.subject != approval.delegation
    if of_call and verdict is Verdict.APPROVE and approval.policy_digest != registry.policy.ref.digest:
        return Refusal(Reason.APPROVAL_SUPERSEDED, "The policy changed; the call must be asked anew.")
    ends = await _end_of(ctx, delegation, of_call, now)
    event, call_event = _EVENTS[verdict]
    moved = advance(approval, event, now, ends=ends, by=who.actor, note=note[:1000])
    if isinstance(moved, Refusal):
        return moved
    moves = await moves_of(ctx, approval, moved, call_event, ends, now)
    approves, pending = verdict is Verdict.APPROVE, approval.state is ApprovalState.PENDING
    line = by_approval(approval, Event.ANSWERED, who.actor, trace, now, about=delegation)
    change = Change(
        tenant=who.tenant,
        at=now,
        records=(replace(line, decision=verdict.value, reason=moved.reason, detail=note[:1000]),),
        before=approval.deadline if pending else None,
        alive=alive(marks_of(delegation), delegation.created_at) if approves else frozenset(),
        ledger=await _in_force(ctx, registry) if approves and of_call else (),
        moves=moves,
        revoke=_revoked(registry, approval, verdict, who, now),
    )
    return Plan(change, moved)


async def _in_force(ctx: Context, registry: Registry) -> tuple[tuple[str, int], ...]:
    _, version = await ctx.ledgers.policy(ctx.store, registry.tenant)
    return (("policy", version),)


async def _end_of(ctx: Context, delegation: Delegation, of_call: bool, now: int) -> int:
    """The end of the delegation: fixed already, or the one that this answer would give it."""
    if not of_call:
        return min(delegation.live_until, now + delegation.envelope.credential_ttl_seconds)
    end = (await known(ctx, delegation)).status.end
    return now if end is None else end


def _revoked(
    registry: Registry, approval: Approval, verdict: Verdict, who: Principal, now: int
) -> tuple[Revocation, ...]:
    reason = _ENDS.get(verdict)
    if reason is None or (verdict is Verdict.DENY and spares(registry, approval)):
        return ()
    return (ending(approval, reason, who.actor, now),)
