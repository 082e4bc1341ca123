"""Every read is served by an index in its own order: no page and no poll costs more as the tables grow."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from carnet_broker.store import reads
from carnet_broker.store.base import Index, Where
from carnet_broker.store.orders import ORDERS, page
from carnet_broker.store.sqlite import SqliteStore
from tests.store.making import T0, TENANT


@contextmanager
def watched(store: SqliteStore) -> Iterator[tuple[sqlite3.Connection, list[str]]]:
    conn = store._read(lambda own: own)  # this thread's, which reads through it below
    statements: list[str] = []
    conn.set_trace_callback(statements.append)
    yield conn, statements
    conn.set_trace_callback(None)


def slow(conn: sqlite3.Connection, statements: list[str]) -> list[tuple[str, str]]:
    """Steps that look at each row of a table or sort what they found."""
    return [
        (statement, step)
        for statement in statements
        if statement.startswith("SELECT")
        for *_, step in conn.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        if ("SCAN" in step and "CONSTANT" not in step) or "TEMP B-TREE" in step
    ]


@pytest.mark.parametrize("index", Index)
@pytest.mark.anyio
async def test_every_order_is_read_from_its_index(store: SqliteStore, index: Index) -> None:
    order = ORDERS[index]
    value = " ".join("v" for _ in order.equal)
    with watched(store) as (conn, statements):
        for since in (None, T0):
            for cursor in (None, ",".join("1" for _ in order.keys)):
                page(conn, order.kind, TENANT, Where(index=index, value=value, since=since), cursor, 10)
    found = slow(conn, statements)
    if index is Index.RECORDS:  # a span of time sorts the numbers of its records, read from the index alone
        found = [(statement, step) for statement, step in found if "record_at" not in statement]
    assert found == []
    assert len(statements) == 4


@pytest.mark.anyio
async def test_the_other_reads_use_indexes_too(store: SqliteStore) -> None:
    with watched(store) as (conn, statements):
        reads.ledger(conn, TENANT, {"run:x": 1, "client:x": 1, "pending": 1, "policy": 1})
        reads.ledger(conn, TENANT, {"client:x": 1}, T0)
        reads._newer(conn, TENANT, "client:x", 1, T0)
        reads.feed(conn, TENANT, store.epoch, 0, T0, 10)
        reads.feed(conn, TENANT, "", 0, T0, 10)
        reads.revoked(conn, TENANT, ["dlg:a", "key:b"])
        reads.touched(conn, TENANT, "x", 1)
        reads.due(conn, T0, 10)
        reads.unsealed(conn, TENANT, 10)
    assert slow(conn, [one for one in statements if "FROM meta" not in one]) == []
