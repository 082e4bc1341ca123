"""A change made ready in its caller's thread: checked for sense and encoded, so that the writer compares and writes.

ValueError for a change that contradicts itself; that is a bug of the caller and never reaches the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from carnet_broker.core.rows import Approval, ApprovalState, Call, Delegation, PolicyInForce, Row
from carnet_broker.store.base import Change
from carnet_broker.store.codec import encode

__all__ = ["SYSTEM", "Insert", "Prepared", "Touch", "Update", "mark_tenant", "prepare"]

SYSTEM = "_system"  # where marks of signing keys live; no tenant can have this name
Touch = tuple[str, str, str]  # ("feed", tenant, "") or ("row", tenant, id): what a commit wakes


@dataclass(frozen=True, slots=True)
class Insert:
    row: Row
    body: bytes


@dataclass(frozen=True, slots=True)
class Update:
    expect: int
    row: Approval | Call
    body: bytes


@dataclass(frozen=True, slots=True)
class Prepared:
    change: Change
    inserts: tuple[Insert, ...]
    updates: tuple[Update, ...]
    records: tuple[tuple[int, str | None, str | None, str | None, bytes], ...]  # at, run, delegation, trace, body
    scopes: frozenset[str]  # ledger scopes that it raises, save those that depend on a stored row
    touches: frozenset[Touch]


def mark_tenant(tenant: str, mark: str) -> str:
    """The tenant under which a mark is stored: signing keys are everybody's."""
    return SYSTEM if mark.startswith("key:") else tenant


def prepare(change: Change) -> Prepared:
    """Encode every row and record of the change. ValueError or TypeError when it makes no sense."""
    _sensible(change)
    return Prepared(
        change=change,
        inserts=tuple(Insert(row, encode(row)) for row in change.insert),
        updates=tuple(Update(move.expect, move.to, encode(move.to)) for move in change.moves),
        records=tuple((r.at, r.run, r.delegation, r.trace_id or None, encode(r)) for r in change.records),
        scopes=frozenset(_scopes(change)),
        touches=frozenset(_touches(change)),
    )


def _sensible(change: Change) -> None:
    parts = (*change.records, *change.insert, *change.revoke, *(move.to for move in change.moves))
    if any(part.tenant != change.tenant for part in parts):
        raise ValueError("a change holds a part of another tenant")
    rows = (*change.insert, *(move.to for move in change.moves))
    names = [(type(row), row.id) for row in rows if not isinstance(row, PolicyInForce)]
    if len(set(names)) != len(names):
        raise ValueError("a change names a row twice")
    for move in change.moves:
        if move.to.version != move.expect + 1:
            raise ValueError("a move must raise the version by one")
    marks = [revocation.mark for revocation in change.revoke]
    if len(set(marks)) != len(marks):
        raise ValueError("a change names a mark twice")
    if any(mark_tenant(change.tenant, mark) != change.tenant for mark in marks):
        raise ValueError(f"a key: mark is stored under {SYSTEM} only")
    if sum(isinstance(row, PolicyInForce) for row in rows) > 1:
        raise ValueError("a change puts two policies in force")


def _scopes(change: Change) -> Iterator[str]:
    for row in (*change.insert, *(move.to for move in change.moves)):
        if isinstance(row, PolicyInForce):
            yield "policy"
            continue
        if not isinstance(row, Delegation) or row.parent is not None:
            yield f"run:{row.run}"
        if isinstance(row, Call):
            yield f"client:{row.client}"
        elif isinstance(row, Approval) and row.state is ApprovalState.PENDING:
            yield "pending"


def _touches(change: Change) -> Iterator[Touch]:
    if change.revoke:
        yield ("feed", change.tenant, "")
    for revocation in change.revoke:
        kind, _, id = revocation.mark.partition(":")
        if kind == "dlg":
            yield ("row", change.tenant, id)
    for move in change.moves:
        yield ("row", change.tenant, move.to.id)
    for row in change.insert:
        yield ("feed", change.tenant, "") if isinstance(row, PolicyInForce) else ("row", change.tenant, row.id)
