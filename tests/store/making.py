"""Rows, records and changes for the store's tests: small, whole, and each field that matters can be named."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from carnet.audit import Record
from carnet_broker.core.rows import (
    FOREVER,
    Approval,
    ApprovalState,
    Call,
    CallState,
    Delegation,
    Envelope,
    PolicyInForce,
    Revocation,
)
from carnet_broker.store.base import Change, Committed, Conflict, Key, Move, Store, Why

T0 = 1_800_000_000
TENANT = "acme"
RUN = "dlg_run"


class Clock:
    """Whole seconds that the test sets."""

    def __init__(self, now: int = T0) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def envelope(**more: Any) -> Envelope:
    fields: dict[str, Any] = {
        "level": 1,
        "tools": ("read", "refund"),
        "ceilings": {"refund": {"args": {"amount": {"max": 20.5}}, "max_calls": 1}},
        "credential_ttl_seconds": 600,
        "approval_required": False,
        "resource_limit": 3,
        "tenant": TENANT,
        "trace_id": "trace",
    }
    return Envelope(**fields | more)


def delegation(id: str = "dlg_child", **more: Any) -> Delegation:
    fields: dict[str, Any] = {
        "id": id,
        "tenant": TENANT,
        "run": RUN,
        "parent": RUN,
        "chain": ((RUN, "lead", "cli-lead"), (id, "clerk", "cli-clerk")),
        "depth": 1,
        "agent": "clerk",
        "client": "cli-lead",
        "sub": "agent:lead",
        "envelope": envelope(),
        "approval": "apr_1",
        "digest": "d" * 64,
        "policy_id": "support",
        "policy_version": 3,
        "policy_digest": "p" * 64,
        "payload_sha256": None,
        "jkt": None,
        "resource_count": 1,
        "facts": {"stated": {"reversible": True, "resource_count": 1}},
        "created_at": T0,
        "live_until": T0 + 3600,
        "trace_id": "trace",
    }
    return Delegation(**fields | more)


def approval(id: str = "apr_1", **more: Any) -> Approval:
    fields: dict[str, Any] = {
        "id": id,
        "tenant": TENANT,
        "run": RUN,
        "delegation": "dlg_child",
        "client": "app",
        "subject": "dlg_child",
        "digest": "d" * 64,
        "state": ApprovalState.PENDING,
        "deadline": T0 + 120,
        "created_at": T0,
        "policy_digest": "p" * 64,
        "due": T0 + 120,
    }
    return Approval(**fields | more)


def call(id: str = "call_1", **more: Any) -> Call:
    fields: dict[str, Any] = {
        "id": id,
        "tenant": TENANT,
        "run": RUN,
        "delegation": "dlg_child",
        "client": "cli-lead",
        "guard": "cli-guard",
        "host": "crm",
        "tool": "refund",
        "effect": "irreversible",
        "args": {"amount": 12.5},
        "resources": ("cust_000001",),
        "digest": "c" * 64,
        "state": CallState.RUNNING,
        "decision": "allow",
        "reason": "policy_allow",
        "detail": "",
        "rule": "refund[0]",
        "policy_digest": "p" * 64,
        "approval": None,
        "at": T0,
    }
    return Call(**fields | more)


def record(at: int = T0, **more: Any) -> Record:
    fields: dict[str, Any] = {"at": at, "tenant": TENANT, "kind": "spawned", "actor": "agent:lead", "run": RUN}
    return Record(**fields | more)


def policy(digest: str = "p" * 64, **more: Any) -> PolicyInForce:
    fields: dict[str, Any] = {
        "tenant": TENANT,
        "digest": digest,
        "id": "support",
        "version": 3,
        "since": T0,
        "history": {"refund[0]": T0},
    }
    return PolicyInForce(**fields | more)


def revocation(mark: str = "dlg:dlg_child", **more: Any) -> Revocation:
    fields: dict[str, Any] = {
        "tenant": TENANT,
        "mark": mark,
        "until": FOREVER,
        "at": T0,
        "reason": "revoked",
        "actor": "operator:ann",
    }
    return Revocation(**fields | more)


def key(name: str = "k1", **more: Any) -> Key:
    fields: dict[str, Any] = {
        "caller": "cli-lead",
        "delegation": RUN,
        "key": name,
        "request": "a" * 64,
        "row": "dlg_child",
        "until": T0 + 3600,
    }
    return Key(**fields | more)


def change(at: int = T0, *, tenant: str = TENANT, **more: Any) -> Change:
    fields: dict[str, Any] = {"records": (record(at, tenant=tenant),)}
    return Change(tenant=tenant, at=at, **fields | more)


async def committed(store: Store, given: Change) -> Committed:
    told = await store.commit(given)
    assert isinstance(told, Committed), told
    return told


async def refused(store: Store, given: Change, why: Why) -> Conflict:
    told = await store.commit(given)
    assert isinstance(told, Conflict), told
    assert told.why is why
    return told


async def versions(store: Store, *scopes: str, tenant: str = TENANT) -> tuple[int, ...]:
    delta = await store.ledger(tenant, dict.fromkeys(scopes, 0))
    return tuple(delta.versions[scope] for scope in scopes)


def step(row: Approval, state: ApprovalState, **more: Any) -> Move:
    return Move(expect=row.version, to=replace(row, state=state, version=row.version + 1, **more))


def call_step(row: Call, state: CallState, **more: Any) -> Move:
    return Move(expect=row.version, to=replace(row, state=state, version=row.version + 1, **more))


def ids(rows: Sequence[Any]) -> list[str]:
    return [row.id for row in rows]
