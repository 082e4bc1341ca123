"""The store protocol: one write of record, expressed as data, and the reads that the use cases need.

A store raises only `Unavailable` (opening one also `carnet.errors.ConfigError`); a failed commit has changed nothing.
It gives every record its `seq` and every revocation its feed `seq`, both contiguous per tenant, in the same act. Times
come from the store's own clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from carnet.audit import Record
from carnet_broker.core.rows import (
    Approval,
    Call,
    Checkpoint,
    Delegation,
    GuardSeen,
    PolicyInForce,
    Revocation,
    Row,
)

__all__ = [
    "SEEN_ANEW",
    "SKEW_FORWARD",
    "Change",
    "Committed",
    "Conflict",
    "Feed",
    "Health",
    "Index",
    "Key",
    "LedgerDelta",
    "Move",
    "Page",
    "Store",
    "Unavailable",
    "Where",
    "Why",
]

SKEW_FORWARD = 2  # seconds that the store's clock may be ahead of Change.at
SEEN_ANEW = 3  # seconds; well below the 10 after which a silent guard is no longer counted
T = TypeVar("T", covariant=True)
R = TypeVar("R", Delegation, Approval, Call, PolicyInForce, Record, Revocation, GuardSeen, Checkpoint)


class Unavailable(Exception):
    """The store could not be asked or did not answer in time. Whether a commit took effect is then unknown to the
    caller: repeat it with the same idempotency key."""


class Why(StrEnum):
    """Why a change was not made, in the order in which the checks run."""

    KEY = "key"  # the idempotency key was used for another request
    SKEW = "skew"  # Change.at is not the store's time: read again and retry
    LATE = "late"  # the store's clock has reached `before`
    REVOKED = "revoked"  # a mark of `alive` is revoked for what was issued then
    STALE = "stale"  # a ledger scope has moved on
    STATE = "state"  # a moved row has another version


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """An idempotency key: caller, delegation and the caller's own key together; kept until `until`."""

    caller: str
    delegation: str
    key: str
    request: str  # hex SHA-256 of the request
    row: str  # id of the row that this change makes
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Compare the stored row's version with `expect`, then put `to` (whose version must be expect + 1) in its place."""

    expect: int
    to: Approval | Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One atomic act. All checks are made before the first write, in the order of `Why`. `records` is never empty."""

    tenant: str
    at: int  # the store's clock as last read by the service; rows hold it
    records: tuple[Record, ...]
    key: Key | None = None
    before: int | None = None
    alive: frozenset[tuple[str, int | None]] = frozenset()  # (mark, issued); None = at
    ledger: tuple[tuple[str, int], ...] = ()  # (scope, version): "run:<id>", "client:<id>", "pending", "policy"
    moves: tuple[Move, ...] = ()
    insert: tuple[Row, ...] = ()
    done: tuple[str, ...] = ()  # ids of delegations that `due` need not name again: their end is on record
    revoke: tuple[Revocation, ...] = ()  # until == at is written as at + 2 so that the same second falls too

    def __post_init__(self) -> None:
        if not self.records:
            raise ValueError("a change without an audit record is not an act")


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """seq: the tenant's last feed seq. first: id of the row that an earlier use of the key made; nothing done now."""

    seq: int
    now: int
    first: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Nothing was changed. row: the revocation (REVOKED) or the row as it is (STATE)."""

    why: Why
    now: int
    row: Row | Revocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """Rows in the index's order; `next` is the cursor to go on from, None at the end. A page may come short."""

    rows: tuple[T, ...]
    next: str | None = None


class Index(StrEnum):
    """The closed list of orders in which rows can be found. since / until mean created_at unless it says otherwise."""

    DELEGATIONS = "delegations"  # all of the tenant, newest first
    DELEGATIONS_BY_RUN = "delegations_by_run"  # oldest first
    DELEGATIONS_BY_AGENT = "delegations_by_agent"  # newest first
    DELEGATIONS_BY_CLIENT = "delegations_by_client"  # newest first
    DELEGATIONS_LIVE = "delegations_live"  # by live_until; since = live_until later than (exclusive)
    APPROVALS = "approvals"  # all, newest first
    APPROVALS_PENDING = "approvals_pending"  # by deadline; since / until on it
    APPROVALS_BY_DIGEST = "approvals_by_digest"  # value "<run> <digest>", newest first
    CALLS_BY_RUN = "calls_by_run"  # oldest first; since / until on `at`, as for all calls
    CALLS_BY_CLIENT = "calls_by_client"  # by `at`
    CALLS_WAITING = "calls_waiting"  # value = digest; oldest first
    RECORDS = "records"  # by seq, as all records; since / until on `at`
    RECORDS_BY_DELEGATION = "records_by_delegation"
    RECORDS_BY_RUN = "records_by_run"
    RECORDS_BY_TRACE = "records_by_trace"
    REVOCATIONS = "revocations"  # one row per mark, by feed seq; since / until on `at`
    GUARDS = "guards"  # by name; since / until on `at`
    CHECKPOINTS = "checkpoints"  # by seq; since / until on `at`
    POLICIES = "policies"  # newest first: the first one is in force; since / until on `since`


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    index: Index
    value: str = ""
    since: int | None = None  # inclusive
    until: int | None = None  # exclusive


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerDelta:
    """Per asked scope the version now and the rows that are newer than the version the caller has."""

    versions: Mapping[str, int]
    rows: Mapping[str, tuple[Row, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """entries after the asked seq, or (snapshot) all of the tenant. epoch changes when the store's life breaks."""

    epoch: str
    seq: int
    entries: tuple[Revocation, ...]
    snapshot: bool
    now: int
    policy_digest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    now: int
    epoch: str
    problems: tuple[str, ...]  # each one sentence with the fix; empty = well
    facts: Mapping[str, str]


class Store(Protocol):
    async def commit(self, change: Change) -> Committed | Conflict:
        """Make the change whole or not at all; answer only once it is durable."""
        ...

    async def once(self, tenant: str, key: str, until: int) -> bool:
        """True the first time this key is seen before `until` (Unix seconds); durable. Raises Unavailable when full."""
        ...

    async def get(self, kind: type[R], tenant: str, id: str) -> R | None:
        """One row. id: of a Revocation its mark, a GuardSeen its name, a PolicyInForce its digest (the newest row of
        it), a Record or Checkpoint its seq in decimal digits."""
        ...

    async def find(self, kind: type[R], tenant: str, where: Where, after: str | None, limit: int) -> Page[R]:
        """A page of at most `limit` rows. ValueError for a kind that the index does not hold, a value it does not take,
        or a cursor that the store did not give."""
        ...

    async def ledger(self, tenant: str, have: Mapping[str, int], since: int | None = None) -> LedgerDelta:
        """Scopes `run:<id>` (calls, child delegations, approvals), `client:<id>` (calls), `pending` (approvals that
        wait; all of them when anything moved), `policy` (PolicyInForce). Only rows newer than the version given; of a
        client only calls made at `since` or later, so that a first read is bounded however long the client has been
        at work. Calls that were refused at once hold nothing and are left out: nothing bounds their number."""
        ...

    async def revoked(self, tenant: str, marks: Sequence[str]) -> Mapping[str, Revocation]: ...

    async def changes(self, tenant: str, epoch: str, after: int, wait: float) -> Feed:
        """Feed entries after `after`; waits up to `wait` seconds for one. Another epoch, a gap or a step back answers
        the snapshot at once."""
        ...

    async def watch(self, tenant: str, id: str, version: int, wait: float) -> None:
        """Return when a commit touched this id (row version later than `version`, or its mark `dlg:<id>` revoked), or
        after `wait` seconds."""
        ...

    async def due(self, now: int, limit: int) -> Sequence[tuple[str, str, str]]:
        """(tenant, kind "approval" | "call" | "delegation", id) of rows whose time has come: approvals and calls by
        their `due`, runs (delegations without a parent) by `live_until` until a change names them in `done`."""
        ...

    async def seen(self, tenant: str, guard: str, seq: int) -> None:
        """Note which feed seq a guard process says it applied. No record: it decides nothing. A note that says the same
        as one of the last SEEN_ANEW seconds is not written again: polls would else cost a commit each."""
        ...

    async def unsealed(self, tenant: str, limit: int) -> tuple[str, int, Sequence[Record]]:
        """(hash of the last sealed record, its seq, the records after it in order)."""
        ...

    async def seal(self, tenant: str, after: int, links: Sequence[tuple[int, str]], checkpoint: Checkpoint) -> bool:
        """Store (seq, hash) links and the checkpoint; False when another sealer got past `after`."""
        ...

    async def now(self) -> int:
        """The store's clock in whole Unix seconds; never steps back below what it has seen."""
        ...

    async def new_epoch(self) -> str:
        """Begin a new life, after a restore or a loss: every follower must reload the snapshot. Answers its id."""
        ...

    async def health(self) -> Health: ...

    async def close(self) -> None: ...
