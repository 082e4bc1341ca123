"""Kind `api`: steps over HTTP against one broker, then a look at the end state."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.cases.endstate import EXPECTED, check_end
from tests.cases.reading import Collection, closed
from tests.cases.registering import Agent, Setup, catalog_of
from tests.cases.steps import VERBS, Player
from tests.cases.verdict import CaseFailed, NotRun, Why, expect
from tests.cases.world import TYPED_AT_ONCE, World

__all__ = ["play"]

INPUT = frozenset({"setup", "steps"})
SETUP = frozenset({"on_denial", "verifier_cache", "approval_timeout"})
ROLES = {"viewer", "approver", "operator", "admin"}
NESTED = ("steps", "step")


def play(given: Mapping[str, Any], expected: Mapping[str, Any], files: Collection) -> None:
    closed(given, INPUT, "input", frozenset({"steps"}))
    closed(expected, EXPECTED, "expected")
    setup = closed(given.get("setup", {}), SETUP, "setup")
    steps = list(flattened(given["steps"]))
    for step in steps:
        if step.get("do") not in VERBS:
            raise CaseFailed(f"unknown step {step.get('do')!r}")
        if step["do"] == "raw_exchange":
            raise NotRun(Why.EXCHANGE)
    times = expected.get("repeat", 1)
    with World(replace(world_of(steps, setup), stand_ins=times * len(steps) // TYPED_AT_ONCE)) as world:
        for _ in range(times):
            player = Player(world, expected.get("max_seconds_after_revoke", 1))
            player.play(given["steps"])
            check_end(expected, player)


def flattened(steps: Any) -> Iterator[Mapping[str, Any]]:
    """Every step, also those inside other steps."""
    for step in steps if isinstance(steps, list) else [steps]:
        if not isinstance(step, Mapping):
            raise CaseFailed("a step is no mapping")
        yield step
        for name in NESTED:
            if name in step:
                yield from flattened(step[name])


def world_of(steps: list[Mapping[str, Any]], setup: Mapping[str, Any]) -> Setup:
    """Agents, operators and a policy that allows what the steps call, and asks for what level 2 children call."""
    tools = {tool for step in steps for tool in step.get("tools", []) if isinstance(tool, str)}
    tools |= {str(step["tool"]) for step in steps if "tool" in step}
    spawns = [step for step in steps if step["do"] == "spawn"]
    asked = {tool for step in spawns if step.get("level") == 2 for tool in step.get("tools", [])}
    targets = {str(step.get("target", "worker")) for step in spawns} | {"worker"}
    named = frozenset(tools)
    agents = {name: Agent(tools=named) for name in targets if name.replace("-", "").replace("_", "").isalnum()}
    for step in steps:
        if step["do"] == "issue_root":
            held = frozenset(str(tool) for tool in step.get("tools", []))
            agents[str(step["agent"])] = Agent(tools=held, callable_agents=frozenset({"worker"}))
    ttls = {int(step["ttl"]) for step in steps if step["do"] == "issue_root" and "ttl" in step}
    expect(len(ttls) <= 1, "runs of several lengths in one sequence")
    return Setup(
        agents=agents,
        policy=policy_of(named, asked, setup),
        operators=operators_of(steps),
        run_ttl=ttls.pop() if ttls else 3600,
    )


def policy_of(tools: frozenset[str], asked: set[str], setup: Mapping[str, Any]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    for tool in sorted(tools):
        if tool in asked:
            rules[tool] = [{"decision": "require_approval", "reason": "a person looks at this"}]
        else:
            rules[tool] = [{"decision": "allow", "extra_args": True}]
    approvals = {"timeout": setup.get("approval_timeout", 120), "on_denial": setup.get("on_denial", "revoke")}
    return {
        "id": "case",
        "version": 1,
        "defaults": {"decision": "deny"},
        "catalog": catalog_of(tools),
        "tools": rules,
        "approvals": approvals,
    }


def operators_of(steps: list[Mapping[str, Any]]) -> dict[str, str]:
    """Everybody who acts as a person, by name; a name that is a role has that role."""
    names = {str(step["by"]) for step in steps if "by" in step and step["do"] != "spawn"}
    return {"runner": "admin", **{name: name if name in ROLES else "operator" for name in sorted(names)}}
