"""Follow: what guards must know within a second. A store that does not answer gives no freshness: its error passes."""

from dataclasses import replace

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.registry import Role
from carnet_broker.core.rows import GuardSeen
from carnet_broker.core.standing import reason_of
from carnet_broker.service.context import SYSTEM, Context
from carnet_broker.service.guarding import host_of_guard
from carnet_broker.service.paging import walk
from carnet_broker.service.permitting import permitted
from carnet_broker.service.principals import Principal
from carnet_broker.service.views import FeedView, GuardList, GuardView, HostView, PolicyView
from carnet_broker.store.base import Feed, Index, Where

__all__ = ["JOURNAL", "LOST", "MAX_WAIT", "acknowledge", "feed", "list_guards", "policy_for", "seen_guards"]

MAX_WAIT = 0.4  # seconds: freshness counts from when the request was sent
LOST = 10  # seconds of silence after which a guard process is counted no more; it refuses everything by itself
JOURNAL = "journal/"  # what the counters of journals begin with, beside those of guard processes


async def feed(
    ctx: Context,
    guard: Principal | Claims,
    *,
    epoch: str,
    after: int,
    wait: float,
    system_epoch: str,
    system_after: int,
    instance: str | None,
) -> FeedView | Refusal:
    host = host_of_guard(ctx, guard)
    if isinstance(host, Refusal):
        return host
    if instance is not None:
        refused = await acknowledge(ctx, guard, instance, epoch, after)
        if refused is not None:
            return refused
    system = await ctx.store.changes(SYSTEM, system_epoch, system_after, 0)
    news = system.snapshot or bool(system.entries)
    mine = await ctx.store.changes(guard.tenant, epoch, after, 0 if news else min(max(wait, 0.0), MAX_WAIT))
    return FeedView(feed=_coded(mine), system=_coded(system))


def _coded(told: Feed) -> Feed:
    """Guards learn the code of a reason: what an operator wrote is for operators."""
    entries = tuple(replace(entry, reason=reason_of(entry.reason).value, actor="") for entry in told.entries)
    return replace(told, entries=entries)


async def acknowledge(ctx: Context, guard: Principal | Claims, instance: str, epoch: str, seq: int) -> Refusal | None:
    """Note what a guard process says it applied. Of another epoch it says nothing about this one."""
    host = host_of_guard(ctx, guard)
    if isinstance(host, Refusal):
        return host
    if not 1 <= len(instance) <= 32 or not instance.isalnum() or not instance.isascii():
        return Refusal(Reason.REQUEST_INVALID, "instance must be 1 to 32 letters and digits.")
    now = await ctx.store.changes(guard.tenant, epoch, max(seq, 0), 0)
    if now.epoch == epoch and 0 <= seq <= now.seq:
        await ctx.store.seen(guard.tenant, f"{_name(guard)}/{instance}", seq)
    return None


async def policy_for(ctx: Context, guard: Principal | Claims) -> PolicyView | Refusal:
    """The policy in force and what concerns the guard's own host."""
    host, registry = host_of_guard(ctx, guard), ctx.registry(guard.tenant)
    if isinstance(host, Refusal):
        return host
    if isinstance(registry, Refusal):
        return registry
    policy = registry.policy
    loaded = await ctx.ledgers.loaded(ctx.store, guard.tenant, policy)
    if isinstance(loaded, Refusal):
        return loaded
    effects = {tool: policy.facts(tool) for tool in sorted(host.tools)}
    return PolicyView(
        digest=policy.ref.digest,
        documents=policy.texts,
        since=loaded[0].history,
        host=HostView(
            name=host.name,
            tenant=guard.tenant,
            issuer=ctx.issuer,
            audience=host.audience,
            tools=tuple(sorted(host.tools)),
            effects={
                tool: {"effect": facts.effect, "resource_arg": facts.resource_arg} for tool, facts in effects.items()
            },
            bind_from_level=registry.limits.bind_from_level,
            staleness={str(level): seconds for level, seconds in registry.limits.staleness.items()},
            audit_key=ctx.keys.secret("audit-args", guard.tenant, host.name),
            clear_fields=tuple(sorted(host.clear_fields)),
        ),
        now=await ctx.store.now(),
    )


async def list_guards(ctx: Context, who: Principal) -> GuardList | Refusal:
    registry = permitted(ctx, who, Role.VIEWER)
    if isinstance(registry, Refusal):
        return registry
    # only the number is asked for: from where the sweeper stands, so that no snapshot is read for it
    seq = (await ctx.store.changes(who.tenant, *ctx.swept.get(who.tenant, ("", 0)), 0)).seq
    now = await ctx.store.now()
    rows = await seen_guards(ctx, who.tenant)
    return GuardList(
        guards=tuple(
            GuardView(guard=row.guard, seq=row.seq, lag=max(0, seq - row.seq), at=row.at, lost=now - row.at > LOST)
            for row in rows
        ),
        seq=seq,
    )


async def seen_guards(ctx: Context, tenant: str) -> tuple[GuardSeen, ...]:
    """Every guard process that has acknowledged something."""
    rows = walk(ctx.store, GuardSeen, tenant, Where(index=Index.GUARDS))
    return tuple([row async for row in rows if not row.guard.startswith(JOURNAL)])


def _name(guard: Principal | Claims) -> str:
    return guard.client if isinstance(guard, Principal) else f"self:{guard.delegation.id}"
