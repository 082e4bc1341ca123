"""The closed list of orders as SQL: one row per `Index`, and pages over it with a cursor that stays true under inserts.

Every order ends in a column that grows with each insert or never changes, so a cursor names a place and not a number of
rows: what is inserted later neither repeats nor hides a row that was there when the first page was read.
"""

import re
import sqlite3
from dataclasses import dataclass
from typing import Any

from carnet.audit import Record
from carnet_broker.core.rows import Approval, Call, Checkpoint, Delegation, GuardSeen, PolicyInForce, Revocation
from carnet_broker.store.base import Index, Page, R, Where
from carnet_broker.store.select import KINDS

__all__ = ["ORDERS", "Order", "page"]


@dataclass(frozen=True, slots=True)
class Order:
    kind: type
    index: str  # the index that must serve it; "" = the primary key
    keys: tuple[str, ...] = ("n",)  # what rows are ordered by; the last one is unique in the tenant
    newest: bool = False
    equal: tuple[str, ...] = ()  # columns that Where.value names, its words in this order
    only: str = ""  # a fixed condition
    time: str = "at"  # the column of since and until
    after: bool = False  # since is exclusive
    text: bool = False  # the key is text


_BORN = "created_at"
_SEQ = ("seq",)
ORDERS: dict[Index, Order] = {
    Index.DELEGATIONS: Order(Delegation, "delegation_newest", newest=True, time=_BORN),
    Index.DELEGATIONS_BY_RUN: Order(Delegation, "delegation_by_run", equal=("run",), time=_BORN),
    Index.DELEGATIONS_BY_AGENT: Order(Delegation, "delegation_by_agent", newest=True, equal=("agent",), time=_BORN),
    Index.DELEGATIONS_BY_CLIENT: Order(Delegation, "delegation_by_client", newest=True, equal=("client",), time=_BORN),
    Index.DELEGATIONS_LIVE: Order(Delegation, "delegation_live", ("live_until", "n"), time="live_until", after=True),
    Index.APPROVALS: Order(Approval, "approval_newest", newest=True, time=_BORN),
    Index.APPROVALS_PENDING: Order(
        Approval, "approval_pending", ("deadline", "n"), only="state = 'pending'", time="deadline"
    ),
    Index.APPROVALS_BY_DIGEST: Order(Approval, "approval_by_digest", newest=True, equal=("run", "digest"), time=_BORN),
    Index.CALLS_BY_RUN: Order(Call, "call_by_run", equal=("run",)),
    Index.CALLS_BY_CLIENT: Order(Call, "call_by_client", ("at", "n"), equal=("client",)),
    Index.CALLS_WAITING: Order(Call, "call_waiting", equal=("digest",), only="state = 'waiting'"),
    Index.RECORDS: Order(Record, "", _SEQ),
    Index.RECORDS_BY_DELEGATION: Order(Record, "record_by_delegation", _SEQ, equal=("delegation",)),
    Index.RECORDS_BY_RUN: Order(Record, "record_by_run", _SEQ, equal=("run",)),
    Index.RECORDS_BY_TRACE: Order(Record, "record_by_trace", _SEQ, equal=("trace",)),
    Index.REVOCATIONS: Order(Revocation, "revocation_by_seq", _SEQ),
    Index.GUARDS: Order(GuardSeen, "", ("guard",), text=True),
    Index.CHECKPOINTS: Order(Checkpoint, "", _SEQ),
    Index.POLICIES: Order(PolicyInForce, "policy_newest", newest=True, time="since"),
}
_NUMBER = re.compile(r"[0-9]{1,18}")


def page(conn: sqlite3.Connection, kind: type[R], tenant: str, where: Where, after: str | None, limit: int) -> Page[R]:
    """Up to `limit` rows after the cursor. ValueError for a kind, value or cursor that does not fit the index."""
    if ORDERS[where.index].kind is not kind:
        raise ValueError(f"{where.index.value} does not hold {kind.__name__}")
    rows, cursor = _found(conn, tenant, where, after, limit)
    return Page(rows=tuple(rows), next=cursor)


def _found(
    conn: sqlite3.Connection, tenant: str, where: Where, after: str | None, limit: int
) -> tuple[list[Any], str | None]:
    order = ORDERS[where.index]
    how = KINDS[order.kind]
    conditions, values = _conditions(order, tenant, where, after)
    keys, way = ", ".join(order.keys), "DESC" if order.newest else "ASC"
    hint = f" INDEXED BY {order.index}" if order.index else ""
    rest = f"WHERE {' AND '.join(conditions)} ORDER BY {', '.join(f'{key} {way}' for key in order.keys)} LIMIT ?"
    sql = f"SELECT {keys}, {how.columns} FROM {how.table}{hint} {rest}"  # noqa: S608 - constants and placeholders
    if where.index is Index.RECORDS and where.since is not None:  # by number it would walk the log from its beginning
        numbers = f"SELECT seq FROM record INDEXED BY record_at {rest}"  # noqa: S608
        sql = f"SELECT {keys}, {how.columns} FROM record WHERE tenant = ? AND seq IN ({numbers}) ORDER BY seq"  # noqa: S608
        values.insert(0, tenant)
    found = conn.execute(sql, (*values, limit + 1)).fetchall()
    width = len(order.keys)
    cursor = ",".join(map(str, found[limit - 1][:width])) if len(found) > limit else None
    return [how.make(row[width:]) for row in found[:limit]], cursor


def _conditions(order: Order, tenant: str, where: Where, after: str | None) -> tuple[list[str], list[str | int]]:
    conditions = ["tenant = ?"]
    values: list[str | int] = [tenant]
    words = where.value.split(" ", len(order.equal) - 1) if order.equal else []
    if len(words) != len(order.equal) or (where.value and not order.equal):
        raise ValueError(f"{where.index.value} takes {len(order.equal)} values")
    conditions += [f"{column} = ?" for column in order.equal]
    values += words
    if order.only:
        conditions.append(order.only)
    if where.since is not None:
        conditions.append(f"{order.time} {'>' if order.after else '>='} ?")
        values.append(where.since)
    if where.until is not None:
        conditions.append(f"{order.time} < ?")
        values.append(where.until)
    if after is not None:
        conditions.append(
            f"({', '.join(order.keys)}) {'<' if order.newest else '>'} ({', '.join('?' * len(order.keys))})"
        )
        values += [after] if order.text else _place(order, after)
    return conditions, values


def _place(order: Order, cursor: str) -> list[str | int]:
    parts = cursor.split(",")
    if len(parts) != len(order.keys) or not all(_NUMBER.fullmatch(part) for part in parts):
        raise ValueError("this cursor is not one that the store gave")
    return [int(part) for part in parts]
