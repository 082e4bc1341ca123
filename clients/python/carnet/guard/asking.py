"""The broker lane's conversation: ask, wait for a person, ask again; the tool runs only on an allow that is new."""

import secrets
import time
from collections.abc import Mapping
from threading import Event
from typing import Any

from carnet.errors import Unavailable, refused
from carnet.guard.case import Case
from carnet.guard.session import Session
from carnet.reasons import Reason, Refusal
from carnet.trace import child, start
from carnet.wire.answer import reason_of

__all__ = ["Asking", "Stop"]

Stop = Event  # set when the caller no longer waits: then nothing more is asked
_SLICE = 5.0  # seconds for which one request waits: so long it may go on after its caller gave up
_PAUSE = 0.25  # seconds before asking a broker again that does not let it wait (it stops, or too many wait already)
_ENDED = {
    "denied": Reason.APPROVAL_DENIED,
    "timed_out": Reason.APPROVAL_TIMED_OUT,
    "withdrawn": Reason.APPROVAL_WITHDRAWN,
    "superseded": Reason.APPROVAL_SUPERSEDED,
    "spent": Reason.APPROVAL_SPENT,
    "lapsed": Reason.APPROVAL_LAPSED,
}


class Asking:
    """Blocking; event loops run it in a thread."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def until_allowed(self, case: Case, max_wait: float, stop: Stop) -> Mapping[str, Any]:
        """The broker's allow. Raises Refused, ApprovalPending once `max_wait` seconds are over, or Unavailable."""
        until = time.monotonic() + max_wait
        while True:
            answer = self._attempt(case)
            if answer.get("decision") == "allow":
                return self._dispatchable(case, answer, stop)
            call, approval = answer.get("call_id"), answer.get("approval_id")
            if answer.get("decision") != "require_approval" or answer.get("state") != "waiting":
                refusal = Refusal(reason_of(answer.get("reason")), str(answer.get("detail") or ""))
                raise refused(refusal, call_id=call, approval_id=approval)
            self._await_person(case, str(call), approval, until, stop)

    def refusal(self, case: Case) -> None:
        """Show the broker a call that this guard refused, so that the broker's refusal of it is on record."""
        answer = self._attempt(case)
        if answer.get("decision") == "allow":
            self._session.outcome(case.token, str(answer["call_id"]), "failed", "refused by the guard")

    def _attempt(self, case: Case) -> dict[str, Any]:
        # The key is new for each attempt and made here: a key from the caller would let a child replay a reservation.
        span = secrets.token_hex(8)
        # A caller that sent no trace is in the trace of its delegation all the same.
        trace = case.holder.trace or start(case.claims.delegation.trace_id, span)
        key = secrets.token_hex(16)
        return self._session.decide(
            case.token, case.tool, case.frozen.json, key=key, traceparent=child(trace, span).header()
        )

    def _dispatchable(self, case: Case, answer: dict[str, Any], stop: Stop) -> dict[str, Any]:
        if not answer.get("repeat") and not stop.is_set():
            return answer
        # The first answer was lost on the way, or nobody waits any more: this allow is given back unused.
        self._session.outcome(case.token, str(answer["call_id"]), "failed", "not dispatched")
        raise Unavailable("the broker's first answer was lost, so the call was given up; nothing ran")

    def _await_person(self, case: Case, call: str, approval: str | None, until: float, stop: Stop) -> None:
        """Return once a person approved, unless the caller gave up: then the yes is for whoever asks next."""
        while True:
            begun = time.monotonic()
            left = min(until - begun, _SLICE)
            if left <= 0 or stop.is_set():
                raise refused(Refusal(Reason.APPROVAL_PENDING), call_id=call, approval_id=approval)
            status = self._session.state_of(case.token, call, left)
            asked = status.get("approval")
            state = asked.get("state") if isinstance(asked, Mapping) else None
            if state == "approved" and not stop.is_set():
                return
            if state in _ENDED or status.get("state") == "refused":
                raise refused(_no(status, state), call_id=call, approval_id=approval)
            if time.monotonic() - begun < left / 2:
                stop.wait(_PAUSE)
            if status.get("live") is False:  # nobody can let it run any more: asked again, the broker says why
                return


def _no(status: Mapping[str, Any], state: str | None) -> Refusal:
    """Why a call that waited for a person is refused."""
    told = reason_of(status.get("reason"))
    ended = _ENDED.get(str(state), told)
    reason = told if told not in (Reason.FORBIDDEN, Reason.APPROVAL_PENDING) else ended
    return Refusal(reason, str(status.get("detail") or "") if reason is told else "")
