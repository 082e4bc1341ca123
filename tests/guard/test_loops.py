"""Async tools on each event loop: what runs, what is cancelled and by whom, what is on record."""

import time
from typing import Any

import anyio
import anyio.to_thread
import pytest

from carnet import Guard, Interrupted, Refused, Task
from carnet.reasons import Reason
from carnet.testing import CarnetBroker

ARGS: dict[str, dict[str, Any]] = {"search": {"query": "a"}, "lookup": {"ticket": "T"}}
LANES = pytest.mark.parametrize("tool", ["search", "lookup"])  # one in the local lane, one that the broker decides


@pytest.fixture(params=["asyncio", "trio"])
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def guard(carnet_broker: CarnetBroker) -> Guard:
    return carnet_broker.bind(Guard("desk"))


def outcomes(broker: CarnetBroker) -> list[str]:
    return [row["outcome"] for row in broker.records() if row["kind"] == "call_outcome"]


@LANES
def test_a_tool_runs_and_its_end_is_on_record(carnet_broker: CarnetBroker, guard: Guard, loop: str, tool: str) -> None:
    async def quick(**given: object) -> object:
        await anyio.sleep(0)
        return given

    async def main() -> None:
        assert await guard.acall(tool, ARGS[tool], quick) == ARGS[tool]
        with pytest.raises(Refused):
            await guard.acall("refund", {"amount": 1.0, "customer": "c"}, quick)
        assert (await guard.apreview(tool, ARGS[tool])).effect == "allow"

    with carnet_broker.child(tools=[tool]):
        anyio.run(main, backend=loop)
    assert outcomes(carnet_broker) == ["done"]


@LANES
def test_many_at_once(carnet_broker: CarnetBroker, guard: Guard, loop: str, tool: str) -> None:
    ran: list[int] = []

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for n in range(20):

                async def effect(n: int = n, **_: object) -> None:
                    ran.append(n)

                group.start_soon(guard.acall, tool, ARGS[tool], effect)

    with carnet_broker.child(tools=[tool]):
        anyio.run(main, backend=loop)
    assert sorted(ran) == list(range(20))
    assert outcomes(carnet_broker) == ["done"] * 20


@LANES
def test_the_callers_cancellation_reaches_the_tool(
    carnet_broker: CarnetBroker, guard: Guard, loop: str, tool: str
) -> None:
    ended: list[str] = []

    async def slow(**_: object) -> None:
        try:
            await anyio.sleep(30)
        finally:
            ended.append("cancelled")

    async def main() -> None:
        with anyio.move_on_after(0.5) as scope:
            await guard.acall(tool, ARGS[tool], slow)
        assert scope.cancelled_caught

    with carnet_broker.child(tools=[tool]):
        anyio.run(main, backend=loop)
    assert ended == ["cancelled"]
    assert outcomes(carnet_broker) == ["unknown"]


@LANES
def test_a_revocation_cancels_the_tool_and_nothing_else(
    carnet_broker: CarnetBroker, guard: Guard, loop: str, tool: str
) -> None:
    async def main(child: str) -> None:
        entered, others = anyio.Event(), anyio.Event()

        async def slow(**_: object) -> None:
            entered.set()
            await anyio.sleep(30)

        async def beside() -> None:
            await anyio.sleep(0.5)
            others.set()

        async def revoke() -> None:
            await entered.wait()
            await anyio.to_thread.run_sync(carnet_broker.revoke, f"dlg:{child}")

        async with anyio.create_task_group() as group:
            group.start_soon(beside)
            group.start_soon(revoke)
            with pytest.raises(Interrupted) as caught:
                await guard.acall(tool, ARGS[tool], slow)
        assert caught.value.reason is Reason.REVOKED
        assert others.is_set()

    with carnet_broker.child(tools=[tool]) as child:
        begun = time.monotonic()
        anyio.run(main, child.id, backend=loop)
        assert time.monotonic() - begun < 5
    assert outcomes(carnet_broker) == ["unknown"]


def test_a_call_waits_for_a_person_without_holding_up_the_loop(
    carnet_broker: CarnetBroker, guard: Guard, loop: str
) -> None:
    @guard.tool
    async def refund(amount: float, customer: str) -> str:
        return "paid"

    paid: list[str] = []

    async def main() -> None:
        async def pay() -> None:
            paid.append(await refund(5.0, "c1"))

        async with anyio.create_task_group() as group:
            group.start_soon(pay)
            while not carnet_broker.pending():
                await anyio.sleep(0.02)
            await anyio.to_thread.run_sync(carnet_broker.approve, carnet_broker.pending()[0])

    with carnet_broker.child(tools=["refund"], level=2):
        anyio.run(main, backend=loop)
    assert paid == ["paid"]


def test_a_parent_spawns_waits_and_leaves(carnet_broker: CarnetBroker, guard: Guard, loop: str) -> None:
    task = Task(touches_pii=False, touches_secrets=False, reversible=True, resource_count=1, tools=["search"])

    @guard.tool
    async def search(query: str) -> str:
        await anyio.sleep(30 if query == "slow" else 0)
        return query

    async def main() -> None:
        async with carnet_broker.abroker() as broker, broker.run() as run:
            async with await run.spawn("reader", task) as child:
                assert await search("a") == "a"
            assert child.state == "ended"
            with anyio.move_on_after(0.3):
                async with await run.spawn("reader", task) as given_up:
                    await search("slow")
            assert given_up.state == "ended"

    anyio.run(main, backend=loop)
