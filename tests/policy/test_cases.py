"""Situations that people really ran into, kept as data."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from carnet_policy import Call, Effect, Folds, Ledger, PastCall, PolicyError, evaluate, from_mapping, loads
from tests.policy.building import NOW

DATA = Path(__file__).parent.parent / "cases" / "data"


def read(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text())


POLICIES = {name: from_mapping(document, id=name) for name, document in read("policies.yaml")["policies"].items()}
DECISIONS = read("policy_decisions.yaml")["cases"]
# A repeated member of the raw JSON is refused by whoever parses it, before there is a call to decide.
PARSED = [case for case in DECISIONS if "duplicate" not in case["expected"].get("reason_any", ())]
SCENARIOS = sorted((DATA / "scenarios").glob("*.yaml"))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return (
            value["$repeat"][0] * value["$repeat"][1] if "$repeat" in value else {k: plain(v) for k, v in value.items()}
        )
    return value


def arguments(call: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call["args_json"]) if "args_json" in call else plain(call["args"])
    return found


@pytest.mark.parametrize("case", PARSED, ids=lambda case: f"{case['id']} {case['title']}")
def test_decision(case: dict[str, Any]) -> None:
    policy, expected = POLICIES[case["input"]["policy"]], case["expected"]
    folds = Folds(policy)
    for number, row in enumerate(case["input"].get("history", ())):
        if row.get("run") is None:
            hold = NOW + 60 if row["outcome"] == "pending_approval" else None
            folds.put(str(number), PastCall(row["tool"], row["args"], 1, hold))
    for call in case["input"].get("calls") or [case["input"]["call"]]:
        decision = evaluate(policy, Call(call["tool"], arguments(call)), Ledger(folds, None, NOW, 0))
        wanted = call.get("expect") or expected.get("decision") or expected["any_of"][0]["decision"]
        assert decision.effect == wanted, decision
        told = f"{decision.reason} {decision.detail}"
        assert any(word in told for word in expected.get("reason_any", [""])), told
        assert expected.get("reason_contains", "") in decision.detail


@pytest.mark.parametrize("case", read("policy_lint.yaml")["cases"], ids=lambda case: f"{case['id']} {case['title']}")
def test_load(case: dict[str, Any]) -> None:
    wanted = case["expected"]["load"]
    try:
        told, outcome = " ".join(loads([("p.yaml", case["input"]["policy_text"])]).warnings), "warning"
    except PolicyError as error:
        told, outcome = str(error), "error"
    assert outcome in wanted
    assert any(word in told for word in case["expected"]["finding_any"]), told


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    policy = from_mapping(scenario["policy"], id=path.stem)
    for task in scenario["tasks"]:
        folds = Folds(policy)
        for number, call in enumerate(task["calls"]):
            if call["tool"] not in task["derive"]["tools"]:
                continue
            decision = evaluate(policy, Call(call["tool"], call["args"]), Ledger(folds, None, NOW, 0))
            assert decision.effect == call["decision"], (call, decision)
            approved = decision.effect is Effect.REQUIRE_APPROVAL and call.get("approver") == "approves"
            if decision.effect is Effect.ALLOW or approved:
                folds.put(str(number), PastCall(call["tool"], call["args"], 1))
