"""The engine against an independent reading of its rules, and against anything at all."""

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet_policy import Call, Effect, Folds, Ledger, PastCall, PolicyError, evaluate, from_mapping, judge_of, loads
from tests.policy.building import NOW

Rule = dict[str, Any]
ABSENT = object()


KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", type(None): "null"}


def yes_no_unknown(rule: dict[str, Any], value: Any, decision: str) -> bool | None:
    """One constraint against one value, written from the manual and not from the engine."""
    if value is ABSENT:
        return rule.get("required") is False
    if isinstance(value, float) and not math.isfinite(value):
        return None
    kind, others = KINDS[type(value)], set(rule) - {"type", "required"}
    if "type" in rule and kind != rule["type"] and not (kind == "integer" and rule["type"] == "number"):
        return None if others else False
    answers = [one_word(word, rule[word], value, decision) for word in others]
    if None not in answers and rule.get("required") and (value is None or value == "" or value == []):
        return False
    return False if False in answers else None if None in answers else True


def one_word(word: str, bound: Any, value: Any, decision: str) -> bool | None:
    kind = KINDS[type(value)]
    if word in ("min", "max"):
        return None if kind not in ("integer", "number") else bool(value >= bound if word == "min" else value <= bound)
    if word == "max_length":
        return len(value) <= bound if kind == "string" else None
    if word == "pattern":
        return re.fullmatch(bound, value) is not None if kind == "string" else None
    if word == "enum":
        return in_enum(bound, value)
    assert word == "items"
    return of_items([yes_no_unknown(bound, one, decision) for one in value], decision) if kind == "array" else None


def in_enum(members: list[Any], value: Any) -> bool | None:
    if any(type(value) is type(one) and value == one for one in members):
        return True
    numbers = [one for one in members if type(one) in (int, float)]
    if type(value) in (int, float) and numbers:
        return None if value in numbers else False
    return False if any(type(one) is type(value) for one in members) else None


def of_items(answers: list[bool | None], decision: str) -> bool | None:
    every = False if False in answers else None if None in answers else True
    some = True if True in answers else None if None in answers else False
    if decision == "deny":
        return some
    if decision == "require_approval" and every is False and some is not False:
        return None
    return every


def matches(rule: Rule, args: dict[str, Any]) -> bool | None:
    wanted = rule.get("args", {})
    if rule["decision"] == "allow" and not rule.get("extra_args") and set(args) - set(wanted):
        return False
    answers = [yes_no_unknown(one, args.get(name, ABSENT), rule["decision"]) for name, one in wanted.items()]
    return False if False in answers else None if None in answers else True


def answer(rules: list[Rule], args: dict[str, Any]) -> str:
    found = [(rule["decision"], matches(rule, args)) for rule in rules]
    if any(word == "deny" and match is not False for word, match in found):
        return "deny"
    if ("require_approval", True) in found:
        return "require_approval"
    if ("allow", True) in found:
        return "require_approval" if ("require_approval", None) in found else "allow"
    return "deny"


NAMES = st.sampled_from("ab")
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 5, -1, 1.0, 2.5, 10**30, math.nan, math.inf, "", "x", "xy", "1"])
VALUES = SCALARS | st.lists(SCALARS, max_size=3)
NUMBER = st.fixed_dictionaries({}, optional={"min": st.sampled_from([0, 1, 1.5]), "max": st.sampled_from([2, 2.5])})
TEXT = st.fixed_dictionaries({}, optional={"max_length": st.integers(0, 2), "pattern": st.sampled_from(["x*", "x|y"])})
FINITE = st.sampled_from([None, True, 0, 1, 2.5, 1.0, "x", "1"])
ENUM = st.fixed_dictionaries({"enum": st.lists(FINITE, min_size=1, max_size=3)})
TYPED = st.fixed_dictionaries({"type": st.sampled_from(["number", "integer", "string", "boolean", "null", "array"])})
ITEMS = st.fixed_dictionaries({"items": NUMBER | TEXT | ENUM | TYPED})
PLAIN = NUMBER | TEXT | ENUM | TYPED | ITEMS
MAYBE = st.fixed_dictionaries({}, optional={"required": st.booleans()})
CONSTRAINT = st.tuples(PLAIN, PLAIN | MAYBE, MAYBE).map(lambda parts: parts[0] | parts[1] | parts[2])
ARGS = st.dictionaries(NAMES, CONSTRAINT, max_size=2)
RULE = st.one_of(
    st.fixed_dictionaries({"decision": st.just("allow")}, optional={"args": ARGS, "extra_args": st.booleans()}),
    st.fixed_dictionaries({"decision": st.sampled_from(["deny", "require_approval"])}, optional={"args": ARGS}),
)


@given(st.lists(RULE, max_size=4), st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=8))
def test_the_engine_decides_as_the_manual_says(rules: list[Rule], calls: list[dict[str, Any]]) -> None:
    document = {"version": 1, "catalog": {"t": {"effect": "read"}}, "tools": {"t": rules}}
    try:
        policy = from_mapping(document)
    except PolicyError:
        return
    reverse = from_mapping({**document, "tools": {"t": rules[::-1]}})
    for args in [{}, *calls]:
        decision = evaluate(policy, Call("t", args), None)
        assert decision.effect == answer(rules, args), (decision, args)
        assert evaluate(reverse, Call("t", args), None).effect is decision.effect
        assert evaluate(policy, Call("t", args), None) == decision
        assert judge_of(policy, "t")(args) == decision


class Odd(str):
    """A string that is no plain string."""


ANYTHING = st.recursive(
    st.one_of(SCALARS, st.floats(), st.integers(), st.text(max_size=5), st.binary(max_size=3), st.just(object()))
    | st.sampled_from([Odd("x"), "\ud800", 10**4000, -0.0, (1,), {1}, 1j]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
BOUNDED = from_mapping(
    {
        "version": 1,
        "catalog": {name: {"effect": "write"} for name in "tuv"},
        "tools": {
            "t": [
                {"decision": "allow", "args": {"a": {"type": "integer", "min": 0, "max": 3}}},
                {"decision": "allow", "args": {"a": {"enum": [[1, {"b": 2.5}], "x"]}}},
            ],
            "v": [
                {"decision": "require_approval", "args": {"a": {"items": {"pattern": "x+"}}}},
                {"decision": "require_approval", "args": {"a": {"properties": {"b": {"path_within": "/srv"}}}}},
            ],
            "u": [{"decision": "deny", "args": {"b": {"url_host": "a.example"}}}],
        },
        "history": [
            {"match": "irreversible", "sum": "a", "max": 3, "decision": "deny"},
            {"match": {"tool": "t"}, "distinct": "a", "max": 3, "decision": "deny"},
        ],
    }
)


@given(st.dictionaries(st.sampled_from("abc") | st.text(max_size=3), ANYTHING, max_size=3) | ANYTHING, ANYTHING)
def test_anything_gets_a_decision(args: Any, tool: Any) -> None:
    for name in ("t", "u", "v", tool):
        decision = evaluate(BOUNDED, Call(name, args), None)
        assert decision.policy == BOUNDED.ref
        if decision.effect is Effect.ALLOW:
            assert name == "t"
            assert set(args) == {"a"}
            assert type(args["a"]) in (int, str, list)


@given(st.dictionaries(st.sampled_from("abc") | st.text(max_size=3), ANYTHING, max_size=3) | ANYTHING)
def test_the_quick_judge_of_a_tool_says_what_the_engine_says(args: Any) -> None:
    for name in ("t", "u", "v", "unknown"):
        assert judge_of(BOUNDED, name)(args) == evaluate(BOUNDED, Call(name, args), None)


@pytest.mark.parametrize(
    ("document", "effect", "rule"),
    [
        ({"catalog": {"t": {"effect": "irreversible"}}}, Effect.REQUIRE_APPROVAL, "floor"),
        ({"history": [{"match": {"tool": "t"}, "max": 0, "decision": "deny"}]}, Effect.DENY, "history[0]"),
        ({}, Effect.ALLOW, "t[0]"),
    ],
)
def test_the_quick_judge_passes_by_no_floor_and_no_bound(document: Any, effect: Effect, rule: str) -> None:
    policy = from_mapping({"version": 1, "tools": {"t": [{"decision": "allow"}]}, **document})
    decision = judge_of(policy, "t")({})
    assert (decision.effect, decision.rule) == (effect, rule)
    assert decision == evaluate(policy, Call("t", {}), None)


@given(st.dictionaries(st.sampled_from("abc"), ANYTHING, max_size=3))
def test_any_past_gets_a_decision(args: dict[str, Any]) -> None:
    folds = Folds(BOUNDED)
    folds.put("1", PastCall("t", args, 1))
    folds.put("2", PastCall("other", args, 1, NOW + 1))
    decision = evaluate(BOUNDED, Call("t", {"a": 1}), Ledger(folds, None, NOW, 0))
    assert decision.effect in Effect
    folds.put("1", None)
    folds.put("2", None)
    assert evaluate(BOUNDED, Call("t", {"a": 1}), Ledger(folds, None, NOW, 0)).effect is Effect.ALLOW


def test_what_is_nested_without_end_is_denied() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    decision = evaluate(BOUNDED, Call("t", {"a": deep}), None)
    assert decision.effect is Effect.DENY
    assert evaluate(BOUNDED, Call("t", None), None).reason == "policy_error"  # type: ignore[arg-type]


WORDS = st.sampled_from(
    ["decision", "allow", "deny", "args", "tools", "version", "catalog", "history", "max", "enum", "x", "pattern"]
)
DOCUMENTS = st.recursive(
    WORDS | SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(DOCUMENTS)
def test_any_document_is_a_policy_or_a_policy_error(document: Any) -> None:
    try:
        policy = from_mapping({"version": 1, "tools": document, "history": document})
        assert loads(policy.texts).ref == policy.ref
    except PolicyError as error:
        assert error.message  # noqa: PT017
