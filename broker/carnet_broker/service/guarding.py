"""Guards: which host one speaks for, and which calls are its own."""

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.registry import Host
from carnet_broker.core.rows import Call
from carnet_broker.service.bearers import host_name
from carnet_broker.service.context import Context
from carnet_broker.service.principals import Kind, Principal

__all__ = ["guard_id", "host_of_guard", "owner_of"]


def guard_id(guard: Principal | Claims) -> str:
    """How rows and records name the guard: its client id, or "self" for one that speaks with the child's token."""
    return guard.client if isinstance(guard, Principal) else "self"


def host_of_guard(ctx: Context, guard: Principal | Claims) -> Host | Refusal:
    """The one host that this guard serves."""
    registry = ctx.registry(guard.tenant)
    if isinstance(registry, Refusal):
        return registry
    if isinstance(guard, Principal):
        name = guard.name if guard.kind is Kind.HOST else None
    else:
        name = None if guard.is_root else host_name(ctx, guard)
    host = None if name is None else registry.hosts.get(name)
    return Refusal(Reason.FORBIDDEN, "Only the guard of a host may do this.") if host is None else host


async def owner_of(ctx: Context, guard: Principal | Claims, call: str) -> Call | Refusal:
    """A call that this guard opened; another one's reads as if there were none."""
    host = host_of_guard(ctx, guard)
    if isinstance(host, Refusal):
        return host
    row = await ctx.store.get(Call, guard.tenant, call)
    own = row is not None and row.guard == guard_id(guard) and row.host == host.name
    if row is None or not own or (isinstance(guard, Claims) and row.delegation != guard.delegation.id):
        return Refusal(Reason.NOT_FOUND, "This guard opened no call of this id.")
    return row
