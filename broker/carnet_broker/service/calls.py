"""Call: the broker decides, reserves and records one tool call in one commit. Whatever is not an allow is a denial."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from carnet.arguments import digest as arguments_digest
from carnet.audit import Kind as Event
from carnet.audit import Record, argument_digests, clear_fields
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.clear import clear
from carnet.token.marks import marks
from carnet_broker.core.ledgers import MAX_RUN_CALLS
from carnet_broker.core.registry import Host, Registry
from carnet_broker.core.rows import Call, CallState, Delegation
from carnet_broker.core.standing import tool_marks
from carnet_broker.service.bearers import host_name, verify_access
from carnet_broker.service.context import Context
from carnet_broker.service.deciding import Asked, Verdict, decide
from carnet_broker.service.ledgers import Standing
from carnet_broker.service.lines import by_claims, by_principal
from carnet_broker.service.pacing import refuse_call, refuse_full
from carnet_broker.service.principals import Principal
from carnet_broker.service.requests import CallRequest
from carnet_broker.service.reserving import change_of
from carnet_broker.service.settling import (
    Plan,
    Settled,
    note,
    refuse,
    request_digest,
    revoked_reason,
    seen_before,
    settle,
)
from carnet_broker.service.timeouts import time_out_all
from carnet_broker.service.views import CallView, PolicyRef
from carnet_broker.store.base import Conflict, Key, Why

__all__ = ["call"]


@dataclass(frozen=True, slots=True)
class _Opened:
    """Who may ask, for whom, about which host."""

    claims: Claims
    registry: Registry
    host: Host
    guard: str


async def call(
    ctx: Context, guard: Principal | None, request: CallRequest, key: str | None, trace: str
) -> CallView | Refusal:
    """guard None: the child's token in the request is its own bearer."""
    opened = await _open(ctx, guard, request, trace)
    if isinstance(opened, Refusal):
        return opened
    if key is None and not request.preview:
        return Refusal(Reason.REQUEST_INVALID, "Idempotency-Key is required: 128 random bits in hex, one per attempt.")
    asked = await _ask(ctx, opened, request, key, trace)
    if isinstance(asked, Refusal):
        return await refuse_call(ctx.store, ctx.refusals, _line(opened, request, trace), asked)
    if request.preview:
        return await _preview(ctx, asked)
    claims = opened.claims
    async with ctx.locks.hold(claims.txn):
        await time_out_all(ctx, opened.registry, claims.tenant, claims.txn, claims.delegation.id)
        outcome = await settle(ctx.store, lambda now: _plan(ctx, asked, now))
        if isinstance(outcome, Conflict) and outcome.why in (Why.REVOKED, Why.LATE):
            why = Refusal(Reason.EXPIRED) if outcome.why is Why.LATE else revoked_reason(outcome)
            outcome = await settle(ctx.store, lambda now: _refused(ctx, asked, why, now))
    line = _line(opened, request, trace)
    if isinstance(outcome, Settled):
        first = outcome.done.first
        if first is None and _holds_nothing_new(outcome.answer):
            ctx.refusals.add(claims.tenant, claims.txn)
        return await _answered(ctx, asked, first or outcome.answer.id, outcome.done.seq, repeat=first is not None)
    if isinstance(outcome, Refusal) and outcome.reason is Reason.RUN_FULL:
        return await _full(ctx, asked, line, outcome)
    no = outcome if isinstance(outcome, Refusal) else Refusal(Reason.IDEMPOTENCY_MISMATCH)
    return await refuse_call(ctx.store, ctx.refusals, line, no)


def _holds_nothing_new(row: Call) -> bool:
    """A refused call, or one more look at a question that the store holds already."""
    return row.state is CallState.REFUSED or (row.state is CallState.WAITING and row.ledger_version > 0)


async def _full(ctx: Context, asked: Asked, line: Record, full: Refusal) -> CallView | Refusal:
    """A call of a full run, unless it repeats one that was decided before."""
    first = None if asked.key is None else await seen_before(ctx.store, line, asked.key)
    if isinstance(first, str):
        return await _answered(ctx, asked, first, 0, repeat=True)
    return await refuse_full(ctx.store, ctx.refusals, line, full)


async def _open(ctx: Context, guard: Principal | None, request: CallRequest, trace: str) -> _Opened | Refusal:
    """The child's token must verify, be for the guard's own host, and the tool must not be another host's."""
    claims = await verify_access(ctx, request.token)
    if isinstance(claims, Refusal):
        return claims if guard is None else await refuse(ctx.store, _guard_line(guard, request, trace), claims)
    line = replace(by_claims(claims, Event.CALL_DECIDED, trace), tool=request.tool[:128])
    registry = ctx.registry(claims.tenant)
    if isinstance(registry, Refusal):
        return registry
    if claims.is_root:
        return await refuse_call(ctx.store, ctx.refusals, line, Refusal(Reason.ROOT_TOKEN))
    name = host_name(ctx, claims)
    if guard is not None and (guard.tenant != claims.tenant or guard.name != name):
        no = Refusal(Reason.TOKEN_AUD, "The token is for another host.")
        return await refuse(ctx.store, _guard_line(guard, request, trace), no)
    serves = registry.host_of(request.tool)
    if name is None or (serves is not None and serves.name != name):
        no = Refusal(Reason.WRONG_HOST, "Another host serves this tool.")
        return await refuse_call(ctx.store, ctx.refusals, line, no)
    return _Opened(claims, registry, registry.hosts[name], guard.client if guard is not None else "self")


async def _ask(ctx: Context, opened: _Opened, request: CallRequest, key: str | None, trace: str) -> Asked | Refusal:
    claims, registry = opened.claims, opened.registry
    row = await ctx.store.get(Delegation, claims.tenant, claims.delegation.id)
    run = await ctx.store.get(Delegation, claims.tenant, claims.txn)
    if row is None or run is None:
        return Refusal(Reason.TOKEN_CHAIN, "The broker has no record of this delegation.")
    taken = tuple(tool_marks(row, request.tool))
    revoked = await ctx.store.revoked(claims.tenant, taken)
    untils = {mark: entry.until for mark, entry in revoked.items()}
    digest = arguments_digest(
        claims.tenant,
        claims.txn,
        claims.delegation.id,
        opened.host.name,
        request.tool,
        registry.policy.ref.digest,
        dict(request.args),
    )
    uncovered = digest if isinstance(digest, Refusal) else clear(claims, request.tool, request.args, revoked=untils)
    if uncovered is None and registry.lost(row.chain, (request.tool,)):
        uncovered = Refusal(Reason.SCOPE_MISSING, f"{request.tool} was taken from the agent or its parent since.")
    return Asked(
        claims=claims,
        row=row,
        run=run,
        registry=registry,
        host=opened.host,
        guard=opened.guard,
        request=request,
        digest="" if isinstance(digest, Refusal) else digest,
        uncovered=uncovered,
        key=_key(opened, request, key, run.live_until, digest),
        marks=(*marks(claims, opened.host.name), *taken),
        trace=trace,
    )


def _key(opened: _Opened, request: CallRequest, key: str | None, until: int, digest: str | Refusal) -> Key | None:
    if key is None:
        return None
    bound = {"tool": request.tool, "digest": str(digest), "approval": request.approval_id}
    return Key(
        caller=f"guard:{opened.guard}",
        delegation=opened.claims.delegation.id,
        key=f"call:{key}",
        request=request_digest(bound),
        row="",
        until=until,
    )


async def _plan(ctx: Context, asked: Asked, now: int) -> Plan[Call] | Refusal:
    registry, claims = asked.registry, asked.claims
    standing = await ctx.ledgers.read(
        ctx.store, claims.tenant, claims.txn, registry.policy, now, client=asked.run.client
    )
    if isinstance(standing, Refusal):
        return standing
    verdict = decide(asked, standing, now)
    full = await _over(ctx, asked, standing, verdict)
    if full is not None:
        return full
    line = replace(_record(ctx, asked, verdict, now), facts=ctx.shadows.facts(asked, standing, verdict, now))
    return change_of(ctx, asked, verdict, standing, line, now)


async def _over(ctx: Context, asked: Asked, standing: Standing, verdict: Verdict) -> Refusal | None:
    """Whether the run has no call left for this one. A call that waits was counted when it was asked: it still runs
    once it is approved, and only who looks at it for ever is refused."""
    refused = await ctx.refusals.count(ctx.store, asked.claims.tenant, asked.claims.txn)
    if verdict.waiting is None:
        return standing.run.full(refused)
    return None if verdict.spend is not None or refused < MAX_RUN_CALLS else Refusal(Reason.RUN_FULL)


async def _refused(ctx: Context, asked: Asked, why: Refusal, now: int) -> Plan[Call] | Refusal:
    """A denial that needs nothing to hold: the delegation has fallen, and the call is on record as refused."""
    if await ctx.refusals.count(ctx.store, asked.claims.tenant, asked.claims.txn) >= MAX_RUN_CALLS:
        return Refusal(Reason.RUN_FULL)
    verdict = Verdict.deny(why)
    return change_of(ctx, asked, verdict, None, _record(ctx, asked, verdict, now), now)


async def _preview(ctx: Context, asked: Asked) -> CallView | Refusal:
    """Decide and reserve nothing. Only a denial leaves a line: it is the answer that the caller acts on."""
    claims, policy, now = asked.claims, asked.registry.policy, await ctx.store.now()
    standing = await ctx.ledgers.read(ctx.store, claims.tenant, claims.txn, policy, now, client=asked.run.client)
    if isinstance(standing, Refusal):
        return standing
    verdict = decide(asked, standing, now)
    full = await _over(ctx, asked, standing, verdict)
    if full is not None:
        return await refuse_full(ctx.store, ctx.refusals, _record(ctx, asked, Verdict.deny(full), now), full)
    if verdict.decision == "deny":
        ctx.refusals.add(claims.tenant, claims.txn)
        line = _record(ctx, asked, verdict, now)
        await note(ctx.store, replace(line, facts={"preview": True}))
    ref = policy.ref
    return CallView(
        call_id=None,
        decision=verdict.decision,
        state=None,
        reason=verdict.reason,
        detail=verdict.detail,
        rule=verdict.rule,
        policy=PolicyRef(id=ref.id, version=ref.version, digest=ref.digest),
        feed_seq=0,
    )


async def _answered(ctx: Context, asked: Asked, id: str, seq: int, *, repeat: bool) -> CallView | Refusal:
    """The call's row as it is now: for a repeat of the key, that of the first use."""
    row = await ctx.store.get(Call, asked.claims.tenant, id)
    if row is None:
        return Refusal(Reason.INTERNAL, "A call that was just written cannot be read.")
    policy = asked.registry.policy
    waits = row.state is CallState.WAITING
    known = {CallState.WAITING: "require_approval", CallState.REFUSED: "deny"}
    return CallView(
        call_id=row.id,
        decision=known.get(row.state, "allow"),
        state=row.state.value,
        reason=row.reason,
        detail=row.detail,
        rule=row.rule,
        policy=PolicyRef(id=policy.ref.id, version=policy.ref.version, digest=row.policy_digest),
        feed_seq=seq,
        approval_id=row.approval,
        deadline=row.hold_until if waits else None,
        on_denial=policy.approvals.on_denial if waits else None,
        repeat=repeat,
    )


def _line(opened: _Opened, request: CallRequest, trace: str) -> Record:
    line = by_claims(opened.claims, Event.CALL_DECIDED, trace)
    return replace(line, host=opened.host.name, guard=opened.guard, tool=request.tool[:128])


def _guard_line(guard: Principal, request: CallRequest, trace: str) -> Record:
    line = by_principal(guard, Event.CALL_DECIDED, trace)
    return replace(line, host=guard.name, guard=guard.client, tool=request.tool[:128])


def _record(ctx: Context, asked: Asked, verdict: Verdict, now: int) -> Record:
    """What was decided about which arguments: digests under the host's key, in clear only what its list allows."""
    args: Mapping[str, Any] = asked.request.args if asked.digest else {}
    audit_key = ctx.keys.secret("audit-args", asked.claims.tenant, asked.host.name)
    ref = asked.registry.policy.ref
    return replace(
        by_claims(asked.claims, Event.CALL_DECIDED, asked.trace, now),
        host=asked.host.name,
        guard=asked.guard,
        tool=asked.request.tool[:128],
        args=argument_digests(audit_key, args),
        clear=clear_fields(asked.host.clear_fields, asked.request.tool, args),
        resource=verdict.resources,
        policy={"id": ref.id, "version": ref.version, "digest": ref.digest},
        rule=verdict.rule,
        decision=verdict.decision,
        reason=verdict.reason,
        detail=verdict.detail,
    )
