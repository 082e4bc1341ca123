"""Async tools and people: waiting does not block the loop, and a caller that gives up gets nothing run."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from carnet import ApprovalPending, Guard, Refused, bind
from carnet.reasons import Reason
from carnet.testing import CarnetBroker


@pytest.fixture
def guard(carnet_broker: CarnetBroker) -> Guard:
    return carnet_broker.bind(Guard("desk"))


def test_an_async_call_waits_without_blocking_the_loop(carnet_broker: CarnetBroker, guard: Guard) -> None:
    ticks = 0

    @guard.tool
    async def refund(amount: float, customer: str) -> str:
        return "paid"

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    async def main() -> None:
        ticking = asyncio.create_task(tick())
        call = asyncio.create_task(refund(5.0, "c1"))
        while not carnet_broker.pending():
            await asyncio.sleep(0.02)
        before = ticks
        await asyncio.sleep(0.3)
        assert ticks - before > 10
        await asyncio.to_thread(carnet_broker.approve, carnet_broker.pending()[0])
        assert await call == "paid"
        ticking.cancel()

    with carnet_broker.child(tools=["refund"], level=2):
        asyncio.run(main())


def test_a_caller_that_gives_up_waiting_gets_nothing_run(carnet_broker: CarnetBroker, guard: Guard) -> None:
    reached: list[float] = []

    @guard.tool
    async def refund(amount: float, customer: str) -> None:
        reached.append(amount)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await refund(5.0, "c1")
        await asyncio.to_thread(carnet_broker.approve, carnet_broker.pending()[0])
        await asyncio.sleep(0.5)

    with carnet_broker.child(tools=["refund"], level=2):
        asyncio.run(main())
    assert not reached


def test_max_wait_bounds_the_waiting(carnet_broker: CarnetBroker) -> None:
    guard = carnet_broker.bind(Guard("desk", max_wait=0.3))

    @guard.tool
    async def refund(amount: float, customer: str) -> None:
        raise AssertionError("reached")

    async def main() -> None:
        began = time.monotonic()
        with pytest.raises(ApprovalPending):
            await refund(5.0, "c1")
        assert 0.2 < time.monotonic() - began < 3

    with carnet_broker.child(tools=["refund"], level=2):
        asyncio.run(main())


def test_an_approval_that_is_withdrawn_before_the_dispatch_ends_the_call(
    carnet_broker: CarnetBroker, guard: Guard
) -> None:
    @guard.tool
    async def refund(amount: float, customer: str) -> None:
        raise AssertionError("reached")

    async def main() -> Reason:
        call = asyncio.create_task(refund(5.0, "c1"))
        while not carnet_broker.pending():
            await asyncio.sleep(0.02)
        await asyncio.to_thread(carnet_broker.withdraw, carnet_broker.pending()[0])
        with pytest.raises(Refused) as caught:
            await call
        return caught.value.reason

    with carnet_broker.child(tools=["refund"], level=2):
        assert asyncio.run(main()) in (Reason.APPROVAL_WITHDRAWN, Reason.REVOKED)


def test_a_call_goes_on_as_soon_as_a_person_approves(carnet_broker: CarnetBroker, guard: Guard) -> None:
    done: list[float] = []

    @guard.tool
    def refund(amount: float, customer: str) -> None:
        done.append(time.monotonic())

    taken = []
    for _ in range(3):
        with carnet_broker.child(tools=["refund"], level=2):
            call = threading.Thread(target=bind(refund), args=(5.0, "c1"))
            call.start()
            while not carnet_broker.pending():
                time.sleep(0.01)
            time.sleep(0.2)
            carnet_broker.approve(carnet_broker.pending()[0])
            approved = time.monotonic()
            call.join(10)
            taken.append(done.pop() - approved)
    assert min(taken) < 0.1, taken


def test_a_call_that_waits_hears_that_its_child_was_revoked(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def refund(amount: float, customer: str) -> None:
        raise AssertionError("must not run")

    with carnet_broker.child(tools=["refund"], level=2) as child, ThreadPoolExecutor() as pool:
        call = pool.submit(bind(refund), 5.0, "c1")
        while not carnet_broker.pending():
            time.sleep(0.01)
        carnet_broker.revoke(f"dlg:{child.id}")
        with pytest.raises(Refused):
            call.result(5)


def test_the_yes_after_a_caller_gave_up_is_for_the_next(carnet_broker: CarnetBroker, guard: Guard) -> None:
    ran: list[float] = []

    @guard.tool
    async def refund(amount: float, customer: str) -> None:
        ran.append(amount)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await refund(5.0, "c1")
        await asyncio.to_thread(carnet_broker.approve, carnet_broker.pending()[0])
        await asyncio.sleep(0.5)  # the abandoned request hears of it, and must leave it
        assert ran == []
        await refund(5.0, "c1")

    with carnet_broker.child(tools=["refund"], level=2):
        asyncio.run(main())
    assert ran == [5.0]
