"""The state of a delegation, computed: what came first gives the reason, and the order of arrival changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Reason
from carnet_broker.core.rows import FOREVER, Approval, ApprovalState, Revocation
from carnet_broker.core.standing import (
    alive,
    child_marks,
    ending_mark,
    host_marks,
    marks_of,
    tool_marks,
)
from carnet_broker.core.status import State, status
from tests.core.world import NOW, TENANT, approval, child, run


def revoked(mark: str, at: int, reason: str = "revoked", until: int = FOREVER, seq: int = 0) -> Revocation:
    return Revocation(tenant=TENANT, mark=mark, until=until, at=at, reason=reason, actor="operator:ada", seq=seq)


def approved(at: int = NOW + 50) -> Approval:
    return approval("dlg_child", state=ApprovalState.APPROVED, answered_at=at)


def test_a_run_lives_from_its_opening_to_its_fixed_end() -> None:
    now = status(run(), None, {}, NOW)
    assert (now.state, now.start, now.end) == (State.ACTIVE, NOW, NOW + 3600)
    over = status(run(), None, {}, NOW + 3600)
    assert (over.state, over.reason, over.at) == (State.ENDED, Reason.EXPIRED, NOW + 3600)


def test_a_delegation_begins_with_its_approval() -> None:
    before = status(child(), approval("dlg_child"), {}, NOW + 49)
    assert (before.state, before.start, before.end) == (State.PENDING, None, None)
    after = status(child(), approved(), {}, NOW + 51)
    assert (after.state, after.start, after.end) == (State.ACTIVE, NOW + 50, NOW + 350)


def test_a_delegation_ends_no_later_than_its_run() -> None:
    assert status(child(live_until=NOW + 100), approved(), {}, NOW + 60).end == NOW + 100
    assert status(child(live_until=NOW + 100), approved(), {}, NOW + 100).reason is Reason.EXPIRED


def test_a_question_past_its_deadline_has_timed_out_before_anybody_wrote_it() -> None:
    over = status(child(), approval("dlg_child"), {}, NOW + 120)
    assert (over.state, over.reason, over.at) == (State.ENDED, Reason.APPROVAL_TIMED_OUT, NOW + 120)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (ApprovalState.DENIED, Reason.APPROVAL_DENIED),
        (ApprovalState.TIMED_OUT, Reason.APPROVAL_TIMED_OUT),
        (ApprovalState.WITHDRAWN, Reason.APPROVAL_WITHDRAWN),
    ],
)
def test_each_end_of_an_approval_has_its_own_reason(state: ApprovalState, reason: Reason) -> None:
    over = status(child(), approval("dlg_child", state=state, answered_at=NOW + 3), {}, NOW + 5)
    assert (over.state, over.reason, over.at) == (State.ENDED, reason, NOW + 3)


@pytest.mark.parametrize("state", [state for state in ApprovalState if state.value not in ("pending", "approved")])
def test_only_an_approved_approval_makes_a_delegation_active(state: ApprovalState) -> None:
    assert status(child(), approval("dlg_child", state=state), {}, NOW + 5).state is State.ENDED


def test_a_delegation_without_its_approval_is_never_active() -> None:
    assert status(child(), None, {}, NOW + 5).state is State.ENDED
    assert status(child(), approval("dlg_other", state=ApprovalState.APPROVED), {}, NOW + 5).state is State.ENDED


def test_what_was_issued_after_a_kill_of_the_past_lives() -> None:
    mark = {"agent:worker": revoked("agent:worker", NOW + 20, until=NOW + 20)}
    assert status(child(), approved(NOW + 50), mark, NOW + 60).state is State.ACTIVE
    assert status(child(), approved(NOW + 20), mark, NOW + 60).state is State.ENDED
    assert status(child(), approval("dlg_child"), mark, NOW + 60).state is State.ENDED  # judged at its creation


def test_the_end_of_the_run_ends_what_is_below_it_with_its_reason() -> None:
    over = status(child(), approved(), {"dlg:dlg_run": revoked("dlg:dlg_run", NOW + 60, "run_closed")}, NOW + 61)
    assert over.reason is Reason.RUN_CLOSED


def test_where_several_things_end_it_the_first_gives_the_reason() -> None:
    marks = {
        "dlg:dlg_child": revoked("dlg:dlg_child", NOW + 70, "completed", seq=2),
        "dlg:dlg_run": revoked("dlg:dlg_run", NOW + 60, "run_closed", seq=1),
    }
    assert status(child(), approved(), marks, NOW + 80).reason is Reason.RUN_CLOSED
    assert status(child(), approved(), marks, NOW + 9000).reason is Reason.RUN_CLOSED
    late = {"dlg:dlg_run": revoked("dlg:dlg_run", NOW + 1000, "run_closed")}
    assert status(child(), approved(), late, NOW + 2000).reason is Reason.EXPIRED


def test_free_text_of_an_operator_reads_as_revoked() -> None:
    over = status(
        child(), approved(), {"dlg:dlg_child": revoked("dlg:dlg_child", NOW + 60, "wrong customer")}, NOW + 61
    )
    assert over.reason is Reason.REVOKED


def test_marks_that_end_no_delegation_are_passed_over() -> None:
    others = ("host:desk", "tool:dlg_child/refund", "dlg:dlg_sibling", "agent:other", "tenant:other", "client:x")
    marks = {mark: revoked(mark, NOW + 1) for mark in others}
    assert status(child(), approved(), marks, NOW + 60).state is State.ACTIVE


MARKS = sorted(marks_of(child()))
revocations = st.lists(
    st.builds(
        revoked,
        st.sampled_from(MARKS),
        st.integers(NOW, NOW + 400),
        st.sampled_from(["revoked", "run_closed", "completed", "approval_denied"]),
        st.sampled_from([NOW - 1, NOW + 20, NOW + 50, NOW + 200, FOREVER]),
        st.integers(1, 9),
    ),
    unique_by=lambda row: row.mark,
    max_size=4,
)


@given(revocations, st.data(), st.integers(NOW, NOW + 500))
def test_the_order_of_arrival_of_marks_changes_nothing(rows: list[Revocation], data: st.DataObject, now: int) -> None:
    shuffled = data.draw(st.permutations(rows))
    one = status(child(), approved(), {row.mark: row for row in rows}, now)
    assert one == status(child(), approved(), {row.mark: row for row in shuffled}, now)
    killed = any(row.until >= NOW + 50 for row in rows)
    assert (one.state is State.ACTIVE) is (not killed and now < NOW + 350)


@given(revocations, revocations, st.integers(NOW, NOW + 500))
def test_more_marks_never_bring_a_delegation_back(one: list[Revocation], more: list[Revocation], now: int) -> None:
    few = {row.mark: row for row in one}
    many = {**{row.mark: row for row in more}, **few}
    if status(child(), approved(), few, now).state is State.ENDED:
        assert status(child(), approved(), many, now).state is State.ENDED


def test_a_child_carries_the_marks_of_everything_above_it() -> None:
    assert marks_of(child()) == {
        "tenant:acme",
        f"policy:{'p' * 64}",
        "dlg:dlg_run",
        "dlg:dlg_child",
        "agent:support",
        "agent:worker",
        "client:support-app",
    }
    assert marks_of(run()) <= marks_of(child()) | {"agent:support"}
    assert host_marks(["desk", "pay"]) == {"host:desk", "host:pay"}
    assert tool_marks(child(), "refund") == {"tool:dlg_run/refund", "tool:dlg_child/refund"}
    assert "dlg:dlg_run" not in child_marks(child())
    assert alive(["dlg:a"], 7) == {("dlg:a", 7)}
    assert ending_mark(approval("call_1")) == "dlg:dlg_child"
    assert ending_mark(child()) == "dlg:dlg_child"
