"""How a use case commits: plan under the store's time, commit, and plan anew when the state moved in between."""

import hashlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import anyio

from carnet.audit import Record, canonical
from carnet.reasons import Reason, Refusal
from carnet_broker.core.rows import Revocation
from carnet_broker.core.standing import reason_of
from carnet_broker.store.base import Change, Committed, Conflict, Key, Store, Unavailable, Why

__all__ = [
    "TRIES",
    "Plan",
    "Settled",
    "note",
    "refuse",
    "request_digest",
    "revoked_reason",
    "seen_before",
    "settle",
]

TRIES = 8
_AGAIN = frozenset({Why.SKEW, Why.STALE, Why.STATE})  # the plan was made on what is no longer so
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Plan(Generic[A]):
    """A change and what the caller is answered once it is made."""

    change: Change
    answer: A


@dataclass(frozen=True, slots=True)
class Settled(Generic[A]):
    answer: A
    done: Committed


async def settle(
    store: Store, planner: Callable[[int], Awaitable[Plan[A] | Refusal]]
) -> Settled[A] | Conflict | Refusal:
    """Commit what the planner makes of the time. A conflict is answered only where planning again can't help."""
    for attempt in range(TRIES):
        plan = await planner(await store.now())
        if isinstance(plan, Refusal):
            return plan
        outcome = await store.commit(plan.change)
        if isinstance(outcome, Committed):
            return Settled(plan.answer, outcome)
        if outcome.why not in _AGAIN:
            return outcome
        if attempt:
            await anyio.sleep(random.uniform(0, 0.002 * 2**attempt))  # noqa: S311 - spreads retries, hides nothing
    return Refusal(Reason.CONTENDED, "Too many writers at once moved the run on; nothing was changed.")


async def note(store: Store, record: Record) -> None:
    """Commit one audit line by itself. Raises Unavailable when it could not: what is not recorded is not done."""

    async def plan(now: int) -> Plan[None]:
        return Plan(Change(tenant=record.tenant, at=now, records=(replace(record, at=now),)), None)

    if not isinstance(await settle(store, plan), Settled):
        raise Unavailable("an audit record could not be written")


async def refuse(store: Store, record: Record, refusal: Refusal) -> Refusal:
    """Record a no and answer it."""
    detail = refusal.detail or record.detail
    await note(store, replace(record, decision="deny", reason=refusal.reason.value, detail=detail))
    return refusal


async def seen_before(store: Store, record: Record, key: Key) -> str | Refusal | None:
    """The id that an earlier use of this key made. Asks with a change whose deadline has passed: it is never made."""
    for _ in range(TRIES):
        now = await store.now()
        change = Change(tenant=record.tenant, at=now, records=(replace(record, at=now),), key=key, before=0)
        outcome = await store.commit(change)
        if isinstance(outcome, Committed):
            return outcome.first
        if outcome.why is Why.KEY:
            return Refusal(Reason.IDEMPOTENCY_MISMATCH)
        if outcome.why is not Why.SKEW:
            return None
    return Refusal(Reason.CONTENDED)


def request_digest(request: Any) -> str:
    """Hex SHA-256 of a request's JSON value: what an idempotency key is bound to."""
    return hashlib.sha256(canonical(request)).hexdigest()


def revoked_reason(conflict: Conflict) -> Refusal:
    """Why a commit met a revoked mark, in the words of the revocation."""
    row = conflict.row
    if not isinstance(row, Revocation):
        return Refusal(Reason.REVOKED)
    return Refusal(reason_of(row.reason), f"{row.mark} was revoked.")
