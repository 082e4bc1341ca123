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
    keys: tuple[str, ...] = ("n",)  # what rows are ordered by; the last one is unique in the tenant
    newest: bool = False
    equal: tuple[str, ...] = ()  # columns that Where.value names, its words in this order
    only: str = ""  # a fixed condition
    time: str = "at"  # the column of since and until
    after: bool = False  # since is exclusive
    text: bool = False  # the key is text


ORDERS: dict[Index, Order] = {
    Index.DELEGATIONS: Order(Delegation, newest=True, time="created_at"),
    Index.DELEGATIONS_BY_RUN: Order(Delegation, equal=("run",), time="created_at"),
    Index.DELEGATIONS_BY_AGENT: Order(Delegation, newest=True, equal=("agent",), time="created_at"),
    Index.DELEGATIONS_BY_CLIENT: Order(Delegation, newest=True, equal=("client",), time="created_at"),
    Index.DELEGATIONS_LIVE: Order(Delegation, ("live_until", "n"), time="live_until", after=True),
    Index.APPROVALS: Order(Approval, newest=True, time="created_at"),
    Index.APPROVALS_PENDING: Order(Approval, ("deadline", "n"), only="state = 'pending'", time="deadline"),
    Index.APPROVALS_BY_DIGEST: Order(Approval, newest=True, equal=("run", "digest"), time="created_at"),
    Index.CALLS_BY_RUN: Order(Call, equal=("run",)),
    Index.CALLS_BY_CLIENT: Order(Call, ("at", "n"), equal=("client",)),
    Index.CALLS_WAITING: Order(Call, equal=("digest",), only="state = 'waiting'"),
    Index.RECORDS: Order(Record, ("seq",)),
    Index.RECORDS_BY_DELEGATION: Order(Record, ("seq",), equal=("delegation",)),
    Index.RECORDS_BY_RUN: Order(Record, ("seq",), equal=("run",)),
    Index.RECORDS_BY_TRACE: Order(Record, ("seq",), equal=("trace",)),
    Index.REVOCATIONS: Order(Revocation, ("seq",)),
    Index.GUARDS: Order(GuardSeen, ("guard",), text=True),
    Index.CHECKPOINTS: Order(Checkpoint, ("seq",)),
    Index.POLICIES: Order(PolicyInForce, newest=True, time="since"),
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
    sql = (
        f"SELECT {keys}, {how.columns} FROM {how.table}{_hint(where)} WHERE {' AND '.join(conditions)}"  # noqa: S608
        f" ORDER BY {', '.join(f'{key} {way}' for key in order.keys)} LIMIT ?"
    )
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


def _hint(where: Where) -> str:
    """A span of time is read by the index on time: by number it would walk the whole log up to its beginning."""
    timed = where.index is Index.RECORDS and where.since is not None
    return " INDEXED BY record_at" if timed else ""


def _place(order: Order, cursor: str) -> list[str | int]:
    parts = cursor.split(",")
    if len(parts) != len(order.keys) or not all(_NUMBER.fullmatch(part) for part in parts):
        raise ValueError("this cursor is not one that the store gave")
    return [int(part) for part in parts]
