"""From a verdict to the change that makes it so: rows, moves, and what must still hold in the commit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from carnet.audit import Record
from carnet.reasons import Refusal
from carnet_broker.core.lifecycle import ApprovalEvent, CallEvent, advance, born
from carnet_broker.core.rows import Approval, ApprovalState, Call, CallState
from carnet_broker.core.standing import alive
from carnet_broker.service.context import Context
from carnet_broker.service.deciding import Asked, Verdict
from carnet_broker.service.ledgers import Standing
from carnet_broker.service.settling import Plan
from carnet_broker.store.base import Change, Move

__all__ = ["change_of"]


def change_of(
    ctx: Context, asked: Asked, verdict: Verdict, standing: Standing | None, line: Record, now: int
) -> Plan[Call] | Refusal:
    """standing None: a denial that holds whatever the run's past is."""
    if verdict.waiting is not None:
        return _continued(asked, verdict, verdict.waiting, standing, line, now)
    row = _row(ctx, asked, verdict, now)
    insert: tuple[Call | Approval, ...] = (row,)
    if verdict.until is not None:
        approval = _approval(asked, row, verdict, verdict.until, now)
        insert = (row, approval)
        line = replace(line, approval=approval.id)
    change = _change(asked, verdict, standing, replace(line, call=row.id), row.id, now)
    return Plan(replace(change, insert=insert), row)


def _continued(
    asked: Asked, verdict: Verdict, call: Call, standing: Standing | None, line: Record, now: int
) -> Plan[Call] | Refusal:
    """The same call again: it goes on waiting, or spends its approval and is dispatched."""
    moves: list[Move] = []
    after: Call = call
    if verdict.spend is not None:
        spent = advance(verdict.spend, ApprovalEvent.SPEND, now, ends=asked.claims.exp)
        if isinstance(spent, Refusal):
            return spent
        moves.append(Move(expect=verdict.spend.version, to=spent))
        moved = advance(call, CallEvent.DISPATCH, now, ends=asked.claims.exp, reason=verdict.reason)
        if isinstance(moved, Refusal):
            return moved
        after = replace(moved, decision="allow")
        moves.append(Move(expect=call.version, to=after))
    line = replace(line, call=call.id, approval=call.approval)
    return Plan(replace(_change(asked, verdict, standing, line, call.id, now), moves=tuple(moves)), after)


def _change(asked: Asked, verdict: Verdict, standing: Standing | None, line: Record, row: str, now: int) -> Change:
    """A denial needs nobody to be alive; an allow and a question are judged with everything that the token carries."""
    claims, denied = asked.claims, verdict.decision == "deny"
    scopes = [f"run:{claims.txn}", "policy"]
    if standing is not None and standing.client is not None:
        scopes.append(f"client:{asked.run.client}")
    if verdict.until is not None:
        scopes.append("pending")
    return Change(
        tenant=claims.tenant,
        at=now,
        records=(line,),
        key=None if asked.key is None else replace(asked.key, row=row),
        before=None if denied else claims.exp,
        alive=frozenset() if denied else alive(asked.marks, claims.iat),
        ledger=() if standing is None else standing.scope(*scopes),
    )


def _row(ctx: Context, asked: Asked, verdict: Verdict, now: int) -> Call:
    claims, policy, tool = asked.claims, asked.registry.policy, asked.request.tool[:128]
    states = {"allow": CallState.RUNNING, "deny": CallState.REFUSED}
    state = states.get(verdict.decision, CallState.WAITING)
    kept = _kept(asked, tool) if state is not CallState.REFUSED else frozenset()
    row = Call(
        id=ctx.ids.call(),
        tenant=claims.tenant,
        run=claims.txn,
        delegation=claims.delegation.id,
        client=asked.run.client,
        guard=asked.guard,
        host=asked.host.name,
        tool=tool,
        effect=policy.facts(tool).effect or "unknown",
        args={name: value for name, value in asked.request.args.items() if name in kept},
        resources=verdict.resources,
        digest=asked.digest,
        state=state,
        decision=verdict.decision,
        reason=verdict.reason,
        detail=verdict.detail,
        rule=verdict.rule,
        policy_digest=policy.ref.digest,
        approval=ctx.ids.approval() if verdict.until is not None else None,
        at=now,
        hold_until=verdict.until,
        finished_at=now if state is CallState.REFUSED else None,
        trace_id=asked.trace,
    )
    return born(row, claims.exp)


def _kept(asked: Asked, tool: str) -> frozenset[str]:
    """The arguments that history rules will ask for again, those of a shadow policy too."""
    policy, shadow = asked.registry.policy, asked.registry.shadow
    return policy.history_args(tool) | (frozenset() if shadow is None else shadow.history_args(tool))


def _approval(asked: Asked, row: Call, verdict: Verdict, until: int, now: int) -> Approval:
    question = Approval(
        id=row.approval or "",
        tenant=row.tenant,
        run=row.run,
        delegation=row.delegation,
        client=row.client,
        subject=row.id,
        digest=row.digest,
        state=ApprovalState.PENDING,
        deadline=until,
        created_at=now,
        policy_digest=row.policy_digest,
        approvers=tuple(sorted(asked.registry.policy.approvals.approvers)),
        shown=_shown(asked, verdict),
        trace_id=asked.trace,
    )
    return born(question, asked.claims.exp)


def _shown(asked: Asked, verdict: Verdict) -> Mapping[str, Any]:
    """Everything the person must see: all arguments, as the tool will get them."""
    return {
        "agent": asked.row.agent,
        "target": None,
        "tool": asked.request.tool,
        "host": asked.host.name,
        "args": dict(asked.request.args),
        "rule": verdict.rule,
        "reason": verdict.detail or verdict.reason,
        "resources": list(verdict.resources),
    }
