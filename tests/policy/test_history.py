"""Bounds over a run and over a client: what counts, what lapses, and what can not be counted."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet_policy import Call, Decision, Effect, Folds, Ledger, PastCall, Policy, evaluate
from tests.policy.building import NOW, past, policy_of

TOOLS = (
    "catalog: {pay: {effect: irreversible}, mail: {effect: irreversible}, read: {effect: read}, odd: {}}\n"
    "tools:\n"
    "  pay: [{decision: require_approval, args: {amount: {required: false}, to: {required: false}}}]\n"
    "  mail: [{decision: require_approval}]\n"
    "  odd: [{decision: require_approval}]\n"
    "  read: [{decision: allow, args: {id: {required: false}}}]\n"
)


def bounded(*rules: str, head: str = TOOLS) -> Policy:
    return policy_of(head + "history:\n" + "".join(f"  - {rule}\n" for rule in rules))


def ask(policy: Policy, ledger: Ledger | None, tool: str = "pay", **args: Any) -> Decision:
    return evaluate(policy, Call(tool, args), ledger)


ONE = "{match: irreversible, max: 1, decision: deny, reason: second irreversible action}"
SUM = "{match: {tool: pay}, sum: amount, max: 100, decision: deny}"
WINDOW = "{match: {tool: pay}, max: 1, over: client, window: 60, decision: deny}"
DISTINCT = "{match: {tool: read}, distinct: id, max: 2, decision: require_approval}"


def test_irreversible_calls_count_across_tools_and_reads_do_not() -> None:
    policy = bounded(ONE)
    decision = ask(policy, past(policy, [PastCall("mail", {}, 1)]))
    assert (decision.effect, decision.reason, decision.rule) == (Effect.DENY, "history_limit", "history[0]")
    assert decision.detail == "second irreversible action"
    assert ask(policy, past(policy, [PastCall("read", {}, 1)])).effect is Effect.REQUIRE_APPROVAL
    assert ask(policy, past(policy, [PastCall("mail", {}, 1)]), "read").effect is Effect.ALLOW


@pytest.mark.parametrize("tool", ["odd", "never-heard-of"])
def test_a_tool_without_a_known_effect_counts_as_irreversible(tool: str) -> None:
    policy = bounded(ONE)
    assert ask(policy, past(policy, [PastCall(tool, {}, 1)])).reason == "history_limit"
    assert policy.bounds(tool)


def test_without_a_catalog_every_tool_counts() -> None:
    policy = bounded(ONE, head="tools: {pay: [{decision: allow}], read: [{decision: allow}]}\n")
    assert ask(policy, past(policy, [PastCall("read", {}, 1)])).reason == "history_limit"


def test_a_waiting_call_holds_its_slot_until_the_clock_says_otherwise() -> None:
    policy = bounded(ONE)
    waiting = PastCall("mail", {}, 1, hold_until=NOW)
    assert ask(policy, past(policy, [waiting], now=NOW - 1)).effect is Effect.DENY
    assert ask(policy, past(policy, [waiting], now=NOW)).effect is Effect.REQUIRE_APPROVAL


def test_the_clock_may_step_back() -> None:
    policy = bounded(ONE)
    ledger = past(policy, [PastCall("mail", {}, 1, hold_until=NOW)])
    effects = [ask(policy, Ledger(ledger.run, ledger.client, now, 0)).effect for now in (NOW, NOW - 1, NOW, NOW - 1)]
    assert effects == [Effect.REQUIRE_APPROVAL, Effect.DENY] * 2


def test_a_repeat_does_not_count_its_own_waiting_row() -> None:
    policy = bounded(ONE)
    waiting = [PastCall("pay", {}, 1, hold_until=NOW + 9)]
    assert ask(policy, past(policy, waiting, skip="0")).effect is Effect.REQUIRE_APPROVAL
    assert ask(policy, past(policy, waiting, skip="unknown")).effect is Effect.DENY
    assert ask(policy, past(policy, waiting)).effect is Effect.DENY


def test_a_row_can_be_replaced_and_removed() -> None:
    policy = bounded(ONE)
    folds = Folds(policy)
    ledger = Ledger(folds, None, NOW, 0)
    for call, wanted in (
        (PastCall("mail", {}, 1, hold_until=NOW + 5), Effect.DENY),
        (PastCall("mail", {}, 1, hold_until=NOW), Effect.REQUIRE_APPROVAL),
        (PastCall("mail", {}, 1), Effect.DENY),
        (None, Effect.REQUIRE_APPROVAL),
        (None, Effect.REQUIRE_APPROVAL),
    ):
        folds.put("row", call)
        assert ask(policy, ledger).effect is wanted


def test_sums_are_exact() -> None:
    policy = bounded("{match: {tool: pay}, sum: amount, max: 0.3, decision: deny}")
    ledger = past(policy, [PastCall("pay", {"amount": 0.1}, 1)])
    assert ask(policy, ledger, amount=0.2).effect is Effect.REQUIRE_APPROVAL
    assert ask(policy, ledger, amount=0.2000001).reason == "history_limit"
    huge = bounded("{match: {tool: pay}, sum: amount, max: 100000000000000000000000000000001, decision: deny}")
    ledger = past(huge, [PastCall("pay", {"amount": 10**32}, 1)])
    assert ask(huge, ledger, amount=1).effect is Effect.REQUIRE_APPROVAL
    assert ask(huge, ledger, amount=1.0000000000000002).reason == "history_limit"


@pytest.mark.parametrize(
    "args", [{}, *({"amount": value} for value in (-1, "5", True, None, [5], float("nan"), float("inf"), 10**3000))]
)
def test_what_can_not_be_summed_is_denied(args: dict[str, Any]) -> None:
    policy = bounded(SUM, head=TOOLS.replace(", args: {amount: {required: false}, to: {required: false}}", ""))
    decision = evaluate(policy, Call("pay", args), None)
    assert (decision.effect, decision.reason) == (Effect.DENY, "history_value")
    assert "history" in decision.detail


def test_a_past_call_that_can_not_be_summed_denies_what_follows() -> None:
    policy = bounded(SUM)
    ledger = past(policy, [PastCall("pay", {}, 1)])
    assert ask(policy, ledger, amount=1).reason == "history_value"
    assert ask(policy, past(policy, [PastCall("pay", {}, 1)], skip="0"), amount=1).effect is Effect.REQUIRE_APPROVAL


def test_a_list_counts_each_of_its_values_and_types_are_told_apart() -> None:
    policy = bounded(DISTINCT)
    ledger = past(policy, [PastCall("read", {"id": 1}, 1), PastCall("read", {"id": 1}, 2)])
    assert ask(policy, ledger, "read", id=1).effect is Effect.ALLOW
    assert ask(policy, ledger, "read", id=["b", "b"]).effect is Effect.ALLOW
    assert ask(policy, ledger, "read", id=["b", "c"]).reason == "history_limit"
    assert ask(policy, ledger, "read", id=[1.0, True]).effect is Effect.REQUIRE_APPROVAL
    assert ask(policy, ledger, "read").effect is Effect.ALLOW  # an absent argument is one more value


def test_a_client_rule_looks_at_its_window_only() -> None:
    policy = bounded(WINDOW)
    call = [PastCall("pay", {}, NOW - 60)]
    assert ask(policy, past(policy, call)).effect is Effect.DENY
    assert ask(policy, past(policy, call, now=NOW + 1)).effect is Effect.REQUIRE_APPROVAL
    assert (policy.over_client, policy.client_window) == (True, 60)
    assert not bounded(ONE).over_client


def test_a_client_rule_without_the_clients_history_denies() -> None:
    policy = bounded(WINDOW)
    decision = ask(policy, Ledger(Folds(policy), None, NOW, 0))
    assert (decision.effect, decision.reason) == (Effect.DENY, "policy_error")


def test_folds_of_another_policy_deny() -> None:
    policy, other = bounded(ONE), bounded(SUM)
    assert ask(policy, Ledger(Folds(other), None, NOW, 0)).reason == "policy_error"


def test_a_rule_younger_than_what_it_counts_asks_a_person() -> None:
    policy = bounded(ONE, WINDOW)
    run_rule, client_rule = policy.history_ids
    ledger = past(policy, [], opened=NOW - 10, since={run_rule: NOW - 9})
    decision = ask(policy, ledger, "mail")
    assert (decision.effect, decision.reason) == (Effect.REQUIRE_APPROVAL, "policy_approval")
    reads = bounded("{match: {tool: read}, max: 9, decision: deny}")
    (rule,) = reads.history_ids
    young = ask(reads, past(reads, [], opened=NOW - 10, since={rule: NOW - 9}), "read")
    assert (young.effect, young.reason, young.rule) == (Effect.REQUIRE_APPROVAL, "history_recent", "history[0]")
    assert ask(reads, past(reads, [], opened=NOW - 10, since={rule: NOW - 10}), "read").effect is Effect.ALLOW
    clients = bounded("{match: {tool: read}, max: 9, over: client, window: 60, decision: deny}")
    (rule,) = clients.history_ids
    assert ask(clients, past(clients, [], since={rule: NOW - 59}), "read").reason == "history_recent"
    assert ask(clients, past(clients, [], since={rule: NOW - 60}), "read").effect is Effect.ALLOW
    assert client_rule != run_rule


def test_a_young_rule_still_denies_what_it_knows_is_too_much() -> None:
    policy = bounded(ONE)
    (rule,) = policy.history_ids
    ledger = past(policy, [PastCall("mail", {}, NOW - 1)], opened=NOW - 10, since={rule: NOW - 9})
    assert ask(policy, ledger).reason == "history_limit"


def test_ids_of_rules_stay_when_others_change_and_when_words_change() -> None:
    ids = bounded(ONE).history_ids
    assert ids.keys() <= bounded(SUM, ONE.replace("second", "another")).history_ids.keys()
    assert not ids.keys() & bounded(ONE.replace("max: 1", "max: 2")).history_ids.keys()


def test_a_rule_over_an_argument_of_every_irreversible_tool_is_new_when_other_tools_become_irreversible() -> None:
    rules = (ONE, SUM, "{match: irreversible, distinct: to, max: 5, decision: deny}")
    before = list(bounded(*rules).history_ids)
    after = list(
        bounded(*rules, head=TOOLS.replace("read: {effect: read}", "read: {effect: irreversible}")).history_ids
    )
    assert before[:2] == after[:2]
    assert before[2] != after[2]


def test_the_arguments_that_history_needs_are_named() -> None:
    policy = bounded(SUM, "{match: irreversible, distinct: to, max: 5, decision: deny}")
    assert policy.history_args("pay") == {"amount", "to"}
    assert policy.history_args("mail") == {"to"}
    assert policy.history_args("read") == frozenset()


def test_a_copy_shares_nothing() -> None:
    policy = bounded(ONE)
    folds = Folds(policy)
    twin = folds.copy()
    twin.put("a", PastCall("mail", {}, 1))
    assert ask(policy, Ledger(folds, None, NOW, 0)).effect is Effect.REQUIRE_APPROVAL
    assert ask(policy, Ledger(twin, None, NOW, 0)).effect is Effect.DENY


def test_rows_far_outside_the_window_are_let_go() -> None:
    policy = bounded(WINDOW)
    folds = Folds(policy, "client")
    for second in range(0, 20_000, 10):
        folds.put(str(second), PastCall("pay", {}, second))
        ask(policy, Ledger(Folds(policy), folds, second, 0))
    assert len(folds._rows) < 1000
    assert ask(policy, Ledger(Folds(policy), folds, 19_990, 0)).effect is Effect.DENY
    folds.put("0", None)  # one that is gone already


def test_a_row_that_comes_long_after_its_time_counts_for_nothing() -> None:
    policy = bounded(WINDOW.replace("max: 1", "max: 0"))
    folds = Folds(policy, "client")
    for number in range(300):
        folds.put(str(number), PastCall("pay", {}, number))
    quiet = Call("mail", {})
    ask(policy, Ledger(Folds(policy), folds, 50_000, 0))
    for number in range(300, 600):
        folds.put(str(number), PastCall("pay", {}, number))
    rule = policy.history[0]
    assert folds.fold(rule).at(50_000).count == 0
    assert evaluate(policy, quiet, Ledger(Folds(policy), folds, 50_000, 0)).effect is Effect.REQUIRE_APPROVAL


RULES = (
    "{match: irreversible, max: 3, decision: deny}",
    "{match: {tool: pay}, sum: amount, max: 20, decision: deny}",
    "{match: {tool: pay}, sum: amount, max: 9.5, over: client, window: 20, decision: require_approval}",
    "{match: {tool: read}, distinct: id, max: 2, decision: deny}",
    "{match: {tool: read}, distinct: id, max: 1, over: client, window: 10, decision: require_approval}",
)
POLICY = bounded(*RULES)
CALLS = st.builds(
    PastCall,
    st.sampled_from(["pay", "mail", "read"]),
    st.fixed_dictionaries(
        {"amount": st.sampled_from([0, 1, 2.5, 7]), "id": st.sampled_from(["a", "b", 1, 1.0, ["a", 1], []])}
    ),
    st.integers(0, 40),
    st.none() | st.integers(0, 60),
)


def by_hand(rows: dict[str, PastCall], call: Call, now: int, skip: str | None) -> str:
    """The answer of the rules above, counted from the rows each time."""
    live = {
        name: row
        for name, row in rows.items()
        if name != skip and (row.hold_until is None or row.hold_until > now) and row.tool
    }

    def of(tool: str, age: int | None = None) -> list[PastCall]:
        return [row for row in live.values() if row.tool == tool and (age is None or row.at >= now - age)]

    def ids(values: list[Any]) -> int:
        flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
        return len({(type(one), one) for one in flat})

    answers = {"allow" if call.tool == "read" else "require_approval"}
    if call.tool in ("pay", "mail") and len(of("pay")) + len(of("mail")) + 1 > 3:
        answers.add("deny")
    if call.tool == "pay" and sum(row.args["amount"] for row in of("pay")) + call.args["amount"] > 20:  # type: ignore[operator, misc]
        answers.add("deny")
    if call.tool == "read":
        if ids([row.args["id"] for row in of("read")] + [call.args["id"]]) > 2:
            answers.add("deny")
        if ids([row.args["id"] for row in of("read", 10)] + [call.args["id"]]) > 1:
            answers.add("require_approval")
    return next(word for word in ("deny", "require_approval", "allow") if word in answers)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), CALLS | st.none(), st.integers(0, 60)), max_size=25), CALLS)
def test_folds_say_what_counting_by_hand_says(steps: list[tuple[str, PastCall | None, int]], probe: PastCall) -> None:
    run, client, rows = Folds(POLICY), Folds(POLICY, "client"), dict[str, PastCall]()
    call = Call(probe.tool, {"id": probe.args["id"]} if probe.tool == "read" else {"amount": probe.args["amount"]})
    for name, row, now in steps:
        for folds in (run, client):
            folds.put(name, row)
        rows.pop(name, None)
        if row is not None:
            rows[name] = row
        for skip in (None, "a"):
            decision = evaluate(POLICY, call, Ledger(run, client, now, 0, skip=skip))
            assert decision.effect == by_hand(rows, call, now, skip), decision
        again = evaluate(POLICY, call, Ledger(run.copy(), client.copy(), now, 0, skip="a"))
        assert again == decision
