"""A candidate over recorded decisions: what is certain is told, what records hide is called unknown."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.audit import Record, argument_digests, clear_fields
from carnet_policy import Call, Effect, Folds, Ledger, PastCall, Policy, PolicyError, evaluate
from carnet_policy.explain import Trace
from carnet_policy.partial import possible_effects
from carnet_policy.recorded import Unexplained, explain_record, read_export
from carnet_policy.replay import Replay, replay
from tests.policy.building import policy_of
from tests.policy.tooling.drawing import NOW, POLICIES, VALUES

Line = dict[str, Any]
ALL = ("a", "b", "c", "amount", "id")


def decided(
    number: int, tool: str, args: dict[str, Any], decision: str, reason: str, clear: tuple[str, ...] = ALL, **more: Any
) -> Line:
    """A record as an export holds it."""
    record = Record(
        at=more.pop("at", NOW + number),
        tenant="acme",
        kind=more.pop("kind", "call_decided"),
        actor="agent:a",
        seq=number,
        run=more.pop("run", "dlg_run"),
        client=more.pop("client", "c1"),
        delegation="dlg_child",
        tool=tool,
        args=argument_digests(b"k" * 32, args),
        clear=clear_fields(clear, tool, args),
        decision=decision,
        reason=reason,
        call=more.pop("call", f"call_{number}"),
        policy={"id": "p", "version": 1, "digest": "0" * 64},
        **more,
    )
    line: Line = json.loads(json.dumps(dataclasses.asdict(record)))
    return line


def after(number: int, kind: str, call: str, **more: Any) -> Line:
    return {"kind": kind, "seq": number, "at": NOW + number, "call": call, **more}


def run_over(text: str, *lines: Line) -> Replay:
    return replay(policy_of(text), lines)


LIMITED = "tools: {t: [{decision: allow, args: {amount: {min: 0, max: 50}}}]}"


def test_a_flip_is_told_with_its_count_its_rules_and_its_first_call() -> None:
    lines = [decided(n, "t", {"amount": 60 + n}, "allow", "policy_allow", rule="t[0]") for n in range(3)]
    found = run_over(LIMITED, decided(9, "t", {"amount": 1}, "allow", "policy_allow"), *lines)
    (flip,) = found.flips
    assert (flip.word, flip.count, flip.old_rule, flip.rule, flip.reason) == (
        "allow -> deny",
        3,
        "t[0]",
        None,
        "no_match",
    )
    assert (flip.example.seq, flip.example.known) == (0, {"amount": 60})
    assert (found.same, found.flipped, found.unknown) == (1, 3, {})


def test_what_only_a_hidden_argument_could_tell_is_unknown() -> None:
    found = run_over(LIMITED, decided(1, "t", {"amount": 60}, "allow", "policy_allow", clear=()))
    assert (found.same, found.flipped, found.unknown) == (0, 0, {("t", ("amount",)): 1})


def test_what_no_hidden_argument_can_change_is_told() -> None:
    hidden = decided(1, "t", {"amount": 60, "id": "x"}, "allow", "policy_allow", clear=())
    assert run_over(LIMITED, hidden).flips[0].word == "allow -> deny"  # id is named by no rule
    assert run_over("tools: {t: [{decision: deny}]}", hidden).flips[0].rule is None
    assert run_over("tools: {t: [{decision: allow, extra_args: true}]}", hidden).same == 1
    assert run_over("tools: {}", hidden).flips[0].word == "allow -> deny"


def test_a_flip_whose_end_is_open_is_still_a_flip() -> None:
    text = "tools: {t: [{decision: deny, args: {amount: {min: 5}}}, {decision: require_approval}]}"
    found = run_over(text, decided(1, "t", {"amount": 1}, "allow", "policy_allow", clear=()))
    assert found.flips[0].word == "allow -> deny or require_approval"


ONCE = "tools: {t: [{decision: allow, extra_args: true}]}\nhistory: [{match: {tool: t}, max: 1, decision: deny}]"


def test_the_past_of_a_run_counts_and_that_of_another_run_does_not() -> None:
    lines = [decided(n, "t", {}, "allow", "policy_allow", run=run) for n, run in ((1, "r1"), (2, "r2"), (3, "r1"))]
    found = run_over(ONCE, *reversed(lines))
    assert [(flip.rule, flip.example.seq) for flip in found.flips] == [("history[0]", 3)]
    assert found.same == 2


@pytest.mark.parametrize(
    ("freed", "flips"),
    [
        (after(2, "timed_out", "call_1"), 0),
        (after(2, "answered", "call_1", decision="deny"), 0),
        (after(2, "answered", "call_1", decision="approve"), 1),
        (after(2, "lapsed", "call_1"), 0),
        (after(2, "superseded", "call_1"), 0),
        (after(2, "call_outcome", "call_1", outcome="done"), 1),
        (after(2, "call_outcome", "call_other", outcome="failed"), 1),
    ],
)
def test_a_question_that_ended_without_a_yes_holds_nothing(freed: Line, flips: int) -> None:
    text = "tools: {t: [{decision: require_approval}]}\nhistory: [{match: {tool: t}, max: 1, decision: deny}]"
    lines = [decided(n, "t", {}, "require_approval", "policy_approval") for n in (1, 3)]
    assert run_over(text, lines[0], freed, lines[1]).flipped == flips


def test_a_failed_call_frees_its_slot_only_where_it_can_be_undone() -> None:
    lines = [decided(1, "t", {}, "allow", "policy_allow"), after(2, "call_outcome", "call_1", outcome="failed")]
    lines.append(decided(3, "t", {}, "allow", "policy_allow"))
    assert run_over(f"catalog: {{t: {{effect: write}}}}\n{ONCE}", *lines).flipped == 0
    assert run_over(ONCE, *lines).flipped == 1


def test_the_same_call_on_record_again_is_judged_once_and_counts_once() -> None:
    text = "tools: {t: [{decision: require_approval}]}\nhistory: [{match: {tool: t}, max: 1, decision: deny}]"
    asked = decided(1, "t", {}, "require_approval", "policy_approval")
    again = decided(2, "t", {}, "require_approval", "policy_approval", call="call_1")
    spent = decided(3, "t", {}, "allow", "approved", call="call_1")
    found = run_over(text, asked, again, spent)
    assert (found.same, found.flipped, found.elsewhere) == (1, 0, {})


SUM = """
tools: {t: [{decision: allow, extra_args: true}]}
history: [{match: {tool: t}, sum: amount, max: 100, decision: require_approval}]
"""


def test_a_sum_over_hidden_amounts_is_unknown_until_the_known_ones_pass_it() -> None:
    hidden = decided(1, "t", {"amount": 5}, "allow", "policy_allow", clear=())
    known = [decided(n, "t", {"amount": 60}, "allow", "policy_allow") for n in (2, 3)]
    found = run_over(SUM, hidden, *known)
    assert sum(found.unknown.values()) == 2
    assert [flip.word for flip in found.flips] == ["allow -> deny or require_approval"]
    assert run_over(SUM, *known).flips[0].rule == "history[0]"


def test_a_window_of_a_client_forgets() -> None:
    text = ONCE.replace("max: 1,", "max: 1, over: client, window: 10,")
    lines = [
        decided(n, "t", {}, "allow", "policy_allow", run=f"r{n}", at=NOW + at) for n, at in ((1, 0), (2, 10), (3, 30))
    ]
    assert [flip.example.seq for flip in run_over(text, *lines).flips] == [2]


def test_what_the_broker_s_bounds_decided_is_counted_apart() -> None:
    found = run_over(LIMITED, decided(1, "t", {"amount": 1}, "deny", "max_calls"))
    assert (found.elsewhere, found.same, found.flipped) == ({"max_calls": 1}, 0, 0)


def test_the_local_lane_s_intents_are_decisions() -> None:
    found = run_over(LIMITED, decided(1, "t", {"amount": 99}, "allow", "policy_allow", kind="call_intent"))
    assert found.flipped == 1


def test_an_envelope_that_may_pin_leaves_the_floor_unknown() -> None:
    text = "catalog: {t: {effect: irreversible}}\ntools: {t: [{decision: allow}]}"
    call = decided(2, "t", {}, "allow", "policy_allow")
    envelope = {"approval_required": True, "ceilings": {"t": {"max_calls": 1}}}
    spawned = {"kind": "spawned", "seq": 1, "at": NOW, "delegation": "dlg_child", "facts": {"envelope": envelope}}
    assert run_over(text, spawned, call).unknown == {("t", ()): 1}
    unpinned = {**spawned, "facts": {"envelope": {"approval_required": True, "ceilings": {}}}}
    assert run_over(text, unpinned, call).flips[0].word == "allow -> require_approval"


@given(POLICIES, st.sampled_from("tu"), st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), st.data())
def test_what_hidden_arguments_may_bring_about_holds_what_they_do(
    policy: Policy, tool: str, args: dict[str, Any], data: st.DataObject
) -> None:
    hidden = frozenset(data.draw(st.sets(st.sampled_from(sorted(args)))) if args else ())
    known = {name: value for name, value in args.items() if name not in hidden}
    bounds = [frozenset({None})] * len(policy.bounding(tool))
    bare = policy_without_history(policy)
    for pinned in (False, True):
        found = possible_effects(bare, tool, known, hidden, bounds, pinned)
        assert evaluate(bare, Call(tool, args, pinned), None).effect in found
        assert hidden or len(found) == 1
        assert found <= possible_effects(bare, tool, known, hidden, bounds, None)


def policy_without_history(policy: Policy) -> Policy:
    return dataclasses.replace(policy, history=(), _bounding={}, _bounding_unsafe=())


CALLS = st.lists(
    st.tuples(
        st.sampled_from("tu"), st.dictionaries(st.sampled_from("ab"), st.sampled_from([0, 1, 2.5, "x", [1, 2], None]))
    ),
    max_size=8,
)


@given(POLICIES, CALLS, st.sets(st.integers(0, 7)))
def test_over_clear_records_a_replay_decides_as_the_engine_does(
    policy: Policy, calls: list[tuple[str, dict[str, Any]]], hide: set[int]
) -> None:
    run, client = Folds(policy), Folds(policy, "client")
    lines, effects = [], []
    for number, (tool, args) in enumerate(calls):
        ledger = Ledger(run, client, NOW + number, 0)
        decision = evaluate(policy, Call(tool, args), ledger)
        lines.append(decided(number, tool, args, decision.effect.value, decision.reason, ("a", "b")))
        effects.append(decision.effect)
        if decision.effect is not Effect.DENY:
            row = PastCall(tool, args, NOW + number)
            run.put(str(number), row)
            client.put(str(number), row)
    pinned = {"kind": "spawned", "at": 0, "delegation": "dlg_child", "facts": {"envelope": {"ceilings": {}}}}
    found = replay(policy, [pinned, *lines])
    assert (found.same, found.flipped, dict(found.unknown)) == (len(calls), 0, {})
    half = [line if number not in hide else {**line, "clear": {}} for number, line in enumerate(lines)]
    assert replay(policy, [pinned, *half]).flipped == 0  # hidden values can make an answer unknown, never wrong


def test_a_record_with_clear_arguments_can_be_expanded() -> None:
    policy = policy_of(LIMITED)
    trace = explain_record(policy, decided(1, "t", {"amount": 60}, "deny", "no_match"))
    assert isinstance(trace, Trace)
    assert trace.rules[0].why == "amount: 60 does not satisfy max 50"
    run = Folds(policy)
    assert (
        explain_record(policy, decided(1, "t", {"amount": 6}, "allow", "policy_allow"), Ledger(run, None, NOW, 0))
        != trace
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (decided(1, "t", {"amount": 60}, "deny", "no_match", clear=()), "only digests of amount"),
        (decided(1, "t", {"amount": 60}, "deny", "max_calls"), "not the policy"),
        ({"kind": "spawned", "tool": "t", "decision": "deny"}, "not of a decided call"),
    ],
)
def test_a_record_that_does_not_show_enough_says_why(line: Line, why: str) -> None:
    found = explain_record(policy_of(LIMITED), line)
    assert isinstance(found, Unexplained)
    assert why in found.why


def test_an_export_is_read_line_by_line() -> None:
    text = [
        '{"record": {"kind": "spawned"}, "link": "x"}\n',
        "\n",
        '{"checkpoint": {"seq": 1}}\n',
        '{"kind": "ended"}\n',
    ]
    assert [record["kind"] for record in read_export(text, "e")] == ["spawned", "ended"]


@pytest.mark.parametrize("line", ["{", "[]", "7", '{"a": 1}', "[" * 100_000, "x" * (1 << 20 | 1)])
def test_a_line_that_is_no_record_is_an_error_with_its_number(line: str) -> None:
    with pytest.raises(PolicyError) as caught:
        list(read_export(["", line], "export.jsonl"))
    assert str(caught.value).startswith("export.jsonl:2:1: ")


@given(
    st.dictionaries(
        st.sampled_from(["kind", "tool", "decision", "args", "clear", "at", "seq", "call", "facts", "run"]),
        VALUES | st.sampled_from(["call_decided", "allow", "t", "policy_allow", "spawned", "call_outcome"]),
    )
)
def test_any_record_is_replayed_or_passed_over(line: Line) -> None:
    found = run_over(
        SUM, line, {**line, "kind": "call_decided", "tool": "t", "decision": "allow", "reason": "policy_allow"}
    )
    assert found.same + found.flipped + sum(found.unknown.values()) + sum(found.elsewhere.values()) >= 1
