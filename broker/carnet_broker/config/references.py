"""What the sections of a carnet.yaml say about each other: every name must exist, every tool have exactly one host."""

from carnet.reasons import Refusal
from carnet_broker.core.ceilings import combine
from carnet_broker.core.registry import Registry, Role
from carnet_policy.reading import Part

__all__ = ["check_references"]


def check_references(root: Part, registry: Registry) -> None:
    """Raises PolicyError that points at the first name that leads nowhere."""
    sections = root.mapping()
    _tools_have_one_host(sections["hosts"], registry)
    for name, entry in sections["agents"].mapping().items():
        _agent(name, entry, registry)
    for name, entry in sections["clients"].mapping().items() if "clients" in sections else ():
        _client(name, entry, registry)
    _secrets_differ(sections.get("clients"), registry)
    _approvers_exist(sections["policies"], registry)


def _tools_have_one_host(part: Part, registry: Registry) -> None:
    served: dict[str, str] = {}
    for name, entry in part.mapping().items():
        for tool in sorted(registry.hosts[name].tools):
            if tool in served:
                raise entry.error(f"{tool} is served by {served[tool]} and by {name}; every tool has exactly one host")
            served[tool] = name


def _agent(name: str, entry: Part, registry: Registry) -> None:
    agent, given = registry.agents[name], entry.mapping()
    for key, tools in (("tools", agent.tools), ("grants", agent.grants)):
        for tool in sorted(tools):
            if registry.host_of(tool) is None:
                raise given[key].error(f"no host serves {tool} of {name}; add it to the tools of one host")
    for target in sorted(agent.callable_agents):
        child = registry.agents.get(target)
        if child is None:
            raise given["callable_agents"].error(
                f"{name} may call {target}, which is no agent here; add it or remove it"
            )
        shared = child.tools & (agent.tools | agent.grants)
        combined = combine((agent.ceilings, child.ceilings), shared)
        if isinstance(combined, Refusal):
            raise given["callable_agents"].error(f"{name} may call {target}, but {combined.detail.removesuffix('.')}")


def _client(name: str, entry: Part, registry: Registry) -> None:
    client, given = registry.clients[name], entry.mapping()
    if client.agent is not None and client.agent not in registry.agents:
        raise given["agent"].error(f"{client.agent} is no agent here; add it under agents or correct the name")
    if client.host is not None and client.host not in registry.hosts:
        raise given["host"].error(f"{client.host} is no host here; add it under hosts or correct the name")


def _secrets_differ(part: Part | None, registry: Registry) -> None:
    held: dict[str, str] = {}
    for name, entry in part.mapping().items() if part is not None else ():
        secret = registry.clients[name].secret_sha256
        if secret is not None and secret in held:
            raise entry.error(f"{name} and {held[secret]} have one secret; give each client its own")
        if secret is not None:
            held[secret] = name


def _approvers_exist(part: Part, registry: Registry) -> None:
    able = [who for who in registry.operators.values() if who.role >= Role.APPROVER and who.passphrase is not None]
    for group in sorted(registry.policy.approvals.approvers):
        if not any(group in who.groups for who in able):
            raise part.error(
                f"the policy lets {group} approve, but no operator with a passphrase and the role approver is in it; "
                "add the group to an operator"
            )
