"""What keeps the broker from being ready, one sentence each."""

from collections.abc import Sequence

from carnet.reasons import Refusal
from carnet_broker.service.context import Context
from carnet_broker.store.base import Unavailable

__all__ = ["problems"]


async def problems(ctx: Context) -> Sequence[str]:
    """Empty: store, keys and policies are well."""
    health = await ctx.store.health()
    found = list(health.problems)
    if not ctx.registries:
        found.append("no tenant is configured: name a carnet.yaml in CARNET_CONFIG")
    stale = 0
    for tenant, registry in ctx.registries.items():
        try:
            loaded = await ctx.ledgers.loaded(ctx.store, tenant, registry.policy)
        except Unavailable as error:
            return [*found, f"the store does not answer: {error}"]
        stale += isinstance(loaded, Refusal)
    if stale:  # how many, not which: anybody may read this
        found.append(f"for {stale} tenants the policy in force is not the loaded one: reload the configuration")
    return found
