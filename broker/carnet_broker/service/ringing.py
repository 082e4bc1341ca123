"""The signing keys, as an administrator sees and rotates them, and as they stand in every tenant's audit."""

from dataclasses import replace
from functools import partial

from carnet.audit import Kind as Event
from carnet.audit import Record
from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Role
from carnet_broker.core.rows import FOREVER
from carnet_broker.keys import State
from carnet_broker.service.context import Context
from carnet_broker.service.lines import BROKER, by_principal
from carnet_broker.service.permitting import permitted
from carnet_broker.service.principals import Principal
from carnet_broker.service.settling import Plan, Settled, note, refuse, request_digest, settle
from carnet_broker.service.views import KeyLine, KeysView
from carnet_broker.store.base import Change, Key

__all__ = ["record_ring", "rotate_keys", "show_keys"]

_SHARED = Refusal(
    Reason.FORBIDDEN, "The keys sign for other tenants too: rotate them where they are kept, with `carnet keys rotate`."
)


async def show_keys(ctx: Context, who: Principal) -> KeysView | Refusal:
    registry = permitted(ctx, who, Role.VIEWER)
    return registry if isinstance(registry, Refusal) else _view(ctx)


async def rotate_keys(ctx: Context, who: Principal, trace: str) -> KeysView | Refusal:
    """The record comes first: a rotation that could not be recorded does not happen. An admin of one tenant of several
    turns no keys that sign for the others."""
    registry = permitted(ctx, who, Role.ADMIN)
    line = by_principal(who, Event.KEY_ROTATED, trace)
    if isinstance(registry, Refusal):
        return await refuse(ctx.store, line, registry)
    if len(ctx.registries) > 1:
        return await refuse(ctx.store, line, _SHARED)
    await note(ctx.store, replace(line, facts={"retires": ctx.keys.active.kid}))
    ctx.keys.rotate(await ctx.store.now())
    return _view(ctx)


async def record_ring(ctx: Context) -> None:
    """Put the ring in force on record where it is not yet, once per tenant: whoever turned it, here or in its files,
    while the broker ran or while it did not. Raises Unavailable."""
    states = [[key.kid, key.state.value, key.since] for key in ctx.keys.states]
    ring = request_digest(states)
    for tenant in tuple(ctx.registries):
        if ctx.rings.get(tenant) == ring:
            continue
        if isinstance(await settle(ctx.store, partial(_plan, ctx, tenant, ring)), Settled):
            ctx.rings[tenant] = ring


async def _plan(ctx: Context, tenant: str, ring: str, now: int) -> Plan[None]:
    """Its key keeps a ring from being written twice. Every change brings or takes a key, so no ring comes again but
    from a backup."""
    by_state = {state: [key.kid for key in ctx.keys.states if key.state is state] for state in State}
    line = Record(
        at=now,
        tenant=tenant,
        kind=Event.KEY_ROTATED,
        actor=BROKER,
        facts={state.value: kids for state, kids in by_state.items()},
    )
    key = Key(caller=BROKER, delegation="", key=f"ring:{ring}", request=ring, row=ctx.keys.active.kid, until=FOREVER)
    return Plan(Change(tenant=tenant, at=now, records=(line,), key=key), None)


def _view(ctx: Context) -> KeysView:
    states = tuple(KeyLine(kid=key.kid, state=key.state.value, since=key.since) for key in ctx.keys.states)
    return KeysView(active=ctx.keys.active.kid, keys=states, jwks=ctx.keys.jwks())
