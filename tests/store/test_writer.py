"""The writing thread: what one change of a batch can and cannot do to the others."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from carnet.audit import Record
from carnet_broker.core.rows import Delegation
from carnet_broker.store.base import Committed, Index, Unavailable, Where
from carnet_broker.store.limits import Limits
from carnet_broker.store.sqlite import SqliteStore
from tests.store.broken import NoSavepoint
from tests.store.making import TENANT, Clock, change, committed, delegation, record, revocation

Settled = list[Committed | BaseException]


async def records(store: SqliteStore) -> list[str]:
    page = await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 100)
    return [row.detail for row in page.rows]


def named(detail: str, **more: Any) -> Any:
    return change(records=(record(detail=detail),), **more)


async def together(*acts: Awaitable[Any]) -> list[Any]:
    """All in one turn of the loop, hence in one batch."""
    return list(await asyncio.gather(*acts, return_exceptions=True))


async def bad_in_a_batch_of_three(store: SqliteStore, bad: Callable[[sqlite3.Connection, int], Any]) -> list[Any]:
    return await together(store.commit(named("one")), store._do(bad), store.commit(named("three")))


def half_then_bug(conn: sqlite3.Connection, _: int) -> None:
    conn.execute("INSERT INTO once (tenant, key, until) VALUES ('acme', 'half', 9)")
    raise ZeroDivisionError


async def a_bad_change_stays_alone(store: SqliteStore) -> None:
    one, bad, three = await bad_in_a_batch_of_three(store, half_then_bug)
    assert isinstance(one, Committed)
    assert isinstance(three, Committed)
    assert isinstance(bad, ZeroDivisionError)
    assert await records(store) == ["one", "three"]
    found = await store._do(lambda conn, _: conn.execute("SELECT count(*) FROM once").fetchone()[0])
    assert found == 0


@pytest.mark.anyio
async def test_a_bad_change_in_a_batch_of_three_stays_alone(store: SqliteStore) -> None:
    await a_bad_change_stays_alone(store)


@pytest.mark.anyio
async def test_a_writer_without_savepoints_is_caught(tmp_path: Path, clock: Clock) -> None:
    store = NoSavepoint.open(tmp_path / "carnet.db", clock=clock)
    with pytest.raises(AssertionError):
        await a_bad_change_stays_alone(store)
    await store.close()


def commit_and_go_on(conn: sqlite3.Connection, _: int) -> None:
    conn.execute("COMMIT")


def roll_back_and_go_on(conn: sqlite3.Connection, _: int) -> None:
    conn.execute("ROLLBACK")


def end_and_begin_again(conn: sqlite3.Connection, _: int) -> None:
    conn.execute("ROLLBACK")
    conn.execute("BEGIN IMMEDIATE")


def roll_back_and_fail(conn: sqlite3.Connection, _: int) -> None:
    conn.execute("ROLLBACK")
    raise ZeroDivisionError


@pytest.mark.parametrize("end", [commit_and_go_on, roll_back_and_go_on, end_and_begin_again, roll_back_and_fail])
@pytest.mark.anyio
async def test_a_change_that_ends_the_transaction_fails_its_batch(
    store: SqliteStore, end: Callable[[sqlite3.Connection, int], None]
) -> None:
    told = await bad_in_a_batch_of_three(store, end)
    assert all(isinstance(answer, Unavailable) for answer in told)
    assert "three" not in await records(store)
    assert isinstance(await store.commit(named("next")), Committed)


@pytest.mark.anyio
async def test_a_commit_that_fails_fails_all(store: SqliteStore) -> None:
    def broken_reference(conn: sqlite3.Connection, _: int) -> None:
        conn.execute("PRAGMA defer_foreign_keys = ON")
        conn.execute("INSERT INTO checkpoint VALUES ('acme', 99, ?, 1, 'x')", ("0" * 64,))

    told = await bad_in_a_batch_of_three(store, broken_reference)
    assert all(isinstance(answer, Unavailable) for answer in told)
    assert await records(store) == []
    await committed(store, named("next"))
    assert await records(store) == ["next"]


@pytest.mark.anyio
async def test_changes_of_one_batch_see_each_other(store: SqliteStore) -> None:
    told = await together(
        *(store.commit(change(ledger=(("run:dlg_run", 0),), insert=(delegation(f"d{n}"),))) for n in range(3))
    )
    assert [isinstance(answer, Committed) for answer in told] == [True, False, False]


async def blocked(store: SqliteStore) -> tuple[threading.Event, "asyncio.Task[Any]"]:
    """The writer busy until the event is set."""
    started, go = threading.Event(), threading.Event()

    def wait(_: sqlite3.Connection, __: int) -> None:
        started.set()
        go.wait(20)

    task = asyncio.ensure_future(store._do(wait))
    await asyncio.to_thread(started.wait, 5)
    return go, task


@pytest.mark.anyio
async def test_a_full_queue_refuses_but_not_a_revocation(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore.open(tmp_path / "carnet.db", clock=clock, limits=Limits(queue=2, reserve=4096))
    go, task = await blocked(store)
    waiting = [asyncio.ensure_future(store.commit(named(name))) for name in ("one", "two")]
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="Too many"):
        await store.commit(named("three"))
    revoking = asyncio.ensure_future(store.commit(named("revoke", revoke=(revocation(),))))
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(task, revoking, *waiting)
    assert await records(store) == ["revoke", "one", "two"]
    await store.close()


@pytest.mark.anyio
async def test_a_slow_disk_is_told_and_given_up_changes_are_not_made(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore.open(tmp_path / "carnet.db", clock=clock, limits=Limits(answer=0.1, reserve=4096))
    go, task = await blocked(store)
    with pytest.raises(Unavailable, match="in time"):
        await store.commit(named("late"))
    go.set()
    with pytest.raises(Unavailable):
        await task
    await committed(store, named("next"))
    assert await records(store) == ["next"]
    await store.close()


@pytest.mark.anyio
async def test_a_cancelled_caller_leaves_the_writer_well(store: SqliteStore) -> None:
    go, task = await blocked(store)
    gone = asyncio.ensure_future(store.commit(named("gone")))
    await asyncio.sleep(0)
    gone.cancel()
    go.set()
    await task
    await committed(store, named("next"))
    assert await records(store) == ["next"]


@pytest.mark.anyio
async def test_what_is_queued_at_close_is_still_committed(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore.open(tmp_path / "carnet.db", clock=clock, limits=Limits(reserve=4096))
    go, task = await blocked(store)
    last = asyncio.ensure_future(store.commit(named("last")))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0.02)
    go.set()
    await asyncio.gather(task, closing)
    assert isinstance(await last, Committed)


def test_several_event_loops_share_one_store(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore.open(tmp_path / "carnet.db", clock=clock, limits=Limits(reserve=4096))

    async def some(name: str) -> None:
        await asyncio.gather(*(committed(store, change(insert=(delegation(f"{name}{n}"),))) for n in range(20)))
        assert await store.get(Delegation, TENANT, f"{name}1") is not None

    threads = [threading.Thread(target=lambda name=name: asyncio.run(some(name))) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def count() -> int:
        return len(await records(store))

    assert asyncio.run(count()) == 60
    store.close_now()


@pytest.mark.anyio
async def test_a_locked_file_is_unavailable_and_heals(store: SqliteStore, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "carnet.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="another process"):
        await store.commit(change())
    assert await store.get(Delegation, TENANT, "x") is None
    other.execute("ROLLBACK")
    other.close()
    await committed(store, change())


@pytest.mark.anyio
async def test_once_refuses_when_its_room_is_used_up(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore.open(tmp_path / "carnet.db", clock=clock, limits=Limits(onces=2, reserve=4096))
    for name in "ab":
        assert await store.once(TENANT, name, clock.now + 60)
    with pytest.raises(Unavailable, match="full"):
        await store.once(TENANT, "c", clock.now + 60)
    assert not await store.once(TENANT, "a", clock.now + 60)
    assert await store.once("other", "c", clock.now + 60)
    await store.close()
