"""A change to a policy is found by the calls at its edges, and nothing is found where nothing changed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet_policy import Policy, evaluate, loads
from carnet_policy.constraint import Constraint
from carnet_policy.differ import Change, diff
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.pattern import compile_pattern
from carnet_policy.probing import probe_calls, specimens, witness
from carnet_policy.tables.run import ledger_of
from tests.policy.building import policy_of
from tests.policy.tooling.drawing import POLICIES

OLD = """
version: 1
catalog: {refund: {effect: irreversible, data_class: [pii]}, read: {effect: read}, note: {effect: write}}
tools:
  refund:
    - decision: require_approval
      args: {amount: {min: 0.01, max: 50}, id: {pattern: "cust_[0-9]{6}"}, currency: {enum: [EUR, SEK]}}
    - {decision: deny, args: {amount: {min: 50.01}}}
  read: [{decision: allow, args: {path: {path_within: /srv/a}, lines: {type: integer, max: 10, min: 1}}}]
  note: [{decision: allow, args: {tags: {items: {enum: [a, b]}, max_items: 3}, meta: {properties: {k: {max: 3}}}}}]
history:
  - {match: {tool: refund}, sum: amount, max: 100, decision: deny}
  - {match: {tool: read}, distinct: path, max: 3, decision: require_approval}
  - {match: {tool: note}, max: 2, over: client, window: 60, decision: deny}
approvals: {timeout: 60, approvers: [leads]}
"""


def changed(before: str, after: str) -> list[Change]:
    assert before in OLD
    return list(diff(policy_of(OLD), policy_of(OLD.replace(before, after))).changes)


@pytest.mark.parametrize(
    ("before", "after", "tool", "word"),
    [
        ("max: 50}", "max: 49.99}", "refund", "require_approval -> deny"),
        ("max: 50}", "max: 50.01}", "refund", "deny -> require_approval"),
        ("min: 0.01", "min: 0", "refund", "deny -> require_approval"),
        ("{6}", "{5,6}", "refund", "deny -> require_approval"),
        ("[0-9]{6}", "[0-9a-f]{6}", "refund", "deny -> require_approval"),
        ("cust_[0-9]{6}", "(?i)cust_[0-9]{6}", "refund", "deny -> require_approval"),
        ("[EUR, SEK]", "[EUR]", "refund", "require_approval -> deny"),
        ("/srv/a}", "/srv}", "read", "deny -> allow"),
        ("/srv/a}", "/srv/a/b}", "read", "allow -> deny"),
        ("{type: integer, max: 10, min: 1}", "{max: 10, min: 1}", "read", "deny -> allow"),
        ("max_items: 3", "max_items: 4", "note", "deny -> allow"),
        ("enum: [a, b]", "enum: [a, b, c]", "note", "deny -> allow"),
        ("k: {max: 3}", "k: {max: 2}", "note", "allow -> deny"),
        ("meta: {properties: {k: {max: 3}}}", "meta: {required: false}", "note", "deny -> allow"),
        ("max: 100", "max: 100.5", "refund", "deny -> require_approval"),
        ("distinct: path, max: 3", "distinct: path, max: 2", "read", "allow -> require_approval"),
        ("window: 60", "window: 59", "note", "deny -> allow"),
        ("note}, max: 2", "note}, max: 1", "note", "allow -> deny"),
        ("note: {effect: write}", "note: {effect: irreversible}", "note", "allow -> require_approval"),
        ("approvals:", "defaults: {decision: allow}\ni_accept_fail_open: true\napprovals:", "note", "deny -> allow"),
    ],
)  # fmt: skip
def test_a_moved_edge_is_found_with_an_example(before: str, after: str, tool: str, word: str) -> None:
    old, new = policy_of(OLD), policy_of(OLD.replace(before, after))
    found = [change for change in changed(before, after) if change.tool == tool and change.word == word]
    assert found, changed(before, after)
    for change in found:
        past = change.past
        effects = [
            evaluate(policy, change.call, ledger_of(policy, past.run, past.client)).effect for policy in (old, new)
        ]
        assert " -> ".join(effects) == word


def test_wider_is_what_got_less_strict() -> None:
    assert all(change.wider for change in changed("max: 50}", "max: 50.01}"))
    assert not any(change.wider for change in changed("max: 50}", "max: 49.99}"))


@pytest.mark.parametrize(
    ("before", "after", "what", "wider"),
    [
        ("refund: {effect: irreversible", "refund: {effect: write", "refund: effect", True),
        ("data_class: [pii]", "data_class: [internal]", "refund: data_class", True),
        ("data_class: [pii]", "data_class: [pii, internal]", "refund: data_class", False),
        ("read: {effect: read}", "read: {effect: read, resource_arg: path}", "read: resource_arg", False),
        ("timeout: 60", "timeout: 90", "approvals: timeout", True),
        ("timeout: 60", "timeout: 60, on_denial: continue", "approvals: on_denial", True),
        ("approvers: [leads]", "approvers: [leads, interns]", "approvals: approvers", True),
        (", approvers: [leads]", "", "approvals: approvers", True),
    ],
)
def test_facts_that_decide_elsewhere_are_compared(before: str, after: str, what: str, wider: bool) -> None:
    found = diff(policy_of(OLD), policy_of(OLD.replace(before, after)))
    assert [(fact.what, fact.wider) for fact in found.facts if fact.what == what] == [(what, wider)]
    assert found.wider >= wider


def renewed(policy: Policy) -> Policy:
    """The same rules, written so that their text differs."""
    ((name, text),) = policy.texts
    document = json.loads(text)
    for rules in document["tools"].values():
        for rule in rules:
            rule["reason"] = "because"
    return loads([(name, json.dumps(document))])


@given(POLICIES)
def test_a_policy_differs_in_nothing_from_itself(policy: Policy) -> None:
    assert diff(policy, policy).tried == 0
    found = diff(policy, renewed(policy))
    assert not found.changes
    assert not found.facts
    assert not found.wider


@given(POLICIES, POLICIES)
def test_what_is_found_is_so_and_turns_round(one: Policy, other: Policy) -> None:
    there, back = diff(one, other), diff(other, one)
    for change in there.changes:
        past = change.past
        before = evaluate(one, change.call, ledger_of(one, past.run, past.client))
        after = evaluate(other, change.call, ledger_of(other, past.run, past.client))
        assert (before.effect, after.effect) == (change.before.effect, change.after.effect)
    turned = {(c.tool, c.after.effect, c.before.effect) for c in back.changes}
    assert {(c.tool, c.before.effect, c.after.effect) for c in there.changes} == turned


def test_one_example_stands_for_many_and_is_the_smallest() -> None:
    (change,) = changed("[EUR, SEK]", "[EUR, SEK, USD]")
    assert change.count > 1
    assert change.call.args == {"amount": 1, "id": "cust_000000", "currency": "USD"}
    assert not change.past.size


def test_arguments_of_a_schema_are_tried_too() -> None:
    old = policy_of("tools: {t: [{decision: allow, args: {a: {type: string}}}]}")
    new = policy_of("tools: {t: [{decision: allow, args: {a: {type: string}}, extra_args: true}]}")
    found = diff(old, new, {"t": {"force": (True,)}, "u": {"x": (1,)}})
    assert [change.word for change in found.changes] == ["deny -> allow"]
    assert diff(old, new, only=["u"]).tried < found.tried


def test_what_can_not_be_probed_is_told() -> None:
    rules = "tools: {t: [{decision: allow}]}\nhistory: [{match: {tool: t}, max: 5000, decision: deny}]"
    found = diff(policy_of(rules), policy_of(rules.replace("5000", "5001")))
    assert any("5000" in words for words in found.blind)


PATTERNS = st.recursive(
    st.sampled_from(["a", "[0-9]", "[^/]", r"\d", r"\w", ".", "x-y", r"\.", "[a-zA-Z_-]", "é", "^", "$", r"\b"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join).map("({})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PATTERNS)
def test_specimens_hold_matches_and_near_misses(pattern: str) -> None:
    compiled = compile_pattern(pattern)
    found = specimens(pattern)
    assert found
    if not set("^$") & set(pattern.replace("[^/]", "")) and r"\b" not in pattern:
        assert any(compiled.judge(text) for text in found), (pattern, found)
    assert len(found) == len(set(found)) <= 64


@pytest.mark.parametrize(
    "pattern",
    [
        r"^registry\.corp\.example/[a-z-]+@sha256:[0-9a-f]{64}$",
        r"(?is).*(;|--|/\*|\b(insert|update|delete|drop|grant|copy|call)\b).*",
        r"(?i)https?://([^/]*@|localhost|127\.|10\.|169\.254\.|192\.168\.|\[).*",
        r"^10\.[0-9]{4,9}/[A-Za-z0-9._-]{1,80}$",
        r"(?is)select .+",
        r"[A-Z]{1,1000}",
    ],
)
def test_patterns_of_real_policies_have_matches_and_near_misses(pattern: str) -> None:
    judged = {compile_pattern(pattern).judge(text) for text in specimens(pattern)}
    assert judged >= {True, False}


def test_a_bounded_pattern_is_probed_at_its_length() -> None:
    rule = Constraint(type="string", pattern="(?s)select .+", compiled=compile_pattern("(?s)select .+"), max_length=99)
    judge = compile_judge(rule, Reading.CLOSED)
    policy = policy_of("tools: {t: [{decision: allow, args: {q: {pattern: '(?s)select .+', max_length: 99}}}]}")
    lengths = {
        len(str(args["q"])) for args in probe_calls(policy.tools["t"].rules).calls if judge(args.get("q")) is True
    }
    assert 99 in lengths
    assert witness(rule) is not None


@given(POLICIES)
def test_probes_hold_a_call_for_every_allow_that_a_value_was_found_for(policy: Policy) -> None:
    for tool in policy.tools.values():
        for rule in tool.rules:
            probes = probe_calls([rule])
            fits: list[Any] = [args for args in probes.calls if rule.matches(args) is True]
            blind = [words for words in probes.blind if words.startswith(rule.name)]
            assert fits or blind, rule
