"""Spawn: delegation, approval and audit line in one commit. Nothing of it is asked for, all of it is derived."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from carnet.arguments import canonical
from carnet.audit import Kind as Event
from carnet.audit import Record
from carnet.reasons import Reason, Refusal
from carnet.task import Task, parse_task
from carnet.token.claims import Claims
from carnet_broker.core.derivation import derive, find_target, known_facts
from carnet_broker.core.digests import envelope_digest, envelope_document, payload_digest
from carnet_broker.core.lifecycle import born, deadline
from carnet_broker.core.registry import Agent, Registry
from carnet_broker.core.rows import Approval, ApprovalState, Delegation, Envelope
from carnet_broker.core.standing import alive, child_marks, host_marks, marks_of
from carnet_broker.core.status import State
from carnet_broker.service.context import Context
from carnet_broker.service.ledgers import Standing
from carnet_broker.service.lines import by_claims, by_delegation
from carnet_broker.service.minting import tokens_of
from carnet_broker.service.questions import DENIALS, too_many
from carnet_broker.service.requests import SpawnRequest
from carnet_broker.service.settling import (
    Plan,
    Settled,
    refuse,
    request_digest,
    revoked_reason,
    seen_before,
    settle,
)
from carnet_broker.service.showing import delegation_view, look_up
from carnet_broker.service.timeouts import time_out_all
from carnet_broker.service.views import DelegationView
from carnet_broker.store.base import Change, Conflict, Key, Why

__all__ = ["spawn"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A spawn after everything was checked that does not depend on the run's past."""

    parent: Delegation
    parent_agent: Agent
    target: Agent
    task: Task
    payload_sha256: str | None
    registry: Registry
    request: SpawnRequest
    key: str | None
    trace: str


async def spawn(
    ctx: Context, caller: Claims, request: SpawnRequest, key: str | None, trace: str
) -> DelegationView | Refusal:
    line = replace(by_claims(caller, Event.SPAWN_REFUSED, trace), target=request.target[:128])
    if caller.delegation.depth > 0:  # before the key is looked at: it is the parent's, and so is what it once made
        deep = Refusal(Reason.DEPTH_EXCEEDED, "A delegated child cannot delegate further: the depth is one level.")
        return await refuse(ctx.store, line, deep)
    asked = await _checked(ctx, caller, request, key, trace)
    if isinstance(asked, Refusal):
        return await _refused(ctx, line, asked, _key(caller, request, key, line.run or "", caller.exp))
    async with ctx.locks.hold(asked.parent.run):
        await time_out_all(ctx, asked.registry, asked.parent.tenant, asked.parent.run, asked.parent.id)
        outcome = await settle(ctx.store, lambda now: _plan(ctx, asked, now))
    if isinstance(outcome, Settled):
        return await _answered(ctx, asked, outcome.done.first or outcome.answer)
    no = _why(outcome) if isinstance(outcome, Conflict) else outcome
    return await _refused(ctx, line, no, _key(caller, request, key, asked.parent.run, asked.parent.live_until))


async def _refused(ctx: Context, line: Record, no: Refusal, key: Key | None) -> DelegationView | Refusal:
    """A refusal is recorded, unless the same request was granted before: then its lost answer is given again."""
    first = None if key is None else await seen_before(ctx.store, line, key)
    if isinstance(first, Refusal):
        return await refuse(ctx.store, line, first)
    found = None if first is None else await look_up(ctx, line.tenant, first)
    registry = ctx.registry(line.tenant)
    if found is None or isinstance(registry, Refusal):
        return await refuse(ctx.store, line, no)
    return await delegation_view(ctx, registry, found)


async def _checked(
    ctx: Context, caller: Claims, request: SpawnRequest, key: str | None, trace: str
) -> _Asked | Refusal:
    registry = ctx.registry(caller.tenant)
    if isinstance(registry, Refusal):
        return registry
    parent = await ctx.store.get(Delegation, caller.tenant, caller.delegation.id)
    agent = registry.agent(caller.delegation.agent)
    if parent is None or agent is None:
        return Refusal(Reason.TOKEN_CHAIN, "The broker knows no such run, or its agent is not registered any more.")
    target = find_target(registry, agent, request.target)
    if isinstance(target, Refusal):
        return target
    task = parse_task(request.task)
    if isinstance(task, Refusal):
        return task
    problem = target.handoff.check(request.payload) if target.handoff is not None else None
    if problem is not None:
        return Refusal(Reason.PAYLOAD_INVALID, f"The payload for {target.name} is not valid: {problem}.")
    if isinstance(canonical(dict(request.ceilings)), Refusal):
        return Refusal(Reason.CEILING_INVALID, "The ceilings are no plain JSON values.")
    hashed = None if request.payload is None else _hashed(request.payload)
    if isinstance(hashed, Refusal):
        return hashed
    return _Asked(parent, agent, target, task, hashed, registry, request, key, trace)


def _hashed(payload: Any) -> str | Refusal:
    plain = canonical({"payload": payload})
    if isinstance(plain, Refusal):
        return Refusal(Reason.PAYLOAD_INVALID, f"The payload is no plain JSON value: {plain}")
    return payload_digest(payload)


async def _plan(ctx: Context, asked: _Asked, now: int) -> Plan[str] | Refusal:
    parent, registry = asked.parent, asked.registry
    standing = await ctx.ledgers.read(ctx.store, parent.tenant, parent.run, registry.policy, now)
    if isinstance(standing, Refusal):
        return standing
    counted = standing.run.counted(now)
    envelope = derive(
        parent=parent,
        parent_agent=asked.parent_agent,
        target=asked.target,
        task=asked.task,
        requested_ttl=asked.request.ttl,
        requested_ceilings=asked.request.ceilings or None,
        registry=registry,
        counted=counted,
        left=parent.live_until - now,
        trace_id=asked.trace,
    )
    if isinstance(envelope, Refusal):
        return envelope
    if envelope.level >= registry.limits.bind_from_level:
        return Refusal(Reason.BINDING_REQUIRED, f"Tokens of level {envelope.level} must be bound to a key here.")
    child = _child(ctx, asked, envelope, counted, now)
    again = standing.run.asked(child.digest, now)
    if again is not None:
        return _repeat(asked, again, now)
    approval = _approval(asked, child, standing, now)
    return approval if isinstance(approval, Refusal) else _change(ctx, asked, child, approval, standing, now)


def _child(ctx: Context, asked: _Asked, envelope: Envelope, counted: int, now: int) -> Delegation:
    parent, target, policy = asked.parent, asked.target, asked.registry.policy.ref
    id = ctx.ids.delegation()
    return Delegation(
        id=id,
        tenant=parent.tenant,
        run=parent.run,
        parent=parent.id,
        chain=(*parent.chain, (id, target.name, parent.client)),
        depth=parent.depth + 1,
        agent=target.name,
        client=parent.client,
        sub=parent.sub,
        envelope=envelope,
        approval=ctx.ids.approval(),
        digest=envelope_digest(
            run=parent.run,
            parent=parent.id,
            agent=target.name,
            envelope=envelope,
            payload_sha256=asked.payload_sha256,
            policy_digest=policy.digest,
            jkt=None,
        ),
        policy_id=policy.id,
        policy_version=policy.version,
        policy_digest=policy.digest,
        payload_sha256=asked.payload_sha256,
        jkt=None,
        resource_count=asked.task.resource_count,
        facts=known_facts(asked.registry, asked.task, envelope.tools, counted),
        created_at=now,
        live_until=parent.live_until,
        trace_id=asked.trace,
    )


def _approval(asked: _Asked, child: Delegation, standing: Standing, now: int) -> Approval | Refusal:
    """The event that every delegation is linked to: a question to people, or the policy's own answer at once."""
    approvals, ref = asked.registry.policy.approvals, asked.registry.policy.ref
    pending = child.envelope.approval_required
    until = deadline(now, approvals.timeout, child.live_until) if pending else now
    if pending:
        refused = _may_ask(child, standing, until, now)
        if refused is not None:
            return refused
    row = Approval(
        id=child.approval or "",
        tenant=child.tenant,
        run=child.run,
        delegation=child.id,
        client=child.client,
        subject=child.id,
        digest=child.digest,
        state=ApprovalState.PENDING if pending else ApprovalState.APPROVED,
        deadline=until,
        created_at=now,
        policy_digest=child.policy_digest,
        approvers=tuple(sorted(approvals.approvers)) if pending else (),
        answered_at=None if pending else now,
        answered_by=None if pending else f"policy:{ref.id}@{ref.version}",
        reason="" if pending else Reason.APPROVED.value,
        shown=_shown(asked, child) if pending else None,
        trace_id=asked.trace,
    )
    return born(row, child.live_until)


def _may_ask(child: Delegation, standing: Standing, until: int, now: int) -> Refusal | None:
    if standing.run.spawn_denied(child.digest):
        return Refusal(Reason.DENIED_BEFORE, "A person denied this very delegation in this run.")
    if standing.run.spawns_denied(child.agent) >= DENIALS:
        return Refusal(
            Reason.DENIED_BEFORE,
            f"{DENIALS} delegations to {child.agent} were denied in this run; no further is asked.",
        )
    if until <= now:
        return Refusal(Reason.TTL_TOO_SHORT, "The run ends before anybody could answer.")
    return too_many(standing, None, child.client, now)


def _shown(asked: _Asked, child: Delegation) -> Mapping[str, Any]:
    return {
        "agent": asked.parent.agent,
        "target": child.agent,
        "task": asked.task.to_wire(),
        "payload": asked.request.payload,
        "envelope": envelope_document(child.envelope),
        "facts": child.facts,
        "reason": f"level {child.envelope.level} needs a person's approval",
    }


def _change(
    ctx: Context, asked: _Asked, child: Delegation, approval: Approval, standing: Standing, now: int
) -> Plan[str] | Refusal:
    parent, pending = asked.parent, approval.state is ApprovalState.PENDING
    named = () if pending or not asked.request.hosts else _named(asked, child)
    if isinstance(named, Refusal):
        return named
    made = tokens_of(ctx, asked.registry, child, approval, named, now) if named else {}
    if isinstance(made, Refusal):
        return made
    line = replace(
        by_delegation(child, Event.SPAWNED, f"agent:{parent.agent}", asked.trace, now),
        target=child.agent,
        decision="require_approval" if pending else "allow",
        reason=(Reason.APPROVAL_PENDING if pending else Reason.APPROVED).value,
        facts={**child.facts, "envelope": envelope_document(child.envelope), "hosts": list(named)},
    )
    change = Change(
        tenant=child.tenant,
        at=now,
        records=(line,),
        key=_row_key(asked, child.id),
        before=parent.live_until,
        alive=alive(marks_of(parent), parent.created_at) | alive(child_marks(child) | host_marks(named), None),
        ledger=standing.scope(f"run:{child.run}", "policy", *(("pending",) if pending else ())),
        insert=(child, approval),
    )
    return Plan(change, child.id)


def _named(asked: _Asked, child: Delegation) -> tuple[str, ...] | Refusal:
    mine = tuple(host.name for host in asked.registry.hosts_of(child.envelope.tools))
    if asked.request.hosts == ("*",):
        return mine
    unknown = [name for name in asked.request.hosts if name not in mine]
    if unknown:
        return Refusal(Reason.HOST_UNKNOWN, f"No host of this name serves a tool of the delegation: {unknown[0][:64]}.")
    return asked.request.hosts


def _repeat(asked: _Asked, again: Delegation, now: int) -> Plan[str]:
    """The same spawn while the first one waits: the same question, not another one."""
    line = replace(
        by_delegation(again, Event.SPAWNED, f"agent:{asked.parent.agent}", asked.trace, now),
        target=again.agent,
        decision="require_approval",
        reason=Reason.APPROVAL_PENDING.value,
        facts={"repeat": True},
    )
    parent = asked.parent
    change = Change(
        tenant=again.tenant,
        at=now,
        records=(line,),
        key=_row_key(asked, again.id),
        before=parent.live_until,
        alive=alive(marks_of(again), again.created_at),
    )
    return Plan(change, again.id)


def _row_key(asked: _Asked, row: str) -> Key | None:
    parent = asked.parent
    made = _key_of(parent.client, parent.id, asked.request, asked.key, parent.live_until)
    return None if made is None else replace(made, row=row)


def _key(caller: Claims, request: SpawnRequest, key: str | None, run: str, until: int) -> Key | None:
    return _key_of(caller.client_id, run, request, key, until)


def _key_of(client: str, run: str, request: SpawnRequest, key: str | None, until: int) -> Key | None:
    if key is None:
        return None
    try:
        bound = request_digest(
            {
                "target": request.target,
                "task": dict(request.task),
                "payload": request.payload,
                "ttl": request.ttl,
                "hosts": list(request.hosts),
                "ceilings": dict(request.ceilings),
            }
        )
    except (ValueError, TypeError, RecursionError):
        return None  # no plain JSON: it is refused, and a refusal holds no key
    return Key(caller=client, delegation=run, key=f"spawn:{key}", request=bound, row="", until=until)


def _why(conflict: Conflict) -> Refusal:
    if conflict.why is Why.KEY:
        return Refusal(Reason.IDEMPOTENCY_MISMATCH)
    return Refusal(Reason.EXPIRED, "The run's time is over.") if conflict.why is Why.LATE else revoked_reason(conflict)


async def _answered(ctx: Context, asked: _Asked, id: str) -> DelegationView | Refusal:
    """The delegation as it is now, with the tokens that the request named while it is active."""
    found = await look_up(ctx, asked.parent.tenant, id)
    if found is None:
        return Refusal(Reason.INTERNAL, "A delegation that was just written cannot be read.")
    if not asked.request.hosts or found.status.state is not State.ACTIVE or found.approval is None:
        return await delegation_view(ctx, asked.registry, found)
    named = _named(asked, found.row)
    if isinstance(named, Refusal):
        return named
    made = tokens_of(ctx, asked.registry, found.row, found.approval, named, found.now)
    return made if isinstance(made, Refusal) else await delegation_view(ctx, asked.registry, found, made)
