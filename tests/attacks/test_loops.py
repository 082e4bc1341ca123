"""A child that calls in a loop what is refused: it must not fill the audit log."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from carnet.audit import Record
from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet_broker.core.ledgers import MAX_RUN_CALLS
from carnet_broker.service.pacing import EACH, Refusals
from carnet_broker.service.views import ApprovalView
from tests.service.world import TENANT, World, build, good

pytestmark = pytest.mark.anyio
BAD = {"query": 1}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = await build(tmp_path, ManualClock())
    yield made
    await made.store.close()


async def lines(world: World) -> list[Record]:
    return await world.audit("call_decided")


async def near(world: World, run: str, left: int) -> None:
    """As if the run had refused so many calls that this number is left."""
    refusals = world.context.refusals
    for _ in range(await refusals.count(world.store, TENANT, run), MAX_RUN_CALLS - left):
        refusals.add(TENANT, run)


async def searching(world: World) -> tuple[str, str]:
    root = await world.root()
    return root.txn, (await world.child(root)).tokens["desk"].access_token


@pytest.mark.parametrize("preview", [False, True])
async def test_beyond_the_cap_a_thousand_refusals_share_a_line(world: World, preview: bool) -> None:
    run, token = await searching(world)
    await near(world, run, 3)
    for _ in range(3):
        assert (await world.called(token, "search", BAD, preview=preview)).reason == "no_match"
    for _ in range(EACH + 5):
        assert good(await world.call(token, "search", BAD, preview=preview), Refusal).reason is Reason.RUN_FULL
    found = await lines(world)
    assert [line.reason for line in found] == ["no_match"] * 3 + ["run_full"] * 2
    assert [line.facts.get("count") for line in found[3:]] == [1, EACH]
    assert all(line.decision == "deny" and line.run == run for line in found)


async def test_a_full_run_allows_nothing_more_and_other_runs_go_on(world: World) -> None:
    run, token = await searching(world)
    await near(world, run, 1)
    made = await world.called(token, "search", {"query": "a"}, key="a" * 32)
    assert made.decision == "allow"
    others: list[dict[str, Any]] = [{"key": "b" * 32}, {"preview": True}]
    for more in others:
        assert good(await world.call(token, "search", {"query": "a"}, **more), Refusal).reason is Reason.RUN_FULL
    again = await world.called(token, "search", {"query": "a"}, key="a" * 32)
    assert (again.call_id, again.repeat) == (made.call_id, True)
    _, other = await searching(world)
    assert (await world.called(other, "search", {"query": "a"})).decision == "allow"


async def test_every_way_to_be_refused_is_bounded(world: World) -> None:
    root = await world.root()
    token = (await world.child(root)).tokens["desk"].access_token
    for tool in ("search", "refund", "nothing"):
        before = await world.context.refusals.count(world.store, TENANT, root.txn)
        await world.call(token, tool, BAD)
        assert await world.context.refusals.count(world.store, TENANT, root.txn) == before + 1
    await near(world, root.txn, 0)
    written = len(await lines(world))
    for tool in ("search", "refund", "nothing", "wipe"):
        assert good(await world.call(token, tool, BAD), Refusal).reason is Reason.RUN_FULL
    assert len(await lines(world)) == written + 1


async def test_looking_at_an_open_question_is_bounded_and_what_is_approved_still_runs(world: World) -> None:
    root = await world.root()
    _, token = await world.approved(root, ("wipe",))
    asked = await world.called(token, "wipe", {"name": "x"})
    await near(world, root.txn, 1)
    assert (await world.called(token, "wipe", {"name": "x"})).call_id == asked.call_id
    assert good(await world.call(token, "wipe", {"name": "x"}), Refusal).reason is Reason.RUN_FULL
    assert asked.approval_id is not None
    good(await world.approve(asked.approval_id), ApprovalView)
    made = await world.called(token, "wipe", {"name": "x"})
    assert (made.call_id, made.decision) == (asked.call_id, "allow")


async def test_refused_calls_are_counted_again_by_a_broker_that_starts_anew(world: World) -> None:
    run, token = await searching(world)
    for _ in range(5):
        await world.called(token, "search", BAD)
    await world.called(token, "search", {"query": "a"})
    assert await Refusals().count(world.store, TENANT, run) == 5
