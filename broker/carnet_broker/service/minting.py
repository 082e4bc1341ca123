"""Mint: a delegation's tokens, one per host. Every ancestor is checked inside the commit; a repeat signs the same."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.registry import Registry
from carnet_broker.core.rows import Approval, Delegation
from carnet_broker.core.standing import alive, host_marks, marks_of
from carnet_broker.core.status import State
from carnet_broker.service.context import Context
from carnet_broker.service.lines import by_claims, by_delegation
from carnet_broker.service.settling import Plan, refuse, revoked_reason, settle
from carnet_broker.service.showing import known
from carnet_broker.service.timeouts import time_out_all
from carnet_broker.service.tokens import child_token
from carnet_broker.service.views import Issued
from carnet_broker.store.base import Change, Conflict, Why

__all__ = ["mint", "tokens_of"]

Tokens = Mapping[str, Issued]


async def mint(
    ctx: Context, caller: Claims, delegation: str, hosts: Sequence[str] | None, trace: str
) -> Tokens | Refusal:
    """All at once or none: hosts None = every host that serves a tool of the delegation."""
    made = await _minted(ctx, caller, delegation, hosts, trace)
    if not isinstance(made, Refusal):
        return made
    line = replace(by_claims(caller, Event.MINT_REFUSED, trace), facts={"delegation": delegation[:128]})
    return await refuse(ctx.store, line, made)


def tokens_of(
    ctx: Context, registry: Registry, row: Delegation, approval: Approval, hosts: Sequence[str], now: int
) -> Tokens | Refusal:
    """Sign one token per host, with the start and the end that the approval fixed."""
    start = now if approval.answered_at is None else approval.answered_at
    end = min(row.live_until, start + row.envelope.credential_ttl_seconds)
    made: dict[str, Issued] = {}
    for name in hosts:
        host = registry.hosts[name]
        token = child_token(row, host, ctx.issuer, start=start, end=end, now=now, signer=ctx.keys.active)
        if isinstance(token, Refusal):
            return token
        made[name] = token
    return made


async def _minted(
    ctx: Context, caller: Claims, delegation: str, hosts: Sequence[str] | None, trace: str
) -> Tokens | Refusal:
    if caller.delegation.depth > 0:
        return Refusal(Reason.DEPTH_EXCEEDED, "Tokens are minted by the run's root token, never by a child's.")
    registry = ctx.registry(caller.tenant)
    if isinstance(registry, Refusal):
        return registry
    row = await ctx.store.get(Delegation, caller.tenant, delegation)
    if row is None or row.run != caller.txn:
        return Refusal(Reason.NOT_FOUND, "The run has no delegation of this id.")
    if row.parent is None:
        return Refusal(Reason.HOST_UNKNOWN, "A run has no tools: spawn a delegation, to itself if need be.")
    mine = [host.name for host in registry.hosts_of(row.envelope.tools)]
    named = mine if hosts is None else list(dict.fromkeys(hosts))
    if not named or not set(named) <= set(mine):
        return Refusal(Reason.HOST_UNKNOWN, f"The delegation's hosts are {', '.join(mine) or 'gone'}.")
    await time_out_all(ctx, registry, row.tenant, row.run, row.id)
    outcome = await settle(ctx.store, lambda now: _plan(ctx, registry, row, named, caller, trace, now))
    if isinstance(outcome, Conflict):
        return Refusal(Reason.EXPIRED) if outcome.why is Why.LATE else revoked_reason(outcome)
    return outcome if isinstance(outcome, Refusal) else outcome.answer


async def _plan(
    ctx: Context, registry: Registry, row: Delegation, hosts: list[str], caller: Claims, trace: str, now: int
) -> Plan[Tokens] | Refusal:
    found = await known(ctx, row)
    state = found.status
    if state.state is State.PENDING:
        return Refusal(Reason.APPROVAL_PENDING, "Nobody has approved the delegation yet; no token exists.")
    if state.reason is not None or state.start is None or found.approval is None:
        return Refusal(state.reason or Reason.INTERNAL, "The delegation has ended.")
    lost = registry.lost(row.chain, row.envelope.tools)
    if lost:
        no = f"The registry changed since the spawn; these may not be called or given any more: {', '.join(lost)}."
        return Refusal(Reason.SCOPE_NOT_GRANTABLE, no)
    made = tokens_of(ctx, registry, row, found.approval, hosts, now)
    if isinstance(made, Refusal):
        return made
    line = by_delegation(row, Event.MINTED, f"agent:{caller.delegation.agent}", trace, now)
    line = replace(line, decision="allow", facts={"hosts": hosts})
    judged = alive(marks_of(row) | host_marks(hosts), state.start)
    return Plan(Change(tenant=row.tenant, at=now, records=(line,), before=state.end, alive=judged), made)
