"""An exported policy answers as the policy does: over drawn policies, pasts and calls, in the engines themselves."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from carnet_policy import Call, Policy, evaluate, load
from carnet_policy.export import facts_of
from tests.policy.building import policy_of
from tests.policy.export.drawing import STRANGE, calls_for, draw_past, draw_policy
from tests.policy.export.engines import ENGINES, Cedar, Rego, engine

SCENARIOS = sorted(
    path for path in (Path(__file__).parents[1] / "scenarios").glob("*.yaml") if ".test" not in path.name
)
ROUNDS = range(int(os.environ.get("TEST_EXAMPLES", "50")) * 2)
Engine = type[Rego] | type[Cedar]
LIKES = """
catalog: {send: {effect: read}, drop: {effect: irreversible}}
tools:
  send:
    - {decision: allow, args: {to: {pattern: '(?s)team-.*|boss'}, size: {type: integer, min: 1, max: 50}}}
    - {decision: deny, args: {to: {pattern: '(?s).*evil.*'}}}
    - {decision: require_approval, args: {size: {min: 20.5}}}
  drop:
    - {decision: allow, args: {path: {path_within: /data}, really: {const: true, required: false}}}
history:
  - {match: {tool: send}, max: 0, decision: require_approval}
"""


def compare(policy: Policy, kind: Engine, draw: random.Random, most: int) -> int:
    """How many calls were asked; each must be answered alike."""
    text = kind.export(policy)
    if not isinstance(text, str):
        return 0
    asked = engine(kind, text)
    past = draw_past(draw, policy)
    calls = calls_for(draw, policy, most)
    for call in calls:
        wanted = evaluate(policy, call, past)
        assert asked.ask(facts_of(policy, call, past)) == wanted.effect.value, (call, wanted)
    return len(calls)


@pytest.mark.parametrize("kind", ENGINES)
def test_drawn_policies_answer_alike(kind: Engine) -> None:
    asked = 0
    for seed in ROUNDS:
        draw = random.Random(seed)
        policy = draw_policy(draw)
        if policy is not None:
            asked += compare(policy, kind, draw, 40)
    assert asked > 20 * len(ROUNDS)  # thousands already with the small default


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_scenario_policies_that_map_answer_alike_in_rego(path: Path) -> None:
    policy = load(path)
    if not compare(policy, Rego, random.Random(path.stem), 60):
        assert path.stem in ("research-web", "warehouse")  # a . that stops at line breaks, and a word boundary


@pytest.mark.parametrize("kind", ENGINES)
def test_a_policy_of_literal_patterns_answers_alike(kind: Engine) -> None:
    for seed in range(5):
        assert compare(policy_of(LIKES), kind, random.Random(seed), 100) > 100


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    "constraint",
    [
        "{enum: [1, 2.5, true]}", "{const: 1.0}", "{const: null}", "{type: integer}", "{min: 0.01, max: 50.01}",
        "{required: true}", "{type: object}", "{max_length: 1}", "{enum: ['1', é, x]}", "{}", "{url_host: a.example}",
        "{path_within: [/data, /漢]}", "{properties: {a: {const: 1, required: false}}}", "{max_items: 1}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("decision", ["allow", "deny", "require_approval"])
def test_every_strange_value_is_judged_alike(kind: Engine, constraint: str, decision: str) -> None:
    rules = f"- {{decision: {decision}, args: {{a: {constraint}}}}}"
    if decision != "allow":
        rules += "\n    - {decision: allow, args: {a: {}}}"
    policy = policy_of(f"catalog: {{t: {{effect: read}}}}\ntools:\n  t:\n    {rules}\n")
    text = kind.export(policy)
    assert isinstance(text, str), text
    asked = engine(kind, text)
    calls: list[dict[str, Any]] = [{}, {"b": 1}, *({"a": value} for value in STRANGE), {"a": 1, "b": 1}]
    for args in calls:
        call = Call("t", args)
        assert asked.ask(facts_of(policy, call)) == evaluate(policy, call, None).effect.value, args


@pytest.mark.parametrize("kind", ENGINES)
def test_a_past_that_is_not_told_is_a_deny(kind: Engine) -> None:
    policy = policy_of(LIKES)
    text = kind.export(policy)
    assert isinstance(text, str)
    asked = engine(kind, text)
    facts = facts_of(policy, Call("send", {"to": "boss", "size": 1}))
    assert asked.ask(facts) == "require_approval"
    assert asked.ask({**facts, "history": {}}) == "deny"


def test_a_deny_stands_in_rego_where_a_fact_is_missing() -> None:
    policy = policy_of(
        "tools:\n  t:\n    - {decision: deny, args: {a: {min: 5}}}\n    - {decision: allow, args: {a: {}}}"
    )
    text = Rego.export(policy)
    assert isinstance(text, str)
    facts = facts_of(policy, Call("t", {"a": 1}))
    assert engine(Rego, text).ask(facts) == "allow"
    del facts["arguments"]["members"]["a"]["units"]
    assert engine(Rego, text).ask(facts) == "deny"
