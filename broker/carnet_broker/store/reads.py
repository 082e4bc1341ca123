"""The reads that span several rows; each sees one state of the file, however many statements it takes."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from carnet.audit import GENESIS, Record
from carnet_broker.core.rows import Approval, Call, Delegation, PolicyInForce, Revocation, Row
from carnet_broker.store.base import Feed, LedgerDelta
from carnet_broker.store.checks import by_tenant, placeholders
from carnet_broker.store.select import KINDS, revocation_of

__all__ = ["due", "epoch", "feed", "ledger", "revoked", "touched", "unsealed"]

_REVOCATION = "SELECT tenant, mark, until, at, reason, actor, seq FROM revocation WHERE tenant = ?"
_HOLDS = "(state <> 'refused' OR version > 1)"  # refused at once, a call has never held anything
_RUN: tuple[tuple[type, str], ...] = (
    (Delegation, "run = ? AND parent IS NOT NULL AND ledger_version > ?"),
    (Approval, "run = ? AND ledger_version > ?"),
    (Call, f"run = ? AND ledger_version > ? AND {_HOLDS}"),
)
_DUE = (
    ("approval", "SELECT due, tenant, id FROM approval WHERE due <= ? ORDER BY due LIMIT ?"),
    ("call", "SELECT due, tenant, id FROM call WHERE due <= ? ORDER BY due LIMIT ?"),
    (
        "delegation",
        "SELECT live_until, tenant, id FROM delegation WHERE parent IS NULL AND done = 0 AND live_until <= ?"
        " ORDER BY live_until LIMIT ?",
    ),
)


@contextmanager
def _snapshot(conn: sqlite3.Connection) -> Iterator[None]:
    conn.execute("BEGIN")
    try:
        yield
    finally:
        conn.execute("ROLLBACK")


def epoch(conn: sqlite3.Connection) -> str:
    found: str = conn.execute("SELECT epoch FROM meta").fetchone()[0]
    return found


def revoked(conn: sqlite3.Connection, tenant: str, marks: Sequence[str]) -> dict[str, Revocation]:
    """The stored revocation of each mark that has one; `key:` marks are those of all tenants."""
    found: dict[str, Revocation] = {}
    for owner, asked in by_tenant(tenant, marks).items():
        for start in range(0, len(asked), 500):
            part = asked[start : start + 500]
            sql = f"{_REVOCATION} AND mark IN {placeholders(part)}"
            found.update((row[1], revocation_of(row)) for row in conn.execute(sql, (owner, *part)))
    return found


def ledger(conn: sqlite3.Connection, tenant: str, have: Mapping[str, int], since: int | None = None) -> LedgerDelta:
    """Versions now and newer rows, of a client those made at `since` or later. ValueError for a scope of no known
    kind."""
    versions: dict[str, int] = {}
    rows: dict[str, tuple[Row, ...]] = {}
    with _snapshot(conn):
        for scope, known in have.items():
            found = conn.execute("SELECT version FROM scope WHERE tenant = ? AND scope = ?", (tenant, scope)).fetchone()
            version: int = found[0] if found else 0
            versions[scope] = version
            if version == known:
                rows[scope] = ()
                _known(scope)
            else:  # a version from the future is another life of the store: all rows
                rows[scope] = tuple(_newer(conn, tenant, scope, known if known < version else 0, since))
    return LedgerDelta(versions=versions, rows=rows)


def _known(scope: str) -> tuple[str, str]:
    kind, _, id = scope.partition(":")
    if (kind in ("run", "client") and id) or scope in ("pending", "policy"):
        return kind, id
    raise ValueError(f"no ledger scope is named {scope!r}")


def _newer(conn: sqlite3.Connection, tenant: str, scope: str, known: int, since: int | None) -> list[Row]:
    kind, id = _known(scope)
    if kind == "client" and known == 0 and since is not None:  # by time: older calls are not even looked at
        return _rows(conn, Call, f"client = ? AND at >= ? AND {_HOLDS} ORDER BY at, n", (tenant, id, since))
    if kind == "client":
        newer = f"client = ? AND client_version > ? AND +at >= ? AND {_HOLDS} ORDER BY client_version, n"
        return _rows(conn, Call, newer, (tenant, id, known, since or 0))
    if kind == "pending":
        return _rows(conn, Approval, "state = 'pending' ORDER BY deadline, n", (tenant,))
    if kind == "policy":
        return _rows(conn, PolicyInForce, "ledger_version > ? ORDER BY ledger_version", (tenant, known))
    found = [row for of, condition in _RUN for row in _rows(conn, of, condition, (tenant, id, known))]
    return sorted(found, key=lambda row: 0 if isinstance(row, PolicyInForce) else row.ledger_version)


def _rows(conn: sqlite3.Connection, kind: type, condition: str, values: tuple[str | int, ...]) -> list[Row]:
    how = KINDS[kind]
    sql = f"SELECT {how.columns} FROM {how.table} WHERE tenant = ? AND {condition}"  # noqa: S608 - constants
    return [how.make(row) for row in conn.execute(sql, values)]


def feed(conn: sqlite3.Connection, tenant: str, epoch_known: str, after: int, now: int, limit: int) -> Feed:
    """What is new after `after`, or the snapshot when that cannot be told step by step."""
    with _snapshot(conn):
        life = epoch(conn)
        counted = conn.execute("SELECT feed FROM tenant WHERE tenant = ?", (tenant,)).fetchone()
        seq: int = counted[0] if counted else 0
        newest = conn.execute(
            "SELECT digest FROM policy WHERE tenant = ? ORDER BY n DESC LIMIT 1", (tenant,)
        ).fetchone()
        steps = _steps(conn, tenant, after, seq, limit) if epoch_known == life else None
        entries = _all(conn, tenant) if steps is None else steps
    return Feed(
        epoch=life,
        seq=seq,
        entries=tuple(entries),
        snapshot=steps is None,
        now=now,
        policy_digest=newest[0] if newest else None,
    )


def _steps(conn: sqlite3.Connection, tenant: str, after: int, seq: int, limit: int) -> list[Revocation] | None:
    if not 0 <= after <= seq or seq - after > limit:
        return None
    if after == seq:
        return []
    sql = "SELECT tenant, mark, until, at, reason, actor, seq FROM feed WHERE tenant = ? AND seq > ? ORDER BY seq"
    steps = [revocation_of(row) for row in conn.execute(sql, (tenant, after))]
    return steps if [step.seq for step in steps] == list(range(after + 1, seq + 1)) else None


def _all(conn: sqlite3.Connection, tenant: str) -> list[Revocation]:
    return [revocation_of(row) for row in conn.execute(f"{_REVOCATION} ORDER BY seq", (tenant,))]


def touched(conn: sqlite3.Connection, tenant: str, id: str, version: int) -> bool:
    """Has the row of this id a later version, or is `dlg:<id>` revoked?"""
    sql = (
        "SELECT EXISTS (SELECT 1 FROM approval WHERE tenant = :t AND id = :i AND version > :v)"
        " OR EXISTS (SELECT 1 FROM call WHERE tenant = :t AND id = :i AND version > :v)"
        " OR EXISTS (SELECT 1 FROM delegation WHERE tenant = :t AND id = :i AND version > :v)"
        " OR EXISTS (SELECT 1 FROM revocation WHERE tenant = :t AND mark = :m)"
    )
    return bool(conn.execute(sql, {"t": tenant, "i": id, "v": version, "m": f"dlg:{id}"}).fetchone()[0])


def due(conn: sqlite3.Connection, now: int, limit: int) -> list[tuple[str, str, str]]:
    """The longest due first, over all tenants and kinds."""
    found = [
        (time, tenant, kind, id)
        for kind, sql in _DUE
        for time, tenant, id in conn.execute(sql, (now, limit)).fetchall()
    ]
    return [(tenant, kind, id) for _, tenant, kind, id in sorted(found, key=lambda row: row[0])[:limit]]


def unsealed(conn: sqlite3.Connection, tenant: str, limit: int) -> tuple[str, int, list[Record]]:
    """The sealed head, its seq, and the records after it in order."""
    with _snapshot(conn):
        found = conn.execute("SELECT head, sealed FROM tenant WHERE tenant = ?", (tenant,)).fetchone()
        head, sealed = found or (GENESIS, 0)
        how = KINDS[Record]
        sql = f"SELECT {how.columns} FROM record WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
        return head, sealed, [how.make(row) for row in conn.execute(sql, (tenant, sealed, limit))]
