"""What loads, but is worth a second look by whoever wrote the carnet.yaml: names that lead nowhere."""

from carnet_broker.core.registry import Registry

__all__ = ["doubts", "unowned"]


def unowned(registry: Registry) -> tuple[str, ...]:
    """The agents whose owner is nobody: neither an operator nor a group of one."""
    people = {*registry.operators, *(group for who in registry.operators.values() for group in who.groups)}
    return tuple(
        name for name, agent in sorted(registry.agents.items()) if agent.owner is not None and agent.owner not in people
    )


def doubts(registry: Registry) -> tuple[str, ...]:
    """One sentence each, in a stable order; those of the policy last."""
    found = [
        f"agents.{name}: the owner {registry.agents[name].owner} is neither an operator nor a group of one, so nobody "
        f"is kept from approving what {name} asks"
        for name in unowned(registry)
    ]
    policies = [registry.policy] if registry.shadow is None else [registry.policy, registry.shadow]
    return (*found, *(f"policy {policy.ref.id}: {warning}" for policy in policies for warning in policy.warnings))
