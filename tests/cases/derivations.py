"""Kind `derive`: a parent with these tools spawns one child with this task, over HTTP."""

import time
from collections.abc import Mapping
from typing import Any

from tests.cases.judging import alternatives, check_reason, check_time
from tests.cases.reading import Collection, closed
from tests.cases.registering import TENANT, Agent, Setup, catalog_of
from tests.cases.verdict import CaseFailed, expect
from tests.cases.work import facts_of
from tests.cases.world import World
from tests.cases.writing import to_json

__all__ = ["play"]

INPUT = frozenset({"parent", "task"})
PARENT = frozenset({"tools", "ttl_left", "depth", "tenant"})
EXPECTED = frozenset(
    {
        "level",
        "ttl",
        "ttl_max",
        "approval_required",
        "tools",
        "refused",
        "refused_or_lifted",
        "never",
        "any_of",
        "reason_any",
        "reason_contains",
        "max_ms",
        "no_crash",
    }
)
WIRE_NAMES = {"level": "level", "ttl": "credential_ttl_seconds", "approval_required": "approval_required"}
NEVER = frozenset({"level", "ttl", "approval_required", "tools_contains"})
SHORTEST_RUN, LONGEST_RUN = 60, 28800  # seconds: what a deployment may set


def play(given: Mapping[str, Any], expected: Mapping[str, Any], files: Collection) -> None:
    closed(given, INPUT, "input", INPUT)
    parent = closed(given["parent"], PARENT, "parent", frozenset({"tools"}))
    closed(expected, EXPECTED, "expected")
    for one in expected.get("any_of", []):
        closed(one, EXPECTED - {"any_of"}, "an alternative")
    for one in _list(expected.get("never", [])):
        closed(one, NEVER, "never")
    task = given["task"]
    if not isinstance(task, Mapping):
        raise CaseFailed("the task is no mapping")
    with World(_setup(parent, task)) as world:
        began = time.perf_counter()
        status, document = _spawned(world, parent, task)
        took = time.perf_counter() - began
    alternatives(expected, lambda one: _judge(one, status, document, task))
    check_time(expected, took)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _setup(parent: Mapping[str, Any], task: Mapping[str, Any]) -> Setup:
    held = frozenset(parent["tools"])
    wanted = task.get("tools")
    named = frozenset(tool for tool in wanted if isinstance(tool, str) and tool) if isinstance(wanted, list) else held
    left = int(parent.get("ttl_left", 3600))
    return Setup(
        agents={
            "planner": Agent(tools=held, callable_agents=frozenset({"worker"})),
            "worker": Agent(tools=held | named, callable_agents=frozenset({"worker"})),
        },
        policy={
            "id": "case",
            "version": 1,
            "defaults": {"decision": "deny"},
            "catalog": catalog_of(held | named),
            "tools": {},
        },
        run_ttl=min(max(left, SHORTEST_RUN), LONGEST_RUN),
        tenant=str(parent.get("tenant", TENANT)),
    )


def _spawned(world: World, parent: Mapping[str, Any], task: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    run = world.open_run("planner")
    bearer = world.root_token(run)
    if int(parent.get("depth", 0)) > 0:
        facts = facts_of(0, [])
        first = world.request(
            "POST", "/v1/delegations", bearer=bearer, json={"target": "worker", "task": facts, "hosts": ["*"]}
        )
        expect(first.status_code == 201, f"the parent at depth 1 could not be made: {first.text}")
        bearer = world.child_of(first.json()).bearer or ""
    left = int(parent.get("ttl_left", 3600))
    if left < SHORTEST_RUN:
        world.advance(SHORTEST_RUN - left)
    body = to_json({"target": "worker", "task": task}).encode("utf-8", "surrogatepass")
    headers = {"content-type": "application/json"}
    answer = world.request("POST", "/v1/delegations", bearer=bearer, content=body, headers=headers)
    return answer.status_code, answer.json()


def _judge(expected: Mapping[str, Any], status: int, document: Mapping[str, Any], task: Mapping[str, Any]) -> None:
    refused = status not in (201, 202)
    envelope: Mapping[str, Any] = {} if refused else document["envelope"]
    said = f"{document.get('reason')} {document.get('detail')}" if refused else ""
    if "refused" in expected:
        expect(refused == expected["refused"], f"{'refused: ' + said if refused else dict(envelope)}")
    if "refused_or_lifted" in expected:
        lifted = not refused and envelope["level"] > _stated(task)
        expect((refused or lifted) == expected["refused_or_lifted"], f"neither refused nor lifted: {dict(envelope)}")
    for name, key in (
        ("level", "level"),
        ("ttl", "credential_ttl_seconds"),
        ("approval_required", "approval_required"),
    ):
        if name in expected:
            expect(not refused, f"refused: {said}")
            expect(envelope[key] == expected[name], f"{name} is {envelope[key]}, expected {expected[name]}")
    if "ttl_max" in expected:
        expect(not refused, f"refused: {said}")
        expect(envelope["credential_ttl_seconds"] <= expected["ttl_max"], f"ttl {envelope['credential_ttl_seconds']}")
    if "tools" in expected:
        expect(not refused, f"refused: {said}")
        expect(sorted(envelope["tools"]) == sorted(expected["tools"]), f"tools are {envelope['tools']}")
    for never in _list(expected.get("never", [])):
        expect(refused or not _is(envelope, never), f"is what must never be: {dict(never)}")
    check_reason(expected, said)


def _stated(task: Mapping[str, Any]) -> int:
    """The level that the stated facts alone give."""
    if task.get("touches_pii") or task.get("touches_secrets") or not task.get("reversible"):
        return 2
    return 1 if task.get("resource_count", 0) > 10 else 0


def _is(envelope: Mapping[str, Any], never: Mapping[str, Any]) -> bool:
    found = {
        "level": envelope["level"],
        "ttl": envelope["credential_ttl_seconds"],
        "approval_required": envelope["approval_required"],
    }
    holds = all(found[name] == value for name, value in never.items() if name != "tools_contains")
    return holds and ("tools_contains" not in never or never["tools_contains"] in envelope["tools"])
