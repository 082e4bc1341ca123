"""What an operator's role covers. The role is the registry's, looked up at every request."""

from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Registry, Role
from carnet_broker.service.context import Context
from carnet_broker.service.principals import Kind, Principal

__all__ = ["permitted"]


def permitted(ctx: Context, who: Principal, needed: Role) -> Registry | Refusal:
    """The operator's registry when the operator is registered in this role or a higher one."""
    registry = ctx.registry(who.tenant)
    if isinstance(registry, Refusal):
        return registry
    operator = registry.operators.get(who.name) if who.kind is Kind.OPERATOR else None
    if operator is None or operator.role < needed:
        return Refusal(Reason.FORBIDDEN, f"This takes the role {needed.name.lower()} or a higher one.")
    return registry
