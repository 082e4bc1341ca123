"""The state of a delegation, computed from its approval, the marks and the clock. Nothing stores it, so nothing can
disagree with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from carnet.reasons import Reason
from carnet_broker.core.lifecycle import ENDINGS
from carnet_broker.core.rows import Approval, ApprovalState, Delegation, Revocation
from carnet_broker.core.standing import marks_of, reason_of

__all__ = ["State", "Status", "status"]


class State(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Status:
    """reason: why it ended (None while it has not). start, end: what tokens carry as `iat` and `exp`, None before an
    approval; both stay known after the end. at: when it ended (Unix seconds)."""

    state: State
    reason: Reason | None = None
    start: int | None = None
    end: int | None = None
    at: int | None = None


def status(
    delegation: Delegation, approval: Approval | None, revocations: Mapping[str, Revocation], now: int
) -> Status:
    """revocations: those known of `marks_of(delegation)`, by mark; others are ignored. Where several things end it, the
    one that came first gives the reason. A delegation that is no run and has no approval is never active."""
    start, end = _life(delegation, approval)
    ends: list[tuple[int, int, int, Reason]] = []  # at, rank among equals, feed seq, reason
    issued = delegation.created_at if start is None else start
    for mark in marks_of(delegation):
        revoked = revocations.get(mark)
        if revoked is not None and revoked.until >= issued:
            ends.append((revoked.at, 0, revoked.seq, reason_of(revoked.reason)))
    ends.extend(_by_clock_or_answer(delegation, approval, end, now))
    if ends:
        at, _, _, reason = min(ends)
        return Status(State.ENDED, reason, start, end, at)
    return Status(State.PENDING if start is None else State.ACTIVE, None, start, end)


def _life(delegation: Delegation, approval: Approval | None) -> tuple[int | None, int | None]:
    if delegation.parent is None:
        return delegation.created_at, delegation.live_until
    if approval is None or approval.state is not ApprovalState.APPROVED or approval.answered_at is None:
        return None, None
    start = approval.answered_at
    return start, min(delegation.live_until, start + delegation.envelope.credential_ttl_seconds)


def _by_clock_or_answer(
    delegation: Delegation, approval: Approval | None, end: int | None, now: int
) -> list[tuple[int, int, int, Reason]]:
    if delegation.parent is not None and (approval is None or approval.delegation != delegation.id):
        return [(delegation.created_at, 1, 0, Reason.INTERNAL)]
    found = []
    if approval is not None and approval.state in ENDINGS:
        answered = delegation.created_at if approval.answered_at is None else approval.answered_at
        found.append((answered, 1, 0, ENDINGS[approval.state]))
    if approval is not None and approval.state is ApprovalState.PENDING and now >= approval.deadline:
        found.append((approval.deadline, 1, 0, Reason.APPROVAL_TIMED_OUT))
    last = delegation.live_until if end is None else end
    if now >= last:
        found.append((last, 2, 0, Reason.EXPIRED))
    return found
