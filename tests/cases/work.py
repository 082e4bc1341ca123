"""What agents and guards do in a sequence: open runs, spawn, call tools, present tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from carnet.reasons import Refusal
from tests.cases.answering import Answer
from tests.cases.handles import Child, Outcome, Run
from tests.cases.judging import arguments, refusal_text
from tests.cases.registering import FACTS
from tests.cases.verdict import CaseFailed, expect

if TYPE_CHECKING:
    from tests.cases.steps import Player

__all__ = ["call", "facts_of", "issue_root", "register_tools", "spawn", "verify", "verify_forged"]

Step = Mapping[str, Any]


def issue_root(player: Player, step: Step) -> Answer:
    run = player.world.open_run(str(step["agent"]))
    player.runs.add(run.id)
    return Answer("ok", value=run)


def facts_of(level: int, tools: list[str]) -> dict[str, Any]:
    """Stated facts that give this level. Counts of one run add up, so one is stated only where nothing else helps."""
    facts: dict[str, Any] = {
        "touches_pii": False,
        "touches_secrets": False,
        "reversible": level < 2,
        "resource_count": 0,
    }
    if level == 1 and not any(FACTS.get(tool, {}).get("effect") == "write" for tool in tools):
        facts["resource_count"] = 11
    return facts


def spawn(player: Player, step: Step) -> Answer:
    parent = player.named(step, "by", Run, Child)
    tools = list(step.get("tools", []))
    level = step.get("level")
    task = dict(step["task"]) if "task" in step else facts_of(0 if level is None else int(level), tools)
    if tools:
        task.setdefault("tools", tools)
    body: dict[str, Any] = {"target": step.get("target", "worker"), "task": task, "hosts": ["*"]}
    body |= {name: step[name] for name in ("ttl", "payload") if name in step}
    answer = player.world.request("POST", "/v1/delegations", bearer=player.bearer(parent), json=body)
    document = answer.json()
    if answer.status_code not in (201, 202):
        return Answer("refused", f"{document['reason']} {document['detail']}", answer.status_code)
    if level is not None:
        derived = document["envelope"]["level"]
        expect(derived == level, f"the spawn came out at level {derived}, not {level}")
    child = player.world.child_of(document)
    if document["state"] == "pending" and step.get("delegation") != "leave_pending":
        player.world.approve_delegation(child, player.bearer(parent))
    return Answer("ok", status=answer.status_code, value=child)


def call(player: Player, step: Step) -> Answer:
    child = player.named(step, "token", Child, Run)
    if isinstance(child, Child) and child.bearer is None:
        return Answer("deny", "token_missing the delegation is pending, so no token exists")
    args = arguments(step)
    if isinstance(args, Refusal):
        return Answer("deny", refusal_text(args))
    named = player.named(step, "approval", Outcome).approval if "approval" in step else None
    outcome = player.world.tools.call(player.world.holder(child), str(step["tool"]), args, named)
    if "idempotency_of" in step:
        first = player.named(step, "idempotency_of", Outcome)
        expect(outcome.approval == first.approval, "the repeat asked a second question")
    return Answer(outcome.kind, outcome.said, value=outcome)


def verify(player: Player, step: Step) -> Answer:
    """A child's token at the guard and at the broker; a root token at the broker, which alone takes one."""
    found = player.names.get(str(step["token"]))
    if found is None:
        return Answer("not_issued")
    if isinstance(found, Run):
        return player.world.introspected(found)
    if not isinstance(found, Child):
        raise CaseFailed(f"{step['token']!r} is no token")
    if found.bearer is None:
        return Answer("not_issued")
    return player.world.tools.verify(found)


def verify_forged(player: Player, step: Step) -> Answer:
    return player.world.tools.verify_forged(str(step.get("kid", "random")))


def register_tools(player: Player, step: Step) -> Answer:
    """A second host that claims these tools: a tool has exactly one host, so the registry must not come into force."""
    problem = player.world.reload_with_second_host(list(step.get("tools", [])))
    return Answer("ok") if problem is None else Answer("refused", problem)
