"""Test files are read strictly, run as written, and their coverage counts what was really hit."""

from typing import Any

import pytest

from carnet.reasons import Reason
from carnet_policy import PolicyError
from carnet_policy.tables import REASONS, Hits, read_table, run_table
from tests.policy.building import policy_of

POLICY = policy_of(
    """
version: 1
catalog: {refund: {effect: irreversible}, note: {effect: write}}
tools:
  refund:
    - {decision: allow, args: {amount: {min: 0.01, max: 50}}}
    - {decision: deny, args: {amount: {min: 50.01}}, reason: ask finance}
  note: [{decision: allow}]
history:
  - {match: irreversible, max: 1, decision: deny}
  - {match: {tool: note}, max: 2, over: client, window: 100, decision: require_approval}
"""
)


def problems(case: str) -> tuple[str, ...]:
    (result,) = run_table(POLICY, read_table(f"cases:\n  - {case}\n", "t.test.yaml"))
    return result.problems


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("case: []", "1:1", "unknown key 'case'"),
        ("cases:\n  - {name: a, call: {tool: t}, expects: {}}", "2:32", "did you mean expect"),
        ("cases:\n  - {name: a, call: {tool: t, arg: {}}, expect: {decision: deny}}", "2:31", "did you mean args"),
        ("cases:\n  - {name: a, call: {tool: t}, expect: {decision: denied}}", "2:41", "must be one of"),
        ("cases:\n  - {name: a, call: {tool: t}, expect: {decision: deny, reason: limit}}", "2:57", "must be one of"),
        ("cases:\n  - {name: a, call: {tool: t}, expect: {decision: deny, reason: no_match, reason_code: no_match}}",
         "2:75", "the same thing"),
        ("cases:\n  - {name: a, call: {tool: t}, expect: {rule: 'x'}}", "2:32", "has no decision"),
        ("cases:\n  - {name: a, expect: {decision: deny}}", "2:5", "has no call"),
        ("cases:\n  - {name: a, call: {tool: t}, history: [{tool: t, outcome: fine}], expect: {decision: deny}}",
         "2:52", "must be one of"),
        ("cases:\n  - {name: a, call: {tool: t}, expect: {decision: deny}}\n"
         "  - {name: a, call: {tool: u}, expect: {decision: deny}}", "3:5", "two cases are called"),
        ("matrix: {tools: [], args: [{}], expect: {decision: deny}}", "1:1", "tests nothing"),
        ("policy: p.yaml", "1:1", "tests nothing"),
        ("cases: []\ncases: []", "2:1", "duplicate key"),
        ("policy: []\ncases:\n  - {name: a, call: {tool: t}, expect: {decision: deny}}", "1:1", "names no file"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_an_error_with_its_place(text: str, place: str, said: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_table(text, "t.test.yaml")
    assert str(caught.value).startswith(f"t.test.yaml:{place}: ")
    assert said in caught.value.message


def test_a_case_that_holds_has_no_problems() -> None:
    assert not problems(
        "{name: a, call: {tool: refund, args: {amount: 60}}, "
        "expect: {decision: deny, rule: 'refund[1]', reason: policy_deny, reason_contains: FINANCE}}"
    )


def test_each_expectation_that_fails_is_told() -> None:
    assert problems(
        "{name: a, call: {tool: refund, args: {amount: 60}}, "
        "expect: {decision: allow, rule: 'refund[0]', reason_code: policy_allow, reason_contains: legal}}"
    ) == (
        "decision is deny, expected allow",
        "rule is refund[1], expected refund[0]",
        "reason is policy_deny, expected policy_allow",
        'the reason\'s sentence lacks "legal"',
    )


@pytest.mark.parametrize(
    ("past", "decision"),
    [
        ("outcome: ok", "deny"), ("outcome: unknown", "deny"), ("outcome: failed", "deny"),
        ("outcome: pending", "deny"),
        ("outcome: denied", "allow"), ("outcome: timed_out", "allow"), ("outcome: superseded", "allow"),
    ],
)  # fmt: skip
def test_a_past_call_counts_while_it_holds_a_slot(past: str, decision: str) -> None:
    call = "call: {tool: refund, args: {amount: 5}, pinned: true}"
    assert not problems(f"{{name: a, {call}, history: [{{tool: refund, {past}}}], expect: {{decision: {decision}}}}}")


def test_a_failed_call_that_can_be_undone_holds_nothing() -> None:
    rows = "history: [{tool: note, outcome: failed, times: 5}]"
    assert not problems(f"{{name: a, call: {{tool: note}}, {rows}, expect: {{decision: allow}}}}")


def test_the_client_s_other_runs_count_within_the_window() -> None:
    for age, decision in ((100, "require_approval"), (101, "allow")):
        rows = f"client_history: [{{tool: note, age: {age}, times: 2}}]"
        assert not problems(f"{{name: a, call: {{tool: note}}, {rows}, expect: {{decision: {decision}}}}}")
    assert not problems(
        "{name: a, call: {tool: refund, args: {amount: 1}, pinned: true}, client_history: [{tool: refund}], "
        "expect: {decision: allow}}"
    )


def test_the_floor_asks_unless_the_envelope_pins() -> None:
    call = "call: {tool: refund, args: {amount: 5}"
    assert not problems(f"{{name: a, {call}}}, expect: {{decision: require_approval, rule: floor}}}}")
    assert not problems(f"{{name: a, {call}, pinned: true}}, expect: {{decision: allow, rule: 'refund[0]'}}}}")


def test_a_matrix_is_every_tool_with_every_row() -> None:
    table = read_table(
        "matrix: {tools: [refund, wipe], args: [{amount: .nan}, {amount: true}, {}], expect: {decision: deny}}", "t"
    )
    assert [case.name for case in table.cases][:2] == ['refund {"amount": NaN}', 'refund {"amount": true}']
    assert len(table.cases) == 6
    assert not [result for result in run_table(POLICY, table) if result.problems]


def test_a_cell_is_judged_by_its_matrix_whatever_a_case_says_of_the_same_call() -> None:
    table = read_table(
        "cases:\n  - {name: a, call: {tool: note}, expect: {decision: allow}}\n"
        "matrix: {tools: [note], args: [{}], expect: {decision: deny}}",
        "t",
    )
    assert [bool(result.problems) for result in run_table(POLICY, table)] == [False, True]


def hit_by(*cases: str) -> Any:
    hits = Hits(POLICY)
    text = "".join(f"  - {{name: c{n}, {case}, expect: {{decision: deny}}}}\n" for n, case in enumerate(cases))
    run_table(POLICY, read_table(f"cases:\n{text}", "t"), hits)
    return hits.coverage()


def test_coverage_counts_rules_and_tells_floor_and_default_apart() -> None:
    found = hit_by("call: {tool: refund, args: {amount: 5}}", "call: {tool: wipe}")
    assert dict(found.rules) == {"refund[0]": 1, "refund[1]": 0, "note[0]": 0, "history[0]": 0, "history[1]": 0}
    assert (found.floor, found.default, found.percent) == (1, 1, 20.0)
    assert found.missed == ("refund[1]", "note[0]", "history[0]", "history[1]")


def test_a_bound_that_stands_behind_a_denial_is_not_hit() -> None:
    past = "history: [{tool: refund}]"
    assert "history[0]" in hit_by(f"call: {{tool: refund, args: {{amount: 60}}}}, {past}").missed
    assert "history[0]" not in hit_by(f"call: {{tool: refund, args: {{amount: 5}}}}, {past}").missed


def test_the_reasons_a_test_may_expect_are_reasons_of_the_catalogue() -> None:
    assert set(REASONS) <= {reason.value for reason in Reason}
