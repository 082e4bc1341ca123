"""Which policy is in force: a row in the store, so that every node decides by the same one."""

from carnet.audit import Kind as Event
from carnet.audit import Record
from carnet.reasons import Refusal
from carnet_broker.core.registry import Registry
from carnet_broker.core.rows import PolicyInForce
from carnet_broker.service.context import Context
from carnet_broker.service.lines import BROKER
from carnet_broker.service.settling import Plan, settle
from carnet_broker.store.base import Change, Unavailable

__all__ = ["activate_policy"]


async def activate_policy(ctx: Context, tenant: str) -> None:
    """Put the loaded policy in force when another one is. A history rule that stays keeps its `since`; a new one counts
    from now, but from the beginning where there was no policy before. Raises Unavailable."""
    registry = ctx.registries[tenant]
    before, _ = await ctx.ledgers.policy(ctx.store, tenant)
    if before is not None and before.digest == registry.policy.ref.digest:
        return
    outcome = await settle(ctx.store, lambda now: _plan(ctx, registry, now))
    if isinstance(outcome, Refusal):
        raise Unavailable(f"the policy of {tenant} could not be put in force: {outcome}")


async def _plan(ctx: Context, registry: Registry, now: int) -> Plan[None] | Refusal:
    before, version = await ctx.ledgers.policy(ctx.store, registry.tenant)
    policy, ref = registry.policy, registry.policy.ref
    known = {} if before is None else before.history
    row = PolicyInForce(
        tenant=registry.tenant,
        digest=ref.digest,
        id=ref.id,
        version=ref.version,
        since=now,
        history={rule: known.get(rule, 0 if before is None else now) for rule in policy.history_ids},
    )
    record = Record(
        at=now,
        tenant=registry.tenant,
        kind=Event.POLICY_CHANGED,
        actor=BROKER,
        policy={"id": ref.id, "version": ref.version, "digest": ref.digest},
        facts={"before": None if before is None else before.digest},
    )
    change = Change(tenant=registry.tenant, at=now, records=(record,), ledger=(("policy", version),), insert=(row,))
    return Plan(change, None)
