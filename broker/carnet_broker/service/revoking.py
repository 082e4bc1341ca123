"""Revoke: one record, however many descendants. The store first, then the feed, both in the same commit."""

from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.audit import Record
from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Role
from carnet_broker.core.rows import FOREVER, Revocation
from carnet_broker.core.status import State
from carnet_broker.service.bearers import genuine
from carnet_broker.service.context import Context
from carnet_broker.service.falling import MOST, carrying
from carnet_broker.service.following import LOST, seen_guards
from carnet_broker.service.lines import by_principal
from carnet_broker.service.marking import Target, target_of, until_of
from carnet_broker.service.permitting import permitted
from carnet_broker.service.principals import Kind, Principal
from carnet_broker.service.settling import Plan, note, refuse, settle
from carnet_broker.service.showing import known
from carnet_broker.service.views import Fallen
from carnet_broker.store.base import Change, Committed, Conflict

__all__ = ["revoke", "revoke_token"]


async def revoke(
    ctx: Context, who: Principal, mark: str, until: int | str | None, reason: str, dry_run: bool, trace: str
) -> Fallen | Refusal:
    line = replace(by_principal(who, Event.REVOKE_REFUSED, trace), mark=mark[:300], detail=reason[:1000])
    target = await _allowed(ctx, who, mark)
    if isinstance(target, Refusal):
        return await refuse(ctx.store, line, target)
    reach = until_of(target, until, await ctx.store.now())
    if isinstance(reach, Refusal):
        return await refuse(ctx.store, line, reach)
    falls = await _falls(ctx, target, reach)
    if dry_run:
        return await _fallen(ctx, target, reach, falls, 0)
    done = await _revoked(ctx, who, target, None if until is None and not target.single else reach, reason, trace)
    return done if isinstance(done, Refusal) else await _fallen(ctx, target, reach, falls, done.seq)


async def revoke_token(ctx: Context, client: Principal, token: str, trace: str) -> Refusal | None:
    """RFC 7009 §2: the client's own token or one below its run ends its delegation; for any other nothing happens."""
    opened = genuine(ctx, token)
    claims = None if isinstance(opened, Refusal) else opened[0]
    if claims is None or claims.tenant != client.tenant:
        return None
    if client.kind is not Kind.AGENT or claims.client_id != client.client:
        line = replace(by_principal(client, Event.REVOKE_REFUSED, trace), mark=f"dlg:{claims.delegation.id}")
        await refuse(ctx.store, line, Refusal(Reason.FORBIDDEN, "The token is another client's."))
        return None
    target = Target(claims.tenant, f"dlg:{claims.delegation.id}")
    done = await _revoked(ctx, client, target, FOREVER, Reason.REVOKED.value, trace)
    return done if isinstance(done, Refusal) else None


async def _allowed(ctx: Context, who: Principal, mark: str) -> Target | Refusal:
    registry = permitted(ctx, who, Role.OPERATOR)
    if isinstance(registry, Refusal):
        return registry
    target = await target_of(ctx, registry, mark)
    if isinstance(target, Refusal) or target.role is Role.OPERATOR:
        return target
    enough = permitted(ctx, who, target.role)
    return enough if isinstance(enough, Refusal) else target


async def _revoked(
    ctx: Context, who: Principal, target: Target, until: int | None, reason: str, trace: str
) -> Committed | Refusal:
    """until None: the time of the commit, which the store counts to the end of."""

    async def plan(now: int) -> Plan[None] | Refusal:
        reach = now if until is None else max(until, now)
        line = replace(_line(who, target, reach, reason, trace), at=now, tenant=target.tenant)
        gone = Revocation(
            tenant=target.tenant, mark=target.mark, until=reach, at=now, reason=_words(reason), actor=who.actor
        )
        return Plan(Change(tenant=target.tenant, at=now, records=(line,), revoke=(gone,)), None)

    if target.tenant != who.tenant:  # nobody reads the system's audit: the act stands first in the operator's own
        await note(ctx.store, _line(who, target, FOREVER, reason, trace))
    outcome = await settle(ctx.store, plan)
    if isinstance(outcome, Conflict):
        return Refusal(Reason.CONTENDED)
    return outcome if isinstance(outcome, Refusal) else outcome.done


def _line(who: Principal, target: Target, reach: int, reason: str, trace: str) -> Record:
    return replace(
        by_principal(who, Event.REVOKED, trace),
        mark=target.mark,
        cause=target.mark,
        reason=Reason.REVOKED.value,
        detail=reason[:1000],
        facts={"until": reach},
    )


def _words(reason: str) -> str:
    """What the operator wrote, told apart from the codes by which other ends are known."""
    return f"operator: {reason[:200]}" if reason in {code.value for code in Reason} else reason[:200]


async def _falls(ctx: Context, target: Target, until: int) -> tuple[str, ...]:
    """Ids of what lives now and would not live on."""
    now, found = await ctx.store.now(), []
    if target.mark.startswith("key:"):
        return ()
    async for row in carrying(ctx, target.tenant, target.mark, now):
        state = (await known(ctx, row)).status
        issued = row.created_at if state.start is None else state.start
        if state.state is not State.ENDED and issued <= until:
            found.append(row.id)
        if len(found) >= MOST:
            break
    return tuple(found)


async def _fallen(ctx: Context, target: Target, until: int, falls: tuple[str, ...], seq: int) -> Fallen:
    now = await ctx.store.now()
    guards = [row for row in await seen_guards(ctx, target.tenant) if now - row.at <= LOST]
    return Fallen(
        mark=target.mark,
        until=until,
        seq=seq,
        falls=falls,
        count=len(falls),
        guards_total=len(guards),
        guards_applied=sum(1 for row in guards if row.seq >= seq > 0),
    )
