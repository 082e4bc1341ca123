"""A run's ledger, kept up to date row by row, answers what a walk over all rows answers, and at the same cost."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Reason, Refusal
from carnet_broker.core.ledgers import MAX_RUN_CALLS, ClientLedger, RunLedger, slot
from carnet_broker.core.lifecycle import ApprovalEvent, CallEvent, advance
from carnet_broker.core.rows import Approval, ApprovalState, Call, CallState, Delegation, Row
from carnet_policy import Call as Asked
from carnet_policy import Decision, evaluate
from tests.core.world import NOW, approval, call, child, policy

RULES = policy(
    """
tools:
  refund:
    - {decision: allow, args: {amount: {type: number}}, extra_args: true}
  search_tickets:
    - {decision: allow, args: {query: {type: string}}, extra_args: true}
history:
  - {match: irreversible, max: 3, decision: deny}
  - {match: {tool: refund}, sum: amount, max: 20, decision: require_approval}
  - {match: {tool: search_tickets}, distinct: query, max: 2, decision: deny}
  - {match: {tool: refund}, sum: amount, max: 30, over: client, window: 200, decision: deny}
"""
)
OTHER = policy("history:\n  - {match: {tool: refund}, max: 1, decision: deny}\n")
ENDS = NOW + 300
CHILDREN = ("dlg_a", "dlg_b")
IDS = ("cust_1", "cust_2", "cust_3")
EFFECTS = {"refund": "irreversible", "search_tickets": "read", "mystery": "unknown"}


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Every version of the rows of a run, each version moved from the one before by the tables, in order of commits."""
    rows: list[Row] = []
    for name in CHILDREN:
        first = approval(name, id=f"apr_{name}", digest=draw(st.sampled_from(["d1", "d2"])), deadline=NOW + 60)
        rows.append(child(name, approval=first.id, resource_count=draw(st.integers(0, 9)), digest=first.digest))
        rows.extend(_moved(draw, first))
    for number in range(draw(st.integers(0, 8))):
        rows.extend(_call(draw, f"call_{number}"))
    return rows


def _call(draw: st.DrawFn, id: str) -> list[Row]:
    tool = draw(st.sampled_from(sorted(EFFECTS)))
    state = draw(st.sampled_from([CallState.WAITING, CallState.RUNNING, CallState.REFUSED]))
    first = call(
        id,
        delegation=draw(st.sampled_from(CHILDREN)),
        tool=tool,
        effect=EFFECTS[tool],
        args={"amount": draw(st.integers(0, 9)), "query": draw(st.sampled_from("pqr"))},
        resources=tuple(draw(st.lists(st.sampled_from(IDS), unique=True, max_size=2))),
        digest=draw(st.sampled_from(["x", "y", "z"])),
        state=state,
        at=NOW + draw(st.integers(0, 20)),
        hold_until=NOW + draw(st.sampled_from([30, 60, 120])) if state is CallState.WAITING else None,
    )
    rows: list[Row] = [first]
    if state is CallState.WAITING:
        asked = approval(id, id=f"apr_{id}", delegation=first.delegation, deadline=first.hold_until or 0)
        rows.extend(_moved(draw, asked))
    row = first
    for event in draw(st.lists(st.sampled_from(CallEvent), max_size=3)):
        why = draw(st.sampled_from([None, "approval_denied"])) if event is CallEvent.REFUSE else None
        moved = advance(row, event, NOW + 1, ends=ENDS, reason=why)
        if isinstance(moved, Call):
            row = moved
            rows.append(row)
    return rows


def _moved(draw: st.DrawFn, row: Approval) -> list[Row]:
    rows: list[Row] = [row]
    for event in draw(st.lists(st.sampled_from(ApprovalEvent), max_size=2)):
        moved = advance(row, event, row.deadline if event is ApprovalEvent.TIME_OUT else NOW + 1, ends=ENDS)
        if isinstance(moved, Approval):
            row = moved
            rows.append(row)
    return rows


class Walk:
    """The oracle: the last version of every row, walked through anew for each question."""

    def __init__(self, rows: Sequence[Row], now: int) -> None:
        last: dict[str, Any] = {}
        for row in rows:
            if not isinstance(row, Delegation | Approval | Call):
                continue
            if row.id not in last or last[row.id].version < row.version:
                last[row.id] = row
        self.now = now
        self.calls = [row for row in last.values() if isinstance(row, Call)]
        self.approvals = {row.id: row for row in last.values() if isinstance(row, Approval)}
        self.children = [row for row in last.values() if isinstance(row, Delegation)]

    def holding(self, skip: str | None = None) -> list[Call]:
        return [
            row
            for row in self.calls
            if not (row.id == skip and row.state is CallState.WAITING)  # only a waiting call can be asked again
            and row.state is not CallState.REFUSED
            and not (row.state is CallState.FAILED and row.effect in ("read", "write"))
            and not (row.state is CallState.WAITING and row.hold_until is not None and row.hold_until <= self.now)
        ]

    def under(self, delegation: str, rows: list[Call]) -> list[Call]:
        return [row for row in rows if delegation in (row.run, row.delegation)]

    def open(self) -> list[Approval]:
        return [
            row for row in self.approvals.values() if row.state is ApprovalState.PENDING and row.deadline > self.now
        ]

    def counted(self) -> int:
        granted = {ApprovalState.APPROVED, ApprovalState.WITHDRAWN}
        asked = {row.id for row in self.open()}
        return sum(
            row.resource_count
            for row in self.children
            if self.approvals[row.approval or ""].state in granted or row.approval in asked
        )


def answers(ledger: RunLedger, now: int, skip: str | None) -> dict[str, Any]:
    return {
        "count": ledger.count,
        "calls_of": [ledger.calls_of(name) for name in CHILDREN],
        "used": [ledger.used(name, tool, now, skip) for name in ("dlg_run", *CHILDREN) for tool in sorted(EFFECTS)],
        "resources": [
            isinstance(ledger.resource_bound(name, limit, ids, now, skip), Refusal)
            for name in ("dlg_run", *CHILDREN)
            for limit in range(4)
            for ids in ((), IDS[:1], IDS[1:], IDS)
        ],
        "counted": ledger.counted(now),
        "questions": ledger.questions(now),
        "questions_of": [ledger.questions_of(name, now) for name in CHILDREN],
        "waiting": [found.id if (found := ledger.waiting(digest, now)) else None for digest in "xyz"],
        "asked": [row.id if (row := ledger.asked(digest, now)) else None for digest in ("d1", "d2")],
        "overdue": [row.id for row in ledger.overdue(now)],
        "tools denied": [ledger.tool_denied(tool) for tool in sorted(EFFECTS)],
        "spawns denied": [ledger.spawn_denied(digest) for digest in ("d1", "d2")],
    }


def walked(walk: Walk, skip: str | None) -> dict[str, Any]:
    holding, asked = walk.holding(skip), walk.open()
    names = ("dlg_run", *CHILDREN)
    made = [row for row in walk.calls if row.state is not CallState.REFUSED]
    waiting = [row for row in walk.holding() if row.state is CallState.WAITING]
    by_id = {row.id: row for row in walk.calls}
    denied = [row for row in walk.approvals.values() if row.state is ApprovalState.DENIED]
    tools = {row.tool for row in walk.calls if row.state is CallState.REFUSED and row.reason == "approval_denied"}
    tools |= {by_id[row.subject].tool for row in denied if row.subject in by_id}
    spawns = sorted((row for row in asked if row.subject == row.delegation), key=lambda row: (row.created_at, row.id))
    late = [row for row in walk.approvals.values() if row.state is ApprovalState.PENDING and row not in asked]
    touched = {name: {item for row in walk.under(name, holding) for item in row.resources} for name in names}
    return {
        "count": len(made),
        "calls_of": [len(walk.under(name, made)) for name in CHILDREN],
        "used": [
            sum(row.tool == tool for row in walk.under(name, holding)) for name in names for tool in sorted(EFFECTS)
        ],
        "resources": [
            len(touched[name] | set(ids)) > limit
            for name in names
            for limit in range(4)
            for ids in ((), IDS[:1], IDS[1:], IDS)
        ],
        "counted": walk.counted(),
        "questions": len(asked),
        "questions_of": [sum(row.delegation == name != row.subject for row in asked) for name in CHILDREN],
        "waiting": [
            max(((row.at, row.id) for row in waiting if row.digest == digest), default=(0, None))[1] for digest in "xyz"
        ],
        "asked": [next((row.delegation for row in spawns if row.digest == digest), None) for digest in ("d1", "d2")],
        "overdue": [row.id for row in sorted(late, key=lambda row: (row.deadline, row.id))],
        "tools denied": [tool in tools for tool in sorted(EFFECTS)],
        "spawns denied": [
            any(row.digest == digest and row.subject == row.delegation for row in denied) for digest in ("d1", "d2")
        ],
    }


def decisions(ledger: RunLedger, client: ClientLedger, now: int, skip: str | None) -> list[Decision]:
    past = ledger.history(now, opened=NOW, since=dict.fromkeys(RULES.history_ids, NOW), client=client, skip=skip)
    calls = [
        Asked(tool, {"amount": amount, "query": query}, pinned=True)
        for tool in ("refund", "search_tickets")
        for amount in (1, 8)
        for query in "ps"
    ]
    return [evaluate(RULES, asked, past) for asked in calls]


def batches(data: st.DataObject, rows: list[Row]) -> list[list[Row]]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    pieces = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return [data.draw(st.permutations(piece + data.draw(st.sampled_from([[], rows[:2]])))) for piece in pieces]


@given(st.data(), histories(), st.sampled_from([None, "call_0", "call_1"]))
def test_rows_taken_in_as_they_come_answer_as_a_walk_over_all_of_them(
    data: st.DataObject, rows: list[Row], skip: str | None
) -> None:
    ledger, client = RunLedger("dlg_run", RULES), ClientLedger("support-app", RULES)
    given_rows: list[Row] = []
    now = NOW
    for number, batch in enumerate(batches(data, rows), 1):
        ledger.apply(batch, number)
        client.apply([row for row in batch if isinstance(row, Call)], number)
        given_rows += batch
        now += data.draw(st.sampled_from([0, 30, 60, 150]))
        if all(any(isinstance(row, Approval) and row.id == f"apr_{name}" for row in given_rows) for name in CHILDREN):
            assert answers(ledger, now, skip) == walked(Walk(given_rows, now), skip)
    assert ledger.version == client.version == number
    fresh, fresh_client = RunLedger("dlg_run", RULES), ClientLedger("support-app", RULES)
    fresh.apply(rows, 1)
    fresh_client.apply(rows, 1)
    assert decisions(ledger, client, now, skip) == decisions(fresh, fresh_client, now, skip)


@given(histories())
def test_another_policy_sees_the_same_calls(rows: list[Row]) -> None:
    ledger, fresh = RunLedger("dlg_run", RULES), RunLedger("dlg_run", OTHER)
    ledger.apply(rows, 1)
    ledger.use(OTHER)
    fresh.apply(rows, 1)
    for now in (NOW, NOW + 60, NOW + 400):
        asked = Asked("refund", {"amount": 1}, pinned=True)
        since = dict.fromkeys(OTHER.history_ids, NOW)
        one, other = (each.history(now, opened=NOW, since=since) for each in (ledger, fresh))
        assert evaluate(OTHER, asked, one) == evaluate(OTHER, asked, other)


def test_a_denial_holds_for_its_tool_in_whatever_order_the_rows_come() -> None:
    denied = approval("call_1", state=ApprovalState.DENIED, version=2)
    orders: list[list[Row]] = [[call(), denied], [denied, call()]]
    for rows in orders:
        ledger = RunLedger("dlg_run", RULES)
        ledger.apply(rows[:1], 1)
        ledger.apply(rows[1:], 2)
        assert ledger.tool_denied("refund")
        assert not ledger.tool_denied("search_tickets")


def test_a_bound_on_calls_is_shared_by_all_below_it() -> None:
    ledger = RunLedger("dlg_run", RULES)
    done = [call(f"call_{n}", delegation=CHILDREN[n % 2], state=CallState.DONE) for n in range(2)]
    ledger.apply([child("dlg_a"), child("dlg_b"), *done], 1)
    two_for_all = {"dlg_run": {"refund": {"max_calls": 2}}, "dlg_a": {"refund": {"max_calls": 2}}}
    refused = ledger.call_bound(two_for_all, "refund", NOW)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.MAX_CALLS
    assert ledger.call_bound({"dlg_a": {"refund": {"max_calls": 2}}}, "refund", NOW) is None
    assert ledger.call_bound({"dlg_a": {"refund": {"max_calls": 0}}}, "refund", NOW) is not None
    assert ledger.call_bound({"dlg_a": {"refund": {"args": {}}}}, "refund", NOW) is None


def test_a_waiting_call_asked_again_does_not_count_itself() -> None:
    ledger = RunLedger("dlg_run", RULES)
    ledger.apply([child(), call(resources=("cust_1",))], 1)
    one = {"dlg_child": {"refund": {"max_calls": 1}}}
    assert isinstance(ledger.call_bound(one, "refund", NOW), Refusal)
    assert ledger.call_bound(one, "refund", NOW, skip="call_1") is None
    assert isinstance(ledger.resource_bound("dlg_child", 1, ("cust_2",), NOW), Refusal)
    assert ledger.resource_bound("dlg_child", 1, ("cust_2",), NOW, skip="call_1") is None
    assert ledger.resource_bound("dlg_child", 1, ("cust_2",), NOW + 120) is None


def test_only_a_failure_that_changed_nothing_gives_its_slot_back() -> None:
    failed = call(state=CallState.FAILED)
    assert slot(replace(failed, effect="read")) is None
    assert slot(replace(failed, effect="write")) is None
    assert slot(replace(failed, effect="irreversible")) is not None
    assert slot(replace(failed, effect="unknown")) is not None
    assert slot(replace(failed, effect="read", state=CallState.UNKNOWN)) is not None
    assert slot(replace(failed, effect="irreversible", state=CallState.REFUSED)) is None


def test_a_run_is_full_at_its_cap() -> None:
    ledger = RunLedger("dlg_run", RULES)
    ledger.apply([call(f"call_{n}", state=CallState.DONE) for n in range(MAX_RUN_CALLS - 1)], 1)
    ledger.apply([call("no", state=CallState.REFUSED)], 2)
    assert ledger.full(0) is None
    assert isinstance(ledger.full(1), Refusal)
    ledger.apply([call("last", state=CallState.DONE)], 3)
    refused = ledger.full(0)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.RUN_FULL


def test_a_question_costs_the_same_after_ten_thousand_calls() -> None:
    def cost(calls: int) -> float:
        ledger, client = RunLedger("dlg_run", RULES), ClientLedger("support-app", RULES)
        rows: list[Row] = [
            call(f"c{n}", tool="search_tickets", effect="read", args={"query": "p"}, state=CallState.DONE)
            for n in range(calls)
        ]
        ledger.apply(rows, 1)
        client.apply(rows, 1)
        return min(_timed(ledger, client) for _ in range(30))

    def _timed(ledger: RunLedger, client: ClientLedger) -> float:
        begun = perf_counter()
        answers(ledger, NOW, None)
        decisions(ledger, client, NOW, None)
        return perf_counter() - begun

    assert cost(10_000) < 4 * cost(100)


def test_calls_outside_every_window_are_forgotten() -> None:
    client = ClientLedger("support-app", RULES)
    client.apply([call(f"c{n}", state=CallState.DONE, args={"amount": 10}, at=NOW + n) for n in range(3)], 1)
    run = RunLedger("dlg_run", RULES)
    since = dict.fromkeys(RULES.history_ids, NOW - 500)
    asked = Asked("refund", {"amount": 1}, pinned=True)
    before = evaluate(RULES, asked, run.history(NOW + 5, opened=NOW, since=since, client=client))
    assert (before.effect, before.rule) == ("deny", "history[3]")
    client.forget(NOW + 2)
    assert evaluate(RULES, asked, run.history(NOW + 5, opened=NOW, since=since, client=client)).effect == "allow"


def test_approvals_and_overdue_questions_can_be_looked_up() -> None:
    ledger = RunLedger("dlg_run", RULES)
    ledger.apply([child(), call(), approval("call_1")], 4)
    assert ledger.approval("apr_call_1") == approval("call_1")
    assert ledger.approval("apr_call_2") is None
    assert Counter(row.id for row in ledger.overdue(NOW + 120, "dlg_child")) == {"apr_call_1": 1}
    assert ledger.overdue(NOW + 120, "dlg_other") == ()
