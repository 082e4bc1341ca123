"""What is decided once is decided once, with many processes and with many callers."""

import asyncio
import os
from pathlib import Path

import pytest

from carnet_broker.core.rows import ApprovalState, Call
from carnet_broker.store.base import Committed, Conflict, Why
from carnet_broker.store.sqlite import SqliteStore
from tests.store.broken import CheckThenSet, CheckThenSetUnguarded, DeferredBegin
from tests.store.making import TENANT, Clock, approval, call, change, committed, revocation, step
from tests.store.racing import LIMITS, consume_in_processes

APPROVALS = int(os.environ.get("TEST_ROUNDS", "3")) * 20
PROCESSES = 8


def test_eight_processes_spend_each_approval_exactly_once(tmp_path: Path) -> None:
    seen = consume_in_processes(SqliteStore, tmp_path / "carnet.db", APPROVALS, PROCESSES)
    assert seen["won"] == APPROVALS
    assert seen["unavailable"] == 0
    assert seen["lost"] > 0, "nobody raced: the test shows nothing"


def test_check_then_set_is_caught_by_the_race(tmp_path: Path) -> None:
    seen = consume_in_processes(CheckThenSetUnguarded, tmp_path / "carnet.db", APPROVALS, PROCESSES)
    assert seen["won"] > APPROVALS


def test_check_then_set_is_stopped_by_the_file(tmp_path: Path) -> None:
    seen = consume_in_processes(CheckThenSet, tmp_path / "carnet.db", APPROVALS, PROCESSES)
    assert seen["won"] == APPROVALS
    assert seen["refused by the file"] > 0


def test_a_deferred_begin_is_caught_by_the_race(tmp_path: Path) -> None:
    seen = consume_in_processes(DeferredBegin, tmp_path / "carnet.db", APPROVALS, PROCESSES)
    assert seen["unavailable"] > 0


async def act_first(store: SqliteStore, run: str, number: int) -> bool:
    """An irreversible call that is allowed only as the first of its run."""
    scope = f"run:{run}"
    for _ in range(100):
        delta = await store.ledger(TENANT, {scope: 0})
        if any(isinstance(row, Call) for row in delta.rows[scope]):
            return False
        await asyncio.sleep(0)  # as a policy decision in between would
        given = change(insert=(call(f"call_{run}_{number}", run=run),), ledger=((scope, delta.versions[scope]),))
        told = await store.commit(given)
        if isinstance(told, Committed):
            return True
        assert isinstance(told, Conflict)
        assert told.why is Why.STALE
    raise AssertionError("never got through")


@pytest.mark.anyio
async def test_of_64_first_irreversible_calls_one_goes_through(store: SqliteStore) -> None:
    for n in range(int(os.environ.get("TEST_ROUNDS", "3"))):
        allowed = await asyncio.gather(*(act_first(store, f"dlg_{n}", number) for number in range(64)))
        assert sum(allowed) == 1


@pytest.mark.anyio
async def test_two_stores_on_one_file_hear_of_each_other(tmp_path: Path, clock: Clock) -> None:
    one, two = (SqliteStore.open(tmp_path / "carnet.db", clock=clock, lock=False, limits=LIMITS) for _ in range(2))
    await committed(one, change(insert=(approval(),)))
    watching = asyncio.ensure_future(two.watch(TENANT, "apr_1", 1, 20))
    following = asyncio.ensure_future(two.changes(TENANT, two.epoch, 0, 20))
    await asyncio.sleep(0.02)
    await committed(one, change(moves=(step(approval(), ApprovalState.DENIED),), revoke=(revocation(),)))
    await asyncio.wait_for(watching, 2)
    assert len((await asyncio.wait_for(following, 2)).entries) == 1
    clock.now += 50
    await committed(one, change(clock.now))
    clock.now -= 50
    assert (await committed(two, change(clock.now + 50))).now == clock.now + 50
    await one.close()
    await two.close()
