"""The two lifecycles, of approvals and of calls, as tables; `advance` is the only writer of a state.

A pair (state, event) that a table does not name is refused and changes nothing. The clock belongs to the table too:
past its deadline a pending approval can only time out, so a late answer and a late sweep end in the same state.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import overload

from carnet.reasons import Reason, Refusal
from carnet_broker.core.rows import Approval, ApprovalState, Call, CallState

__all__ = [
    "APPROVAL",
    "CALL",
    "DEFAULT_TIMEOUT",
    "ENDINGS",
    "MARGIN",
    "UNKNOWN_AFTER",
    "ApprovalEvent",
    "CallEvent",
    "advance",
    "born",
    "deadline",
]

DEFAULT_TIMEOUT = 120  # seconds a question waits where the policy says nothing
MARGIN = 5  # seconds that must be left of the delegation (or run) when the deadline comes
UNKNOWN_AFTER = 60  # seconds after the delegation's end at which a missing outcome becomes `unknown`


class ApprovalEvent(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    TIME_OUT = "time_out"
    WITHDRAW = "withdraw"
    SUPERSEDE = "supersede"
    SPEND = "spend"
    LAPSE = "lapse"


class CallEvent(StrEnum):
    HOLD = "hold"  # its approval was approved: the slot is held until the delegation's end
    DISPATCH = "dispatch"
    REFUSE = "refuse"
    DONE = "done"
    FAIL = "fail"
    LOSE = "lose"  # nobody reported an outcome


_A, _C = ApprovalState, CallState
APPROVAL: Mapping[tuple[ApprovalState, ApprovalEvent], ApprovalState] = MappingProxyType(
    {
        (_A.PENDING, ApprovalEvent.APPROVE): _A.APPROVED,
        (_A.PENDING, ApprovalEvent.DENY): _A.DENIED,
        (_A.PENDING, ApprovalEvent.TIME_OUT): _A.TIMED_OUT,
        (_A.PENDING, ApprovalEvent.WITHDRAW): _A.WITHDRAWN,
        (_A.PENDING, ApprovalEvent.SUPERSEDE): _A.SUPERSEDED,
        (_A.APPROVED, ApprovalEvent.SPEND): _A.SPENT,
        (_A.APPROVED, ApprovalEvent.WITHDRAW): _A.WITHDRAWN,
        (_A.APPROVED, ApprovalEvent.LAPSE): _A.LAPSED,
    }
)
CALL: Mapping[tuple[CallState, CallEvent], CallState] = MappingProxyType(
    {
        (_C.WAITING, CallEvent.HOLD): _C.WAITING,
        (_C.WAITING, CallEvent.DISPATCH): _C.RUNNING,
        (_C.WAITING, CallEvent.REFUSE): _C.REFUSED,
        (_C.RUNNING, CallEvent.DONE): _C.DONE,
        (_C.RUNNING, CallEvent.FAIL): _C.FAILED,
        (_C.RUNNING, CallEvent.LOSE): _C.UNKNOWN,
    }
)
_BORN_APPROVAL = frozenset({_A.PENDING, _A.APPROVED})
_BORN_CALL = frozenset({_C.WAITING, _C.RUNNING, _C.REFUSED})
_ONE_CALL_ONLY = frozenset({ApprovalEvent.SPEND, ApprovalEvent.LAPSE, ApprovalEvent.SUPERSEDE})
ENDINGS: Mapping[ApprovalState, Reason] = MappingProxyType(
    {
        _A.DENIED: Reason.APPROVAL_DENIED,
        _A.TIMED_OUT: Reason.APPROVAL_TIMED_OUT,
        _A.WITHDRAWN: Reason.APPROVAL_WITHDRAWN,
        _A.SUPERSEDED: Reason.APPROVAL_SUPERSEDED,
        _A.SPENT: Reason.APPROVAL_SPENT,
        _A.LAPSED: Reason.APPROVAL_LAPSED,
    }
)
_WHY = {_A.PENDING: Reason.APPROVAL_PENDING, _A.APPROVED: Reason.ALREADY_ANSWERED, **ENDINGS}


def deadline(now: int, timeout: int | None, ends: int) -> int:
    """Until when a question waits. ends: the end of its delegation, for a pending delegation that of its run."""
    return min(now + (DEFAULT_TIMEOUT if timeout is None else timeout), ends - MARGIN)


@overload
def born(row: Approval, ends: int) -> Approval: ...
@overload
def born(row: Call, ends: int) -> Call: ...
def born(row: Approval | Call, ends: int) -> Approval | Call:
    """A new row with its first `due`. ends: the end of the delegation. Raises ValueError for a state none begins in."""
    if isinstance(row, Approval):
        if row.state not in _BORN_APPROVAL or row.version != 1:
            raise ValueError(f"an approval is not born {row.state.value} in version {row.version}")
        return replace(row, due=_approval_due(row, row.state, ends))
    if row.state not in _BORN_CALL or row.version != 1:
        raise ValueError(f"a call is not born {row.state.value} in version {row.version}")
    return replace(row, due=_call_due(row.state, row.hold_until, ends))


@overload
def advance(
    row: Approval, event: ApprovalEvent, now: int, *, ends: int, by: str | None = ..., note: str = ...
) -> Approval | Refusal: ...
@overload
def advance(
    row: Call, event: CallEvent, now: int, *, ends: int, reason: str | None = ..., detail: str | None = ...
) -> Call | Refusal: ...
def advance(
    row: Approval | Call,
    event: ApprovalEvent | CallEvent,
    now: int,
    *,
    ends: int,
    by: str | None = None,
    note: str = "",
    reason: str | None = None,
    detail: str | None = None,
) -> Approval | Call | Refusal:
    """The row after the event, its version one higher, or why it stays as it is.

    ends: the end of the row's delegation (Unix seconds; for the approval that starts a delegation, the end it would
    have). by, note: who answered and what they wrote. reason, detail: replace those of the call, when given.
    """
    if isinstance(row, Approval) and isinstance(event, ApprovalEvent):
        return _advance_approval(row, event, now, ends, by, note)
    if isinstance(row, Call) and isinstance(event, CallEvent):
        return _advance_call(row, event, now, ends, reason, detail)
    raise TypeError(f"{event!r} is no event of a {type(row).__name__}")


def _advance_approval(
    row: Approval, event: ApprovalEvent, now: int, ends: int, by: str | None, note: str
) -> Approval | Refusal:
    if event in _ONE_CALL_ONLY and row.subject == row.delegation:
        return Refusal(Reason.APPROVAL_MISMATCH, "A delegation's approval covers it until its end and is not spent.")
    to = APPROVAL.get((row.state, event))
    if to is None:
        return _no_answer(row, event)
    problem = _against_the_clock(row, event, now, ends)
    if problem is not None:
        return problem
    first = row.state is ApprovalState.PENDING
    return replace(
        row,
        state=to,
        version=row.version + 1,
        # an answer once given keeps its time and author: the start of a delegation is its approval's `answered_at`
        answered_at=now if first else row.answered_at,
        answered_by=by if first else row.answered_by,
        note=note or row.note,
        reason=_WHY[to].value if to is not ApprovalState.APPROVED else Reason.APPROVED.value,
        shown=None,
        due=_approval_due(row, to, ends),
    )


def _no_answer(row: Approval, event: ApprovalEvent) -> Refusal:
    answering = event in (ApprovalEvent.APPROVE, ApprovalEvent.DENY)
    if answering and row.state is ApprovalState.TIMED_OUT:
        return Refusal(Reason.APPROVAL_EXPIRED, "The deadline had passed; the answer changes nothing.")
    if answering:
        return Refusal(Reason.ALREADY_ANSWERED, f"The approval is {row.state.value}; the answer changes nothing.")
    if event is ApprovalEvent.WITHDRAW and row.state is ApprovalState.SPENT:
        return Refusal(Reason.TOO_LATE, "The call had begun; revoke its delegation to stop what follows.")
    return Refusal(_WHY[row.state], f"The approval is {row.state.value}.")


def _against_the_clock(row: Approval, event: ApprovalEvent, now: int, ends: int) -> Refusal | None:
    late = now >= row.deadline
    if row.state is ApprovalState.PENDING:
        if event is ApprovalEvent.TIME_OUT:
            return None if late else Refusal(Reason.APPROVAL_PENDING, "Its deadline has not come yet.")
        # nobody answers past the deadline, whether or not the time-out was written already
        return Refusal(Reason.APPROVAL_EXPIRED, "The deadline has passed; the question timed out.") if late else None
    if event is ApprovalEvent.SPEND and now >= ends:
        return Refusal(Reason.APPROVAL_LAPSED, "The approval ended with its delegation.")
    if event is ApprovalEvent.LAPSE and now < ends:
        return Refusal(Reason.ALREADY_ANSWERED, "The delegation has not ended, so its approval stands.")
    return None


def _approval_due(row: Approval, state: ApprovalState, ends: int) -> int | None:
    if state is ApprovalState.PENDING:
        return row.deadline
    return ends if state is ApprovalState.APPROVED and row.subject != row.delegation else None


def _advance_call(
    row: Call, event: CallEvent, now: int, ends: int, reason: str | None, detail: str | None
) -> Call | Refusal:
    to = CALL.get((row.state, event))
    if to is None:
        return Refusal(Reason.CALL_STATE, f"The call is {row.state.value}; {event.value} does not apply.")
    if row.state is CallState.WAITING and event is not CallEvent.REFUSE and _freed(row, now):
        # its slot may be another call's by now
        lapsed = row.hold_until is not None and row.hold_until >= ends
        why = Reason.APPROVAL_LAPSED if lapsed else Reason.APPROVAL_TIMED_OUT
        return Refusal(why, "The time in which the call could begin is over.")
    hold = ends if event is CallEvent.HOLD else row.hold_until if to is CallState.WAITING else None
    return replace(
        row,
        state=to,
        version=row.version + 1,
        reason=row.reason if reason is None else reason,
        detail=row.detail if detail is None else detail,
        hold_until=hold,
        finished_at=None if to in (CallState.WAITING, CallState.RUNNING) else now,
        due=_call_due(to, hold, ends),
    )


def _freed(row: Call, now: int) -> bool:
    return row.hold_until is not None and now >= row.hold_until


def _call_due(state: CallState, hold_until: int | None, ends: int) -> int | None:
    if state is CallState.WAITING:
        return hold_until
    return ends + UNKNOWN_AFTER if state is CallState.RUNNING else None
