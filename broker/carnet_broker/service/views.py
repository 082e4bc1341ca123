"""What the use cases answer, as frozen values; the transport renders them. Times: Unix seconds of the store's clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from carnet_broker.core.rows import Envelope
from carnet_broker.store.base import Feed

__all__ = [
    "ApprovalBrief",
    "ApprovalView",
    "AuditCheck",
    "CallStatus",
    "CallView",
    "DelegationView",
    "Fallen",
    "FeedView",
    "GuardList",
    "GuardView",
    "HostView",
    "Issued",
    "KeyLine",
    "KeysView",
    "Listing",
    "PolicyRef",
    "PolicyView",
    "Session",
    "TreeView",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A token and what the answer says about it. run and run_expires_at: a root token; scope: a guard token."""

    access_token: str = field(repr=False)
    expires_in: int
    audience: str
    run: str | None = None
    run_expires_at: int | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalBrief:
    """What an agent is told about its approval."""

    id: str
    state: str
    deadline: int
    answered_at: int | None
    answered_by: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationView:
    """state: pending, active or ended; reason: why it ended. start and expires_at: None while pending."""

    id: str
    run: str
    parent: str | None
    agent: str
    client: str
    state: str
    reason: str | None
    approval: ApprovalBrief | None
    envelope: Envelope
    created_at: int
    start: int | None
    expires_at: int | None
    hosts: tuple[str, ...]
    receives: Any  # the JSON schema of what the target returns, or None
    calls: int
    tokens: Mapping[str, Issued] = field(default_factory=dict)  # by host; only when the spawn named hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeView:
    node: DelegationView
    children: tuple[DelegationView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """A question with everything that the person must see. kind: "delegation" or "call". unasked_tools: what a yes to
    this delegation lets run without any further question."""

    id: str
    delegation: str
    run: str
    subject: str
    kind: str
    state: str
    deadline: int
    seconds_left: int
    created_at: int
    answered_at: int | None
    answered_by: str | None
    note: str
    reason: str
    agent: str | None
    target: str | None
    tool: str | None
    args: Mapping[str, Any] | None  # emptied once answered
    task: Mapping[str, Any] | None
    payload: Any
    envelope: Mapping[str, Any] | None
    unasked_tools: tuple[str, ...]
    rule: str | None
    chain: tuple[tuple[str, str, str], ...]
    approvers: tuple[str, ...]
    trace_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRef:
    id: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """decision: allow, deny or require_approval. state None: a preview. repeat: the key was answered before."""

    call_id: str | None
    decision: str
    state: str | None
    reason: str
    detail: str
    rule: str | None
    policy: PolicyRef
    feed_seq: int
    approval_id: str | None = None
    deadline: int | None = None
    on_denial: str | None = None
    repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStatus:
    """live: the call's delegation is alive and the policy it was decided under is in force."""

    call_id: str
    state: str
    decision: str
    reason: str
    detail: str
    approval: ApprovalBrief | None
    live: bool
    policy_digest: str
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallen:
    """What a revocation ends. seq 0: a dry run. guards_*: how many guard processes there are and applied `seq`."""

    mark: str
    until: int
    seq: int
    falls: tuple[str, ...]
    count: int
    guards_total: int
    guards_applied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedView:
    feed: Feed
    system: Feed


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    name: str
    tenant: str
    issuer: str
    audience: str
    tools: tuple[str, ...]
    effects: Mapping[str, Mapping[str, Any]]
    bind_from_level: int
    staleness: Mapping[str, int]
    audit_key: bytes = field(repr=False)
    clear_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyView:
    digest: str
    documents: tuple[tuple[str, str], ...]  # (name, text)
    since: Mapping[str, int]
    host: HostView
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardView:
    """lag: feed entries that this process has not said it applied; lost: silent for 10 s, so it refuses everything."""

    guard: str
    seq: int
    lag: int
    at: int
    lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardList:
    guards: tuple[GuardView, ...]
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLine:
    """state: prepared, active, retiring. since: Unix seconds at which the key got it."""

    kid: str
    state: str
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysView:
    active: str  # kid
    keys: tuple[KeyLine, ...]
    jwks: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    access_token: str = field(repr=False)
    expires_in: int
    operator: str
    role: str
    tenant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    rows: tuple[T, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCheck:
    """records: how many there are; sealed: up to which seq a signed checkpoint covers them; problem: the first one."""

    ok: bool
    records: int
    sealed: int
    unsealed: int
    problem: str | None = None
