"""The checks of a change, in the order of `Why`, inside the writing transaction and before its first write."""

import sqlite3
from collections.abc import Iterable, Sequence

from carnet_broker.core.rows import Approval, Revocation
from carnet_broker.core.standing import killer
from carnet_broker.store.base import SKEW_FORWARD, Change, Committed, Conflict, Why
from carnet_broker.store.prepare import Prepared, Update, mark_tenant
from carnet_broker.store.select import any_row, revocation_of

__all__ = ["by_tenant", "check", "placeholders"]

_MARKS = "SELECT tenant, mark, until, at, reason, actor, seq FROM revocation WHERE tenant = ? AND mark IN "
_OLD = {
    "approval": "SELECT version, run, state = 'pending' FROM approval WHERE tenant = ? AND id = ?",
    "call": "SELECT version, run, client FROM call WHERE tenant = ? AND id = ?",
}


def check(conn: sqlite3.Connection, prepared: Prepared, now: int) -> Committed | Conflict | set[str]:
    """What the caller is told without a write, or the further ledger scopes that the moves raise."""
    change = prepared.change
    if change.key is not None and (told := _key(conn, change, now)) is not None:
        return told
    if not change.at <= now <= change.at + SKEW_FORWARD:
        return Conflict(why=Why.SKEW, now=now)
    if change.before is not None and now >= change.before:
        return Conflict(why=Why.LATE, now=now)
    if change.alive and (killer := _killer(conn, change)) is not None:
        return Conflict(why=Why.REVOKED, now=now, row=killer)
    if change.ledger and _stale(conn, change):
        return Conflict(why=Why.STALE, now=now)
    return _states(conn, prepared.updates, now)


def _feed_seq(conn: sqlite3.Connection, tenant: str) -> int:
    row = conn.execute("SELECT feed FROM tenant WHERE tenant = ?", (tenant,)).fetchone()
    return row[0] if row else 0


def placeholders(values: Sequence[object]) -> str:
    return f"({', '.join('?' * len(values))})"


def _key(conn: sqlite3.Connection, change: Change, now: int) -> Committed | Conflict | None:
    key = change.key
    assert key is not None  # noqa: S101 - for the type checker; the caller has looked
    found = conn.execute(
        "SELECT request, row FROM idempotency"
        " WHERE tenant = ? AND caller = ? AND delegation = ? AND key = ? AND until > ?",
        (change.tenant, key.caller, key.delegation, key.key, now),
    ).fetchone()
    if found is None:
        return None
    if found[0] != key.request:
        return Conflict(why=Why.KEY, now=now)
    return Committed(seq=_feed_seq(conn, change.tenant), now=now, first=found[1])


def _killer(conn: sqlite3.Connection, change: Change) -> Revocation | None:
    """The revocation that tells the reason: of several the oldest."""
    issued: dict[str, int] = {}
    for mark, at in change.alive:
        born = change.at if at is None else at
        issued[mark] = min(issued.get(mark, born), born)
    revoked = [
        revocation_of(row)
        for tenant, marks in by_tenant(change.tenant, issued).items()
        for row in conn.execute(_MARKS + placeholders(marks), (tenant, *marks))
    ]
    return killer(revoked, issued)


def by_tenant(tenant: str, marks: Iterable[str]) -> dict[str, list[str]]:
    sorted_out: dict[str, list[str]] = {}
    for mark in marks:
        sorted_out.setdefault(mark_tenant(tenant, mark), []).append(mark)
    return sorted_out


def _stale(conn: sqlite3.Connection, change: Change) -> bool:
    scopes = [scope for scope, _ in change.ledger]
    found = dict(
        conn.execute(
            f"SELECT scope, version FROM scope WHERE tenant = ? AND scope IN {placeholders(scopes)}",  # noqa: S608
            (change.tenant, *scopes),
        ).fetchall()
    )
    return any(found.get(scope, 0) != version for scope, version in change.ledger)


def _states(conn: sqlite3.Connection, updates: tuple[Update, ...], now: int) -> Conflict | set[str]:
    more: set[str] = set()
    for update in updates:
        row = update.row
        table = "approval" if isinstance(row, Approval) else "call"
        old = conn.execute(_OLD[table], (row.tenant, row.id)).fetchone()
        if old is None:
            return Conflict(why=Why.STATE, now=now)
        if old[0] != update.expect:
            return Conflict(why=Why.STATE, now=now, row=any_row(conn, type(row), row.tenant, row.id))
        if old[1] != row.run:
            raise ValueError("a move takes a row to another run")
        if table == "approval" and old[2]:
            more.add("pending")
        if table == "call" and old[2] != getattr(row, "client", None):
            raise ValueError("a move takes a call to another client")
    return more
