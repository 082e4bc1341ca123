"""How each kind is read from its table: which columns, and the value made of them."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from carnet.audit import Record
from carnet_broker.core.rows import Approval, Call, Checkpoint, Delegation, GuardSeen, PolicyInForce, Revocation
from carnet_broker.store.base import R
from carnet_broker.store.codec import decode

__all__ = ["KINDS", "Kind", "any_row", "read_row", "revocation_of"]

Columns = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    table: str
    columns: str
    make: Callable[[Columns], Any]
    by_id: str  # condition after the tenant


def revocation_of(row: Columns) -> Revocation:
    tenant, mark, until, at, reason, actor, seq = row
    return Revocation(tenant=tenant, mark=mark, until=until, at=at, reason=reason, actor=actor, seq=seq)


def _guard_of(row: Columns) -> GuardSeen:
    return GuardSeen(tenant=row[0], guard=row[1], seq=row[2], at=row[3])


def _checkpoint_of(row: Columns) -> Checkpoint:
    return Checkpoint(tenant=row[0], seq=row[1], head=row[2], at=row[3], signature=row[4])


KINDS: dict[type, Kind] = {
    Delegation: Kind(
        "delegation", "body, ledger_version", lambda r: decode(Delegation, r[0], ledger_version=r[1]), "id = ?"
    ),
    Approval: Kind("approval", "body, ledger_version", lambda r: decode(Approval, r[0], ledger_version=r[1]), "id = ?"),
    Call: Kind("call", "body, ledger_version", lambda r: decode(Call, r[0], ledger_version=r[1]), "id = ?"),
    PolicyInForce: Kind("policy", "body", lambda r: decode(PolicyInForce, r[0]), "digest = ? ORDER BY n DESC LIMIT 1"),
    Record: Kind("record", "body, seq", lambda r: decode(Record, r[0], seq=r[1]), "seq = CAST(? AS INTEGER)"),
    Revocation: Kind("revocation", "tenant, mark, until, at, reason, actor, seq", revocation_of, "mark = ?"),
    GuardSeen: Kind("guard", "tenant, guard, seq, at", _guard_of, "guard = ?"),
    Checkpoint: Kind("checkpoint", "tenant, seq, head, at, signature", _checkpoint_of, "seq = CAST(? AS INTEGER)"),
}
_BY_ID = {
    kind: f"SELECT {how.columns} FROM {how.table} WHERE tenant = ? AND {how.by_id}"  # noqa: S608 - constants
    for kind, how in KINDS.items()
}


def read_row(conn: sqlite3.Connection, kind: type[R], tenant: str, id: str) -> R | None:
    """One row by its id: a mark, a guard's name, a policy's digest (its newest row), a seq in decimal digits."""
    row: R | None = any_row(conn, kind, tenant, id)
    return row


def any_row(conn: sqlite3.Connection, kind: type, tenant: str, id: str) -> Any:
    """`read_row` for a kind that is known at run time only."""
    found = conn.execute(_BY_ID[kind], (tenant, id)).fetchone()
    return None if found is None else KINDS[kind].make(found)
