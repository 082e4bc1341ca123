"""A trace says what the engine decided, and the decision can be told from its lines alone."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carnet_policy import Call, Effect, Policy, evaluate
from carnet_policy.explain import Trace, explain
from carnet_policy.judging import compile_judge
from carnet_policy.policy import NO_RULES
from tests.policy.building import policy_of, rules_for
from tests.policy.tooling.drawing import ARGS, NOW, PASTS, POLICIES, past_of
from tests.policy.tooling.strange import ANYTHING


def told(policy: Policy, trace: Trace) -> str:
    """The decision as a reader of the trace's lines would tell it."""
    answers = [(rule.effect, rule.matches) for rule in trace.rules]
    if any(effect is Effect.DENY and match is not False for effect, match in answers):
        return "deny"
    doubt = (Effect.REQUIRE_APPROVAL, None) in answers
    if (Effect.REQUIRE_APPROVAL, True) in answers:
        base = "require_approval"
    elif (Effect.ALLOW, True) in answers or policy.default is Effect.ALLOW:
        base = "require_approval" if doubt else "allow"
    else:
        base = policy.default.value
    if base == "deny":
        return base
    by_state = {"over": None, "unreadable": "deny", "young": "require_approval"}
    bounds = [by_state[one.state] or one.effect.value for one in trace.history if one.state != "within"]
    if "deny" in bounds:
        return "deny"
    if base == "allow" and (bounds or trace.floor == "applies"):
        return "require_approval"
    return base


@given(POLICIES, st.sampled_from("tuv"), ARGS, PASTS, st.booleans(), st.booleans())
def test_the_trace_and_the_engine_say_the_same(
    policy: Policy, tool: str, args: dict[str, Any], rows: list[Any], pinned: bool, young: bool
) -> None:
    since = {rule.id: NOW - 50 for rule in policy.history} if young else {}
    ledger = past_of(policy, rows, since=since, skip="0" if rows else None)
    call = Call(tool, args, pinned)
    for past in (None, ledger):
        trace = explain(policy, call, past)
        assert trace.decision == evaluate(policy, call, past)
        assert told(policy, trace) == trace.decision.effect
        deciding = [one.name for one in trace.rules if one.decides]
        deciding += [one.name for one in trace.history if one.decides]
        assert deciding == ([trace.decision.rule] if trace.decision.rule not in (None, "floor") else [])


@given(POLICIES, ARGS)
def test_each_argument_is_judged_as_the_rule_judges_it(policy: Policy, args: dict[str, Any]) -> None:
    trace = explain(policy, Call("t", args), None)
    for rule, traced in zip(policy.tools.get("t", NO_RULES).rules, trace.rules, strict=True):
        assert traced.matches == rule.matches(args)
        assert traced.why
        for one in traced.arguments:
            if one.answer is not True:  # whatever kept it from matching is among the findings
                assert any(finding.answer is one.answer for finding in one.findings), (rule, args, one)


@given(POLICIES, PASTS, ARGS)
def test_the_numbers_of_a_bound_are_those_it_was_judged_by(
    policy: Policy, rows: list[Any], args: dict[str, Any]
) -> None:
    for one in explain(policy, Call("t", args), past_of(policy, rows, skip="0" if rows else None)).history:
        if one.after is not None:
            assert (float(one.after) > float(one.limit)) == (one.state == "over")


@given(st.dictionaries(st.sampled_from("abc") | st.text(max_size=3), ANYTHING, max_size=3) | ANYTHING, ANYTHING)
def test_anything_can_be_explained(args: Any, tool: Any) -> None:
    policy = rules_for(
        "{decision: allow, args: {a: {enum: [[1, {b: 2.5}], x]}}}",
        "{decision: require_approval, args: {b: {items: {pattern: 'x+'}}}}",
        more="history: [{match: {tool: tool}, distinct: a, max: 1, decision: deny}]",
    )
    for name in ("tool", tool):
        trace = explain(policy, Call(name, args), None)
        assert trace.decision == evaluate(policy, Call(name, args), None)
        if isinstance(name, str):
            json.dumps(trace.as_dict())


def test_a_finding_names_the_argument_the_constraint_and_the_value() -> None:
    policy = rules_for(
        "{decision: allow, args: {amount: {min: 0.01, max: 50}, currency: {enum: [EUR, SEK]}}}",
        "{decision: deny, args: {amount: {min: 50.01}}, reason: finance only}",
    )
    trace = explain(policy, Call("tool", {"amount": 60, "currency": "EUR"}), None)
    assert trace.rules[0].why == "amount: 60 does not satisfy max 50"
    assert trace.rules[1].why == "amount: 60 satisfies min 50.01"
    assert trace.rules[1].decides


def test_missing_and_unnamed_arguments_are_told() -> None:
    policy = rules_for("{decision: allow, args: {a: {type: string}, b: {type: string, required: false}}}")
    assert explain(policy, Call("tool", {}), None).rules[0].why == "a is missing"
    trace = explain(policy, Call("tool", {"a": "x", "c\x1b[2J": 1}), None)
    assert trace.rules[0].why == "c\\u001b[2J is not named by the rule"


def test_what_is_inside_lists_and_objects_is_told_by_its_path() -> None:
    policy = rules_for(
        "{decision: allow, args: {rows: {items: {properties: {id: {pattern: '[0-9]+'}, n: {type: integer}}}}}}"
    )
    trace = explain(policy, Call("tool", {"rows": [{"id": "1", "n": 1}, {"id": "x", "m": 2}]}), None)
    said = {finding.sentence for one in trace.rules[0].arguments for finding in one.findings}
    assert 'rows[1].id: "x" does not satisfy pattern "[0-9]+"' in said
    assert "rows[1].n is missing" in said
    assert "rows[1].m is not named by the rule" in said


def test_long_and_hidden_text_is_shown_short_and_visible() -> None:
    policy = rules_for("{decision: allow, args: {a: {max_length: 3}}}")
    why = explain(policy, Call("tool", {"a": "\u202e" + "x" * 1_000_000}), None).rules[0].why
    assert len(why) < 200
    assert "\u202e" not in why


def test_the_floor_and_the_history_have_their_lines() -> None:
    policy = rules_for(
        "{decision: allow}", effect="irreversible", more="history: [{match: irreversible, max: 1, decision: deny}]"
    )
    first = explain(policy, Call("tool", {}), None)
    assert (first.floor, first.decision.rule) == ("applies", "floor")
    assert first.history[0].why == "calls (irreversible tools, this run): 0 before, 1 by this call, at most 1"
    pinned = explain(policy, Call("tool", {}, pinned=True), None)
    assert (pinned.floor, pinned.decision.effect) == ("pinned", Effect.ALLOW)
    second = explain(policy, Call("tool", {}), past_of(policy, [("tool", {}, 5, False)]))
    assert second.history[0].decides
    assert second.decision.reason == "history_limit"


def test_a_ledger_of_another_policy_is_told_as_such() -> None:
    policy = policy_of("history: [{match: irreversible, max: 1, decision: deny}]\ntools: {t: [{decision: allow}]}")
    other = policy_of("version: 2\nhistory: [{match: irreversible, max: 1, decision: deny}]")
    trace = explain(policy, Call("t", {}), past_of(other, []))
    assert trace.decision.reason == "policy_error"
    assert trace.history[0].state == "unknown"


def test_the_judge_of_an_argument_is_compiled_as_the_rule_reads_it() -> None:
    from carnet_policy.explain import READINGS

    policy = rules_for(
        *(f"{{decision: {word}, args: {{a: {{items: {{max: 1}}}}}}}}" for word in ("deny", "require_approval"))
    )
    for rule in policy.tools["tool"].rules:
        judge = compile_judge(rule.args["a"], READINGS[rule.effect])
        assert [judge(v) for v in ([0], [0, 2], [2])] == [rule.matches({"a": v}) for v in ([0], [0, 2], [2])]
