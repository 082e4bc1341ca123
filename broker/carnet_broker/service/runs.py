"""Opening and renewing runs, and the tokens of guards."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from carnet.audit import Kind as Event
from carnet.reasons import Reason, Refusal
from carnet_broker.core.derivation import MIN_TTL, root_envelope
from carnet_broker.core.registry import Agent, Registry
from carnet_broker.core.rows import Delegation
from carnet_broker.core.standing import alive, child_marks, marks_of
from carnet_broker.service.context import Context
from carnet_broker.service.lines import by_delegation, by_principal
from carnet_broker.service.principals import Kind, Principal
from carnet_broker.service.settling import Plan, note, refuse, revoked_reason, settle
from carnet_broker.service.tokens import guard_token, root_token
from carnet_broker.service.views import Issued
from carnet_broker.store.base import Change, Conflict, Why

__all__ = ["issue_guard_token", "open_run"]

A = TypeVar("A")


async def open_run(ctx: Context, who: Principal, run_id: str | None, trace: str) -> Issued | Refusal:
    """A new run of the client's agent, or a new token for one that it opened."""
    made = await _opened(ctx, who, run_id, trace)
    if not isinstance(made, Refusal):
        return made
    event = Event.RUN_OPENED if run_id is None else Event.RUN_RENEWED
    return await refuse(ctx.store, by_principal(who, event, trace), made)


async def issue_guard_token(ctx: Context, who: Principal, trace: str) -> Issued | Refusal:
    """RFC 6749 §4.4 with scope=guard: for a client of a host, and for nobody else."""
    if who.kind is not Kind.HOST:
        no = Refusal(
            Reason.SCOPE_NOT_GRANTABLE,
            "Only a client with host: gets a guard token; give the guard its host's client, or none.",
        )
        return await refuse(ctx.store, by_principal(who, Event.MINT_REFUSED, trace), no)
    now = await ctx.store.now()
    made = guard_token(who.tenant, who.client, who.name, ctx.issuer, now, ctx.keys.active)
    if not isinstance(made, Refusal):
        line = replace(by_principal(who, Event.MINTED, trace), host=who.name, decision="allow")
        await note(ctx.store, replace(line, facts={"scope": "guard", "expires_at": now + made.expires_in}))
    return made


async def _opened(ctx: Context, who: Principal, run_id: str | None, trace: str) -> Issued | Refusal:
    registry = ctx.registry(who.tenant)
    if isinstance(registry, Refusal):
        return registry
    agent = registry.agent(who.name) if who.kind is Kind.AGENT else None
    if agent is None:
        return Refusal(Reason.FORBIDDEN, "Only a client with agent: opens runs.")
    if run_id is not None:
        return await _renew(ctx, who, run_id, trace)
    async with ctx.locks.hold(f"client:{who.tenant}/{who.client}"):
        made = await _settled(ctx, lambda now: _plan_opening(ctx, who, registry, agent, trace, now))
        if not isinstance(made, Refusal):
            ctx.open_runs.opened(made)
    return made if isinstance(made, Refusal) else root_token(made, ctx.issuer, made.created_at, ctx.keys.active)


async def _plan_opening(
    ctx: Context, who: Principal, registry: Registry, agent: Agent, trace: str, now: int
) -> Plan[Delegation] | Refusal:
    most = registry.limits.max_open_runs
    if await ctx.open_runs.count(ctx.store, who.tenant, who.client, most, now) >= most:
        return Refusal(Reason.TOO_MANY_RUNS, f"The client has {most} open runs; end one first.")
    policy = await ctx.ledgers.loaded(ctx.store, who.tenant, registry.policy)
    if isinstance(policy, Refusal):
        return policy
    run = _run(ctx.ids.delegation(), who, registry, agent, trace, now)
    change = Change(
        tenant=who.tenant,
        at=now,
        records=(by_delegation(run, Event.RUN_OPENED, who.actor, trace, now),),
        alive=alive(child_marks(run), None),
        ledger=(("policy", policy[1]),),
        insert=(run,),
    )
    return Plan(change, run)


def _run(id: str, who: Principal, registry: Registry, agent: Agent, trace: str, now: int) -> Delegation:
    ttl, policy = registry.limits.run_ttl, registry.policy.ref
    return Delegation(
        id=id,
        tenant=who.tenant,
        run=id,
        parent=None,
        chain=((id, agent.name, who.client),),
        depth=0,
        agent=agent.name,
        client=who.client,
        sub=f"agent:{agent.name}",
        envelope=root_envelope(registry, agent, ttl=ttl, trace_id=trace),
        approval=None,
        digest="",
        policy_id=policy.id,
        policy_version=policy.version,
        policy_digest=policy.digest,
        payload_sha256=None,
        jkt=None,
        resource_count=0,
        facts={},
        created_at=now,
        live_until=now + ttl,
        trace_id=trace,
    )


async def _renew(ctx: Context, who: Principal, run_id: str, trace: str) -> Issued | Refusal:
    run = await ctx.store.get(Delegation, who.tenant, run_id)
    if run is None or run.parent is not None or run.client != who.client or run.agent != who.name:
        return Refusal(Reason.NOT_FOUND, "The client opened no run of this id.")

    async def plan(now: int) -> Plan[int] | Refusal:
        if run.live_until - now < MIN_TTL:
            return Refusal(Reason.EXPIRED, "The run's time is over; open another one.")
        record = by_delegation(run, Event.RUN_RENEWED, who.actor, trace, now)
        opened = alive(marks_of(run), run.created_at)
        return Plan(Change(tenant=run.tenant, at=now, records=(record,), before=run.live_until, alive=opened), now)

    now = await _settled(ctx, plan)
    return now if isinstance(now, Refusal) else root_token(run, ctx.issuer, now, ctx.keys.active)


async def _settled(ctx: Context, plan: Callable[[int], Awaitable[Plan[A] | Refusal]]) -> A | Refusal:
    outcome = await settle(ctx.store, plan)
    if isinstance(outcome, Refusal):
        return outcome
    if isinstance(outcome, Conflict):
        return Refusal(Reason.EXPIRED) if outcome.why is Why.LATE else revoked_reason(outcome)
    return outcome.answer
