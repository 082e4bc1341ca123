"""Derivation: from what a parent states and what the catalog knows to what a child may do. Nobody asks for a level.

Stated and known facts are taken together and the stricter wins. A tool that was named and cannot be given refuses the
whole spawn: a child that silently loses a tool does harm with the rest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from carnet.reasons import Reason, Refusal
from carnet.task import Task
from carnet.token.names import LEVEL_TTL
from carnet_broker.core.ceilings import combine, parse_ceilings
from carnet_broker.core.registry import Agent, Registry
from carnet_broker.core.rows import Delegation, Envelope

__all__ = ["LEVELS", "MANY", "MIN_TTL", "Level", "derive", "find_target", "known_facts", "root_envelope", "tool_level"]

MIN_TTL = 5  # seconds: a shorter life is refused
MANY = 10  # resources of a run beyond which reads alone are no longer harmless


@dataclass(frozen=True, slots=True)
class Level:
    """What a level may hold. ttl: the built-in bound in seconds, which a deployment may lower."""

    ttl: int
    approval: bool
    holds: str


LEVELS: Mapping[int, Level] = MappingProxyType(
    {
        0: Level(LEVEL_TTL[0], False, "reads"),
        1: Level(LEVEL_TTL[1], False, "reads and writes"),
        2: Level(LEVEL_TTL[2], True, "everything"),
    }
)


def tool_level(registry: Registry, tool: str) -> int:
    """0 for a read, 1 for a write, 2 for what is irreversible, touches pii or secrets, or is not in the catalog."""
    facts = registry.policy.facts(tool)
    if facts.data_class & {"pii", "secret"}:
        return 2
    return {"read": 0, "write": 1}.get(str(facts.effect), 2)


def find_target(registry: Registry, parent: Agent, name: str) -> Agent | Refusal:
    """The agent that this parent may call, by its exact name. An unknown name and one that is not listed read alike."""
    target = registry.agent(name) if name in parent.callable_agents else None
    if target is None:
        return Refusal(
            Reason.TARGET_NOT_ALLOWED, f"{parent.name} may not call {name[:128]!r}: it is not in its callable_agents."
        )
    return target


def root_envelope(registry: Registry, agent: Agent, *, ttl: int, trace_id: str) -> Envelope:
    """The envelope of a run: no tool of its own, no bound on resources, the agent's ceilings for all below it."""
    return Envelope(
        level=0,
        tools=(),
        ceilings=agent.ceilings,
        credential_ttl_seconds=ttl,
        approval_required=False,
        resource_limit=None,
        tenant=registry.tenant,
        trace_id=trace_id,
    )


def derive(
    *,
    parent: Delegation,
    parent_agent: Agent,
    target: Agent,
    task: Task,
    requested_ttl: int | None,
    requested_ceilings: object | None,
    registry: Registry,
    counted: int,
    left: int,
    trace_id: str,
) -> Envelope | Refusal:
    """The child's envelope, or why there is none.

    requested_ceilings: as it came (parsed JSON), checked here. counted: resource_count of every delegation granted
    earlier in the run, ended ones included. left: whole seconds left of the run."""
    problem = _standing_problem(parent, parent_agent, target, registry)
    if problem is not None:
        return problem
    tools = _tools(parent_agent, target, task, registry, counted)
    if isinstance(tools, Refusal):
        return tools
    level = _level(target, task, registry, counted, tools)
    ttl = _ttl(registry, level, requested_ttl, left)
    if isinstance(ttl, Refusal):
        return ttl
    ceilings = _ceilings(parent, parent_agent, target, requested_ceilings, tools)
    if isinstance(ceilings, Refusal):
        return ceilings
    return Envelope(
        level=level,
        tools=tuple(sorted(tools)),
        ceilings=ceilings,
        credential_ttl_seconds=ttl,
        approval_required=LEVELS[level].approval,
        resource_limit=task.resource_count,
        tenant=registry.tenant,
        trace_id=trace_id,
    )


def known_facts(registry: Registry, task: Task, tools: Iterable[str], counted: int) -> dict[str, Any]:
    """Stated and known facts side by side, for audit and for the approver."""
    known = {}
    for tool in sorted(tools):
        facts = registry.policy.facts(tool)
        effect = None if facts.effect is None else str(facts.effect)
        known[tool] = {"effect": effect, "data_class": sorted(facts.data_class), "level": tool_level(registry, tool)}
    return {"stated": task.to_wire(), "known": known, "counted": counted}


def _standing_problem(parent: Delegation, parent_agent: Agent, target: Agent, registry: Registry) -> Refusal | None:
    if parent.depth != 0:
        return Refusal(Reason.DEPTH_EXCEEDED, "A delegated child cannot delegate further: the depth is one level.")
    if not parent.tenant == parent.envelope.tenant == registry.tenant:
        return Refusal(Reason.TENANT_MISMATCH, "The parent belongs to another tenant.")
    if parent.agent != parent_agent.name:
        return Refusal(Reason.TARGET_NOT_ALLOWED, f"The parent's delegation is not one of {parent_agent.name}.")
    found = find_target(registry, parent_agent, target.name)
    return found if isinstance(found, Refusal) else None


def _stated_level(target: Agent, task: Task, counted: int) -> int:
    if task.touches_pii or task.touches_secrets or not task.reversible:
        return 2
    return max(target.min_level, 1 if task.resource_count + counted > MANY else 0)


def _level(target: Agent, task: Task, registry: Registry, counted: int, tools: Iterable[str]) -> int:
    return max(_stated_level(target, task, counted), *(tool_level(registry, tool) for tool in tools))


def _tools(parent: Agent, target: Agent, task: Task, registry: Registry, counted: int) -> frozenset[str] | Refusal:
    if task.tools is None:
        level = _stated_level(target, task, counted)
        fit = frozenset(
            tool
            for tool in target.tools
            if _why_not(parent, target, registry, tool) is None and tool_level(registry, tool) <= level
        )
        if fit:
            return fit
        return Refusal(
            Reason.SCOPE_NOT_GRANTABLE,
            f"No tool of {target.name} fits level {level} and is in the scope the parent may give: name the tools.",
        )
    reasons = [why for tool in task.tools if (why := _why_not(parent, target, registry, tool)) is not None]
    if reasons:
        return Refusal(Reason.SCOPE_NOT_GRANTABLE, f"Not in the scope that can be given: {'; '.join(reasons)}.")
    return frozenset(task.tools)


def _why_not(parent: Agent, target: Agent, registry: Registry, tool: str) -> str | None:
    whys = []
    if tool not in parent.tools and tool not in parent.grants:
        whys.append(f"the parent {parent.name} neither holds nor grants it")
    if tool not in target.tools:
        whys.append(f"the target {target.name} does not hold it")
    if registry.host_of(tool) is None:
        whys.append("no host serves it")
    return f"{tool} ({', '.join(whys)})" if whys else None


def _ttl(registry: Registry, level: int, requested: int | None, left: int) -> int | Refusal:
    table = min(LEVELS[level].ttl, registry.limits.ttl[level])
    ttl = min(table, left) if requested is None else min(table, left, requested)
    if ttl < MIN_TTL:
        return Refusal(
            Reason.TTL_TOO_SHORT, f"The delegation would live {max(ttl, 0)} s; at least {MIN_TTL} s are needed."
        )
    return ttl


def _ceilings(
    parent: Delegation, parent_agent: Agent, target: Agent, requested: object | None, tools: frozenset[str]
) -> dict[str, dict[str, Any]] | Refusal:
    asked = parse_ceilings({} if requested is None else requested)
    if isinstance(asked, Refusal):
        return asked
    foreign = sorted(asked.keys() - tools)
    if foreign:
        return Refusal(
            Reason.CEILING_INVALID, f"A ceiling names tools that the delegation does not hold: {', '.join(foreign)}."
        )
    return combine((parent.envelope.ceilings, parent_agent.ceilings, target.ceilings, asked), tools)
