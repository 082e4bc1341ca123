"""One change against the file: every check, then the writes. Runs in the writer's transaction, inside a savepoint."""

import sqlite3
from dataclasses import replace

from carnet_broker.core.rows import Approval, Call, Delegation, PolicyInForce, Revocation, Row
from carnet_broker.store.base import Committed, Conflict, Why
from carnet_broker.store.checks import check
from carnet_broker.store.job import Undo
from carnet_broker.store.prepare import Insert, Prepared, Update
from carnet_broker.store.select import any_row, read_row

__all__ = ["apply_change", "write"]

_RAISE = "INSERT INTO scope VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET version = version + 1 RETURNING version"
_COUNT = (
    "INSERT INTO tenant (tenant, feed, record) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
    "feed = feed + excluded.feed, record = record + excluded.record RETURNING feed, record"
)
_RECORD = "INSERT INTO record (tenant, seq, at, run, delegation, trace, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
_KEY = (
    "INSERT INTO idempotency (tenant, caller, delegation, key, request, row, until) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET request = excluded.request, row = excluded.row, until = excluded.until"
)
_DELEGATION = (
    "INSERT INTO delegation (tenant, id, run, parent, agent, client, created_at, live_until, version, ledger_version,"
    " body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_APPROVAL = (
    "INSERT INTO approval (tenant, id, run, digest, state, deadline, created_at, due, version, ledger_version, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CALL = (
    "INSERT INTO call (tenant, id, run, client, digest, state, at, due, version, ledger_version, client_version, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_POLICY = "INSERT INTO policy (tenant, digest, since, ledger_version, body) VALUES (?, ?, ?, ?, ?)"
_MOVE_APPROVAL = (
    "UPDATE approval SET digest = ?, state = ?, deadline = ?, due = ?, version = ?, ledger_version = ?, body = ?"
    " WHERE tenant = ? AND id = ? AND version = ?"
)
_MOVE_CALL = (
    "UPDATE call SET digest = ?, state = ?, at = ?, due = ?, version = ?, ledger_version = ?, client_version = ?,"
    " body = ? WHERE tenant = ? AND id = ? AND version = ?"
)


def apply_change(conn: sqlite3.Connection, prepared: Prepared, now: int) -> Committed | Conflict:
    """Check and write. Raises Undo when a row to be inserted is there already."""
    told = check(conn, prepared, now)
    if isinstance(told, set):
        return write(conn, prepared, now, prepared.scopes | told)
    return told


def write(conn: sqlite3.Connection, prepared: Prepared, now: int, scopes: frozenset[str]) -> Committed:
    """All writes of a change that passed its checks."""
    change = prepared.change
    tenant = change.tenant
    grown = [row for row in (_merged(conn, revocation) for revocation in change.revoke) if row is not None]
    feed, last = conn.execute(_COUNT, (tenant, len(grown), len(prepared.records))).fetchone()
    for seq, revocation in enumerate(grown, feed - len(grown) + 1):
        _revoke(conn, replace(revocation, seq=seq))
    versions = {scope: conn.execute(_RAISE, (tenant, scope)).fetchone()[0] for scope in scopes}
    for update in prepared.updates:
        _move(conn, update, versions)
    for insert in prepared.inserts:
        _insert(conn, insert, versions, now)
    for id in change.done:
        if conn.execute("UPDATE delegation SET done = 1 WHERE tenant = ? AND id = ?", (tenant, id)).rowcount != 1:
            raise ValueError(f"no delegation {id} to be done with")
    if (key := change.key) is not None:
        conn.execute(_KEY, (tenant, key.caller, key.delegation, key.key, key.request, key.row, key.until))
    first = last - len(prepared.records) + 1
    conn.executemany(_RECORD, [(tenant, first + n, *columns) for n, columns in enumerate(prepared.records)])
    return Committed(seq=feed, now=now)


def _merged(conn: sqlite3.Connection, revocation: Revocation) -> Revocation | None:
    """The row to write for this revocation, or None when what is stored says as much already."""
    until = revocation.until + 2 if revocation.until == revocation.at else revocation.until
    old = read_row(conn, Revocation, revocation.tenant, revocation.mark)
    if old is None:
        return replace(revocation, until=until)
    return replace(old, until=until) if until > old.until else None


def _revoke(conn: sqlite3.Connection, row: Revocation) -> None:
    columns = (row.tenant, row.mark, row.until, row.at, row.reason, row.actor, row.seq)
    conn.execute(
        "INSERT INTO revocation (tenant, mark, until, at, reason, actor, seq) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET until = excluded.until, seq = excluded.seq",
        columns,
    )
    conn.execute("INSERT INTO feed (tenant, mark, until, at, reason, actor, seq) VALUES (?, ?, ?, ?, ?, ?, ?)", columns)


def _move(conn: sqlite3.Connection, update: Update, versions: dict[str, int]) -> None:
    row, version = update.row, versions[f"run:{update.row.run}"]
    columns: tuple[str | int | None, ...]
    if isinstance(row, Approval):
        sql = _MOVE_APPROVAL
        columns = (row.digest, row.state.value, row.deadline, row.due, row.version, version)
    else:
        sql = _MOVE_CALL
        client = versions[f"client:{row.client}"]
        columns = (row.digest, row.state.value, row.at, row.due, row.version, version, client)
    moved = conn.execute(sql, (*columns, update.body, row.tenant, row.id, update.expect))
    if moved.rowcount != 1:
        raise RuntimeError("a row moved between its check and its write")


def _insert(conn: sqlite3.Connection, insert: Insert, versions: dict[str, int], now: int) -> None:
    sql, columns = _columns(insert.row, versions)
    try:
        conn.execute(sql, (*columns, insert.body))
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname != "SQLITE_CONSTRAINT_UNIQUE" or isinstance(insert.row, PolicyInForce):
            raise
        there = any_row(conn, type(insert.row), insert.row.tenant, insert.row.id)
        raise Undo(Conflict(why=Why.STATE, now=now, row=there)) from error


def _columns(row: Row, versions: dict[str, int]) -> tuple[str, tuple[str | int | None, ...]]:
    if isinstance(row, PolicyInForce):
        return _POLICY, (row.tenant, row.digest, row.since, versions["policy"])
    run = versions.get(f"run:{row.run}", 0)  # 0: the row that opens the run is in no ledger
    if isinstance(row, Delegation):
        place = (row.tenant, row.id, row.run, row.parent, row.agent, row.client)
        return _DELEGATION, (*place, row.created_at, row.live_until, row.version, run)
    if isinstance(row, Approval):
        state = (row.state.value, row.deadline, row.created_at, row.due)
        return _APPROVAL, (row.tenant, row.id, row.run, row.digest, *state, row.version, run)
    assert isinstance(row, Call)  # noqa: S101 - for the type checker
    state_of_call = (row.state.value, row.at, row.due, row.version, run, versions[f"client:{row.client}"])
    return _CALL, (row.tenant, row.id, row.run, row.client, row.digest, *state_of_call)
