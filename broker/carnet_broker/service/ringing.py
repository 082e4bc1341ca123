"""The signing keys, as an administrator sees and rotates them."""

from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.reasons import Refusal
from carnet_broker.core.registry import Role
from carnet_broker.service.context import Context
from carnet_broker.service.lines import by_principal
from carnet_broker.service.permitting import permitted
from carnet_broker.service.principals import Principal
from carnet_broker.service.settling import note
from carnet_broker.service.views import KeyLine, KeysView

__all__ = ["rotate_keys", "show_keys"]


async def show_keys(ctx: Context, who: Principal) -> KeysView | Refusal:
    registry = permitted(ctx, who, Role.VIEWER)
    return registry if isinstance(registry, Refusal) else _view(ctx)


async def rotate_keys(ctx: Context, who: Principal, trace: str) -> KeysView | Refusal:
    """The record comes first: a rotation that could not be recorded does not happen."""
    registry = permitted(ctx, who, Role.ADMIN)
    if isinstance(registry, Refusal):
        return registry
    before = ctx.keys.active.kid
    await note(ctx.store, replace(by_principal(who, Event.KEY_ROTATED, trace), facts={"retires": before}))
    ctx.keys.rotate(await ctx.store.now())
    return _view(ctx)


def _view(ctx: Context) -> KeysView:
    states = tuple(KeyLine(kid=key.kid, state=key.state.value, since=key.since) for key in ctx.keys.states)
    return KeysView(active=ctx.keys.active.kid, keys=states, jwks=ctx.keys.jwks())
