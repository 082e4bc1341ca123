"""The rows that make up the state, as frozen values.

A delegation is never updated: its status is computed from its approval, the marks and the clock. Approvals and calls
move only by the tables of `lifecycle`; `version` grows with each move and is what a store compares. `ledger_version` is
the run's ledger version that wrote the row; stores set it, so a reader can ask for only what is newer.
Times are whole seconds of the store's clock (Unix time).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = [
    "FOREVER",
    "Approval",
    "ApprovalState",
    "Call",
    "CallState",
    "Chain",
    "Checkpoint",
    "Delegation",
    "Envelope",
    "GuardSeen",
    "PolicyInForce",
    "Revocation",
    "Row",
]

FOREVER = 2**33
Chain = tuple[tuple[str, str, str], ...]  # (delegation id, agent, client) of each ancestor and, last, of itself


class ApprovalState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    WITHDRAWN = "withdrawn"
    SUPERSEDED = "superseded"
    SPENT = "spent"
    LAPSED = "lapsed"


class CallState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    REFUSED = "refused"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What a delegation may do. Derived, never asked for. `resource_limit` None: no bound (only a run's root)."""

    level: int
    tools: tuple[str, ...]  # sorted
    ceilings: Mapping[str, Any]  # {tool: {"args": {arg: constraints}, "max_calls": n}}
    credential_ttl_seconds: int
    approval_required: bool
    resource_limit: int | None
    tenant: str
    trace_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """One spawn, or (parent None) one run. live_until = the run's fixed end; the own end is computed by `lifecycle`."""

    id: str
    tenant: str
    run: str
    parent: str | None
    chain: Chain
    depth: int
    agent: str
    client: str
    sub: str
    envelope: Envelope
    approval: str | None
    digest: str  # of what was approved; "" for a run
    policy_id: str
    policy_version: int
    policy_digest: str
    payload_sha256: str | None
    jkt: str | None
    resource_count: int  # as the task stated it; adds up over the run
    facts: Mapping[str, Any]  # the stated facts and the catalog's, for audit
    created_at: int
    live_until: int
    trace_id: str
    version: int = 1
    ledger_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question put to people, for a delegation (subject dlg_) or for one exact call (subject call_)."""

    id: str
    tenant: str
    run: str
    delegation: str
    client: str  # of the run's opener: a client's questions are counted
    subject: str
    digest: str
    state: ApprovalState
    deadline: int
    created_at: int
    policy_digest: str
    approvers: tuple[str, ...] = ()
    answered_at: int | None = None
    answered_by: str | None = None
    note: str = ""
    reason: str = ""
    shown: Mapping[str, Any] | None = None  # everything the person must see; emptied once answered
    due: int | None = None  # when the sweeper must look at it
    trace_id: str = ""
    version: int = 1
    ledger_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call as the broker knows it; a run's ledger is its calls."""

    id: str
    tenant: str
    run: str
    delegation: str
    client: str  # of the run's opener: what `over: client` rules count by
    guard: str  # client id of the guard that opened it
    host: str
    tool: str
    effect: str
    args: Mapping[str, Any]  # only what a history rule or resource_arg names
    resources: tuple[str, ...]
    digest: str
    state: CallState
    decision: str
    reason: str
    detail: str
    rule: str | None
    policy_digest: str
    approval: str | None
    at: int
    hold_until: int | None = None  # a waiting call's slot is free from then on
    due: int | None = None
    finished_at: int | None = None
    trace_id: str = ""
    version: int = 1
    ledger_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """What was issued up to `until` under this mark is dead. Merging takes the maximum; first reason and at stay."""

    tenant: str
    mark: str
    until: int
    at: int
    reason: str
    actor: str
    seq: int = 0  # given by the store: contiguous per tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    """The policy of a tenant from `since` on; `history` = stable ids of its history rules with their own `since`."""

    tenant: str
    digest: str
    id: str
    version: int
    since: int
    history: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSeen:
    """A guard process and the feed seq that it says it applied."""

    tenant: str
    guard: str  # "<client id>/<random instance>"
    seq: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A signed head of a tenant's audit chain: all records up to `seq` hash to `head`."""

    tenant: str
    seq: int
    head: str
    at: int
    signature: str  # compact JWS over {tenant, seq, head, at}, typ carnet-checkpoint+jwt


Row = Delegation | Approval | Call | PolicyInForce
