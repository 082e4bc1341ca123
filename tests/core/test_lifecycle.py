"""Both lifecycles: every pair of state and event, and any order of events ends in a safe state."""

from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from carnet.reasons import Reason, Refusal
from carnet_broker.core.lifecycle import (
    APPROVAL,
    CALL,
    UNKNOWN_AFTER,
    ApprovalEvent,
    CallEvent,
    advance,
    born,
    deadline,
)
from carnet_broker.core.rows import Approval, ApprovalState, Call, CallState
from tests.core.world import NOW, approval, call

ENDS = NOW + 300
LATE = NOW + 120  # the deadline
FINAL = set(ApprovalState) - {ApprovalState.PENDING, ApprovalState.APPROVED}
OVER = {CallState.REFUSED, CallState.DONE, CallState.FAILED, CallState.UNKNOWN}


def when(event: ApprovalEvent) -> int:
    return {ApprovalEvent.TIME_OUT: LATE, ApprovalEvent.LAPSE: ENDS}.get(event, NOW + 1)


@pytest.mark.parametrize(("state", "event"), [*product(ApprovalState, ApprovalEvent)])
def test_an_approval_moves_by_its_table_and_not_otherwise(state: ApprovalState, event: ApprovalEvent) -> None:
    row = approval("call_1", state=state, version=4)
    moved = advance(row, event, when(event), ends=ENDS, by="operator:ada")
    if (state, event) not in APPROVAL:
        assert isinstance(moved, Refusal)
        assert moved.detail
        return
    assert isinstance(moved, Approval)
    assert moved.state is APPROVAL[state, event]
    assert moved.version == 5
    assert moved.shown is None


@pytest.mark.parametrize(("state", "event"), [*product(CallState, CallEvent)])
def test_a_call_moves_by_its_table_and_not_otherwise(state: CallState, event: CallEvent) -> None:
    row = call(state=state, version=2)
    moved = advance(row, event, NOW + 1, ends=ENDS)
    if (state, event) not in CALL:
        assert isinstance(moved, Refusal)
        assert moved.reason is Reason.CALL_STATE
        return
    assert isinstance(moved, Call)
    assert moved.state is CALL[state, event]
    assert moved.version == 3
    assert (moved.finished_at is not None) is (moved.state in OVER)


def test_no_state_leads_out_of_a_final_one() -> None:
    assert not [state for state, _ in APPROVAL if state in FINAL]
    assert not [state for state, _ in CALL if state in OVER]
    assert set(APPROVAL.values()) | {ApprovalState.PENDING} == set(ApprovalState)
    assert set(CALL.values()) == set(CallState)


@pytest.mark.parametrize("event", [ApprovalEvent.SPEND, ApprovalEvent.LAPSE, ApprovalEvent.SUPERSEDE])
@pytest.mark.parametrize("state", [ApprovalState.PENDING, ApprovalState.APPROVED])
def test_a_delegations_approval_is_neither_spent_nor_lapsed_nor_superseded(
    event: ApprovalEvent, state: ApprovalState
) -> None:
    moved = advance(approval("dlg_child", state=state), event, ENDS, ends=ENDS)
    assert isinstance(moved, Refusal)
    assert moved.reason is Reason.APPROVAL_MISMATCH


@pytest.mark.parametrize("event", [event for event in ApprovalEvent if event is not ApprovalEvent.TIME_OUT])
@pytest.mark.parametrize("late", [0, 1, 1000])
def test_from_the_deadline_on_a_question_can_only_time_out(event: ApprovalEvent, late: int) -> None:
    moved = advance(approval("call_1"), event, LATE + late, ends=ENDS)
    assert isinstance(moved, Refusal)
    answered = event in (ApprovalEvent.APPROVE, ApprovalEvent.DENY)
    assert not answered or moved.reason is Reason.APPROVAL_EXPIRED
    timed_out = advance(approval("call_1"), ApprovalEvent.TIME_OUT, LATE + late, ends=ENDS)
    assert isinstance(timed_out, Approval)
    again = advance(timed_out, event, LATE + late, ends=ENDS)
    assert isinstance(again, Refusal)
    assert not answered or again.reason is Reason.APPROVAL_EXPIRED


def test_a_question_does_not_time_out_early() -> None:
    assert isinstance(advance(approval("call_1"), ApprovalEvent.TIME_OUT, LATE - 1, ends=ENDS), Refusal)


def test_an_answer_keeps_its_time_and_author_when_it_is_withdrawn() -> None:
    given_ = advance(approval("call_1"), ApprovalEvent.APPROVE, NOW + 9, ends=ENDS, by="operator:ada", note="ok")
    assert isinstance(given_, Approval)
    assert (given_.answered_at, given_.answered_by, given_.due) == (NOW + 9, "operator:ada", ENDS)
    back = advance(given_, ApprovalEvent.WITHDRAW, NOW + 20, ends=ENDS, by="operator:bo", note="wrong customer")
    assert isinstance(back, Approval)
    assert (back.answered_at, back.answered_by, back.note, back.due) == (
        NOW + 9,
        "operator:ada",
        "wrong customer",
        None,
    )


def test_an_approval_is_spent_once_and_not_after_its_delegations_end() -> None:
    row = approval("call_1", state=ApprovalState.APPROVED)
    spent = advance(row, ApprovalEvent.SPEND, ENDS - 1, ends=ENDS)
    assert isinstance(spent, Approval)
    twice = advance(spent, ApprovalEvent.SPEND, ENDS - 1, ends=ENDS)
    assert isinstance(twice, Refusal)
    assert twice.reason is Reason.APPROVAL_SPENT
    late = advance(row, ApprovalEvent.SPEND, ENDS, ends=ENDS)
    assert isinstance(late, Refusal)
    assert late.reason is Reason.APPROVAL_LAPSED
    assert isinstance(advance(row, ApprovalEvent.LAPSE, ENDS - 1, ends=ENDS), Refusal)
    begun = advance(spent, ApprovalEvent.WITHDRAW, ENDS - 1, ends=ENDS)
    assert isinstance(begun, Refusal)
    assert begun.reason is Reason.TOO_LATE


def test_a_slot_that_the_clock_freed_is_not_used_again() -> None:
    for event in (CallEvent.DISPATCH, CallEvent.HOLD):
        timed_out = advance(call(), event, LATE, ends=ENDS)
        assert isinstance(timed_out, Refusal)
        assert timed_out.reason is Reason.APPROVAL_TIMED_OUT
    held = advance(call(), CallEvent.HOLD, LATE - 1, ends=ENDS)
    assert isinstance(held, Call)
    assert (held.hold_until, held.due) == (ENDS, ENDS)
    lapsed = advance(held, CallEvent.DISPATCH, ENDS, ends=ENDS)
    assert isinstance(lapsed, Refusal)
    assert lapsed.reason is Reason.APPROVAL_LAPSED
    assert isinstance(advance(held, CallEvent.REFUSE, ENDS, ends=ENDS), Call)


def test_a_running_call_is_due_when_no_outcome_can_come_any_more() -> None:
    running = advance(call(), CallEvent.DISPATCH, NOW + 1, ends=ENDS)
    assert isinstance(running, Call)
    assert (running.hold_until, running.due) == (None, ENDS + UNKNOWN_AFTER)


def test_rows_begin_only_where_a_lifecycle_begins() -> None:
    assert born(approval("call_1"), ENDS).due == LATE
    assert born(approval("dlg_child", state=ApprovalState.APPROVED), ENDS).due is None
    assert born(call(), ENDS).due == LATE
    assert born(call(state=CallState.RUNNING), ENDS).due == ENDS + UNKNOWN_AFTER
    assert born(call(state=CallState.REFUSED), ENDS).due is None
    for state in FINAL:
        with pytest.raises(ValueError, match="is not born"):
            born(approval("call_1", state=state), ENDS)
    with pytest.raises(ValueError, match="is not born"):
        born(call(state=CallState.DONE), ENDS)
    with pytest.raises(ValueError, match="is not born"):
        born(call(version=2), ENDS)


def test_the_deadline_is_the_policys_and_leaves_a_margin_before_the_end() -> None:
    assert deadline(NOW, None, NOW + 1000) == NOW + 120
    assert deadline(NOW, 30, NOW + 1000) == NOW + 30
    assert deadline(NOW, 300, NOW + 100) == NOW + 95


def test_an_event_of_the_other_lifecycle_is_a_bug() -> None:
    with pytest.raises(TypeError):
        advance(approval("call_1"), CallEvent.DONE, NOW, ends=ENDS)  # type: ignore[call-overload]


def settle(row: Approval, now: int) -> Approval:
    """What the broker's clock does by itself in the end."""
    for event in (ApprovalEvent.TIME_OUT, ApprovalEvent.LAPSE):
        moved = advance(row, event, now, ends=ENDS)
        row = row if isinstance(moved, Refusal) else moved
    return row


@pytest.mark.parametrize("late", [LATE, ENDS, ENDS + 1])
def test_after_the_deadline_any_order_of_events_ends_timed_out(late: int) -> None:
    for order in permutations(ApprovalEvent):
        row = approval("call_1")
        for event in order:
            moved = advance(row, event, late, ends=ENDS)
            row = row if isinstance(moved, Refusal) else moved
        assert row.state is ApprovalState.TIMED_OUT


@given(st.permutations(list(ApprovalEvent)))
def test_any_order_of_events_in_time_ends_where_nothing_can_run(order: list[ApprovalEvent]) -> None:
    row = approval("call_1")
    for event in order:
        moved = advance(row, event, NOW + 1, ends=ENDS)
        row = row if isinstance(moved, Refusal) else moved
    assert settle(row, ENDS).state in FINAL


class Question(RuleBasedStateMachine):
    """A waiting call and its approval under any order of answers, repeats, withdrawals and clock steps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.approval = born(approval("call_1"), ENDS)
        self.call = born(call(), ENDS)
        self.answered_in_time = False
        self.dispatched = 0

    @rule(seconds=st.sampled_from([0, 1, 60, 119, 200]))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(event=st.sampled_from([ApprovalEvent.DENY, ApprovalEvent.WITHDRAW, ApprovalEvent.SUPERSEDE]))
    def stop(self, event: ApprovalEvent) -> None:
        self._move(event)

    @rule()
    def approve(self) -> None:
        moved = advance(self.approval, ApprovalEvent.APPROVE, self.now, ends=ENDS, by="operator:ada")
        held = advance(self.call, CallEvent.HOLD, self.now, ends=ENDS)
        if isinstance(moved, Approval) and isinstance(held, Call):
            self.answered_in_time = self.now < self.approval.deadline
            assert self.answered_in_time
            self.approval, self.call = moved, held

    @rule()
    def sweep(self) -> None:
        self.approval = settle(self.approval, self.now)

    @rule()
    def dispatch(self) -> None:
        spent = advance(self.approval, ApprovalEvent.SPEND, self.now, ends=ENDS)
        running = advance(self.call, CallEvent.DISPATCH, self.now, ends=ENDS)
        if isinstance(spent, Approval) and isinstance(running, Call):  # one commit moves both or none
            assert self.answered_in_time
            assert self.now < ENDS
            self.approval, self.call = spent, running
            self.dispatched += 1

    @precondition(lambda self: self.call.state is CallState.RUNNING)
    @rule(event=st.sampled_from([CallEvent.DONE, CallEvent.FAIL, CallEvent.LOSE]))
    def finish(self, event: CallEvent) -> None:
        moved = advance(self.call, event, self.now, ends=ENDS)
        assert isinstance(moved, Call)
        self.call = moved

    def _move(self, event: ApprovalEvent) -> None:
        moved = advance(self.approval, event, self.now, ends=ENDS, by="operator:bo")
        if isinstance(moved, Approval):
            self.approval = moved

    @invariant()
    def it_runs_at_most_once_and_never_without_a_yes(self) -> None:
        assert self.dispatched <= 1
        assert not self.dispatched or self.answered_in_time
        assert (self.approval.state is ApprovalState.SPENT) is (self.dispatched == 1)

    def teardown(self) -> None:
        late = max(self.now, ENDS)
        assert settle(self.approval, late).state in FINAL
        assert isinstance(advance(self.approval, ApprovalEvent.SPEND, late, ends=ENDS), Refusal)
        assert isinstance(advance(replace(self.call), CallEvent.DISPATCH, late, ends=ENDS), Refusal)


TestQuestion = Question.TestCase
