"""For cases about a policy alone: what the approver of a call sees, and what happens when the past cannot be read."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from carnet.reasons import Refusal
from carnet_policy import Policy
from tests.cases.handles import Child
from tests.cases.registering import Agent, Setup
from tests.cases.verdict import CaseFailed, expect
from tests.cases.world import World

__all__ = ["shown_arguments", "unavailable"]


@contextmanager
def _child(policy: Policy, tool: str) -> Iterator[tuple[World, Child]]:
    """A world with this policy, and a child that may call the tool."""
    ((_, text),) = policy.texts
    tools = frozenset({tool})
    agents = {
        "planner": Agent(tools=tools, callable_agents=frozenset({"worker"})),
        "worker": Agent(tools=tools),
    }
    with World(Setup(agents=agents, policy=json.loads(text))) as world:
        run = world.open_run("planner")
        task = {"touches_pii": False, "touches_secrets": False, "reversible": False, "resource_count": 0}
        body = {"target": "worker", "task": {**task, "tools": [tool]}, "hosts": ["*"]}
        answer = world.request("POST", "/v1/delegations", bearer=run.token, json=body)
        expect(answer.status_code == 202, f"the spawn was refused: {answer.text}")
        child = world.child_of(answer.json())
        world.approve_delegation(child, run.token)
        yield world, child


def shown_arguments(policy: Policy, tool: str, args: Mapping[str, Any]) -> set[str]:
    """The names of the arguments in the open question about this call."""
    with _child(policy, tool) as (world, child):
        outcome = world.tools.call(child, tool, args, None)
        if outcome.approval is None:
            raise CaseFailed(f"nobody was asked: {outcome.kind} {outcome.said}")
        return set(world.approval(outcome.approval)["args"] or {})


def unavailable(policy: Policy, tool: str, args: Mapping[str, Any] | Refusal) -> str:
    """What a call is told while the store, and with it the run's past, cannot be read. It must not run."""
    with _child(policy, tool) as (world, child):
        world.tools.settled(lambda: world.tools.verify_token(child.bearer or "").kind == "valid")
        with world.broker.without_store():
            outcome = world.tools.call(child, tool, {} if isinstance(args, Refusal) else args, None)
        expect(outcome.kind == "deny", f"without its history the call is {outcome.kind}")
        expect(world.tools.executions == 0, "the tool ran without its history")
        return f"{outcome.said} (the history is unavailable)"
