"""Kind `scenario`: a team's parent hands out one task after the other, and each child calls its tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carnet.reasons import Refusal
from tests.cases.handles import Child, Outcome, Run
from tests.cases.judging import arguments, refusal_text
from tests.cases.reading import Collection, closed
from tests.cases.registering import PASSPHRASE, Agent, Setup
from tests.cases.verdict import CaseFailed, expect
from tests.cases.world import World

__all__ = ["play"]

SCENARIO = frozenset({"id", "title", "notes", "parent", "policy", "tasks"})
PARENT = frozenset({"agent", "tenant", "tools"})
TASK = frozenset({"task", "derive", "expected", "calls", "returned_text", "returned_expect", "handoff_return_schema"})
DERIVE = frozenset({"touches_pii", "touches_secrets", "reversible", "resource_count", "tools"})
EXPECTED = frozenset({"level", "ttl", "approval_required"})
CALL = frozenset({"tool", "args", "args_json", "decision", "why", "approver"})
KINDS = {"allow": "allow", "deny": "deny", "require_approval": "pending"}
MANY = 10  # resources of a run beyond which its later children are of level 1


@dataclass(slots=True)
class _Parent:
    """The open run. A person's no, or many resources, would change what later tasks of the same run may do; such a task
    is given a run of its own, as its expectations are those of a task by itself."""

    run: Run
    counted: int = 0
    denied: bool = False


def play(given: Mapping[str, Any], expected: Mapping[str, Any], files: Collection) -> None:
    closed(given, SCENARIO, "scenario", frozenset({"parent", "policy", "tasks"}))
    parent = closed(given["parent"], PARENT, "parent", frozenset({"agent", "tools"}))
    for tool, known in parent["tools"].items():
        closed(known, {"effect", "args"}, f"tool {tool}")
    tools = frozenset(parent["tools"])
    agent = str(parent["agent"])
    agents = {
        agent: Agent(tools=tools, callable_agents=frozenset({"worker"})),
        "worker": Agent(tools=tools),
    }
    setup = Setup(agents=agents, policy=given["policy"], tenant=str(parent.get("tenant", "acme")))
    with World(setup) as world:
        open_: _Parent | None = None
        for number, task in enumerate(given["tasks"], 1):
            closed(task, TASK, f"task {number}", frozenset({"derive", "expected", "calls"}))
            closed(task["derive"], DERIVE, f"task {number}: derive")
            closed(task["expected"], EXPECTED, f"task {number}: expected")
            if open_ is None or open_.denied or open_.counted + task["derive"]["resource_count"] > MANY:
                open_ = _Parent(world.open_run(agent))
            _task(world, open_, task, f"task {number}")


def _task(world: World, parent: _Parent, task: Mapping[str, Any], where: str) -> None:
    bearer = world.root_token(parent.run)
    body = {"target": "worker", "task": task["derive"], "hosts": ["*"]}
    answer = world.request("POST", "/v1/delegations", bearer=bearer, json=body)
    document = answer.json()
    expect(answer.status_code in (201, 202), f"{where}: the spawn was refused: {document}")
    parent.counted += task["derive"]["resource_count"]
    envelope = document["envelope"]
    found = {
        "level": envelope["level"],
        "ttl": envelope["credential_ttl_seconds"],
        "approval_required": envelope["approval_required"],
    }
    for name, value in task["expected"].items():
        expect(found[name] == value, f"{where}: {name} is {found[name]}, expected {value}")
    child = world.child_of(document)
    if document["state"] == "pending":
        world.approve_delegation(child, bearer)
    for number, call in enumerate(task["calls"], 1):
        closed(call, CALL, f"{where}, call {number}", frozenset({"tool", "decision"}))
        _call(world, parent, child, call, f"{where}, call {number} ({call['tool']})")


def _call(world: World, parent: _Parent, child: Child, call: Mapping[str, Any], where: str) -> None:
    outcome = _made(world, child, call)
    wanted = KINDS.get(str(call["decision"]))
    if wanted is None:
        raise CaseFailed(f"{where}: unknown decision {call['decision']!r}")
    expect(outcome.kind == wanted, f"{where}: {outcome.kind} {outcome.said}, expected {call['decision']}")
    ran = world.tools.executions
    approver = call.get("approver")
    if approver == "approves":
        _answer(world, outcome, "approve")
        again = _made(world, child, call)
        expect(again.kind == "allow", f"{where}: approved, then {again.kind} {again.said}")
        expect(world.tools.executions == ran + 1, f"{where}: approved, and the tool did not run once")
    elif approver in ("denies", "times_out"):
        if approver == "denies":
            _answer(world, outcome, "deny")
        else:
            world.advance(world.approval(str(outcome.approval))["seconds_left"] + 1)
        parent.denied |= approver == "denies"
        world.tools.settled(lambda: _made(world, child, call).kind == "deny")
        again = _made(world, child, call)
        expect(again.kind == "deny", f"{where}: {approver}, then {again.kind}")
        expect(world.tools.executions == ran, f"{where}: {approver}, and the tool ran")
        if world.setup.policy.get("approvals", {}).get("on_denial", "revoke") == "revoke":
            state = world.delegation(child.id)
            reason = {"denies": "approval_denied", "times_out": "approval_timed_out"}[approver]
            expect(state["state"] == "ended", f"{where}: {approver}, and the child is {state['state']}")
            expect(state["reason"] == reason, f"{where}: the child ended with {state['reason']}")
    elif approver is not None:
        raise CaseFailed(f"{where}: unknown approver {approver!r}")


def _made(world: World, child: Child, call: Mapping[str, Any]) -> Outcome:
    args = arguments(call)
    if isinstance(args, Refusal):
        return Outcome("deny", refusal_text(args))
    return world.tools.call(child, str(call["tool"]), args, None)


def _answer(world: World, outcome: Outcome, verdict: str) -> None:
    body = {"verdict": verdict} | ({"passphrase": PASSPHRASE} if verdict == "approve" else {})
    path = f"/v1/approvals/{outcome.approval}/answer"
    answer = world.request("POST", path, bearer=world.session("runner"), json=body)
    expect(answer.is_success, f"the answer was refused: {answer.text}")
