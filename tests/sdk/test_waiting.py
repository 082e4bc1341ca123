"""Waiting for a person: `wait()` returns at the answer, and asks no more often than it has to."""

import asyncio
import threading
import time

import httpx2
import pytest

from carnet import ApprovalPending, Broker, Task
from carnet.testing import CarnetBroker

REFUND = Task(touches_pii=False, touches_secrets=False, reversible=False, resource_count=1, tools=["refund"])


class Counting(httpx2.HTTPTransport):
    """Counts the looks at a delegation. hasty: takes the wait away, as a broker does that can't let one more wait."""

    def __init__(self, *, hasty: bool) -> None:
        super().__init__()
        self.looks, self._hasty = 0, hasty

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET" and "/v1/delegations/" in request.url.path:
            self.looks += 1
            if self._hasty:
                request.url = request.url.copy_remove_param("wait")
        return super().handle_request(request)


def test_wait_returns_as_soon_as_a_person_approves(carnet_broker: CarnetBroker) -> None:
    taken = []
    with carnet_broker.run() as run:
        for pause in (0.1, 0.4, 0.9):  # wherever in a request the answer falls
            child = run.spawn("clerk", REFUND, wait=0)
            answered: list[float] = []

            def approve(id: str, pause: float = pause, answered: list[float] = answered) -> None:
                time.sleep(pause)
                carnet_broker.approve(id)
                answered.append(time.monotonic())

            person = threading.Thread(target=approve, args=(child.approval_id,))
            person.start()
            child.wait()
            done = time.monotonic()
            person.join()
            taken.append(done - answered[0])
            assert child.token("desk")
            child.end()
    assert min(taken) < 0.1, taken


def test_the_same_in_an_event_loop(carnet_broker: CarnetBroker) -> None:
    async def main() -> float:
        async with carnet_broker.abroker() as broker, broker.run() as run:
            child = await run.spawn("clerk", REFUND, wait=0)
            waiting = asyncio.create_task(child.wait())
            await asyncio.sleep(0.3)
            await asyncio.to_thread(carnet_broker.approve, str(child.approval_id))
            approved = time.monotonic()
            await waiting
            return time.monotonic() - approved

    assert min(asyncio.run(main()) for _ in range(3)) < 0.1


def test_an_answer_that_was_there_before_is_seen_by_one_look(carnet_broker: CarnetBroker) -> None:
    transport = Counting(hasty=False)
    credential = carnet_broker.credential("support-app")
    with Broker(carnet_broker.url, credential=credential, transport=transport) as broker, broker.run() as run:
        child = run.spawn("clerk", REFUND, wait=0)
        carnet_broker.approve(str(child.approval_id))
        assert child.wait(0).state == "active"
        assert transport.looks == 1


@pytest.mark.parametrize(("hasty", "most"), [(False, 1), (True, 5)])
def test_nobody_hammers_a_broker_that_does_not_let_it_wait(carnet_broker: CarnetBroker, hasty: bool, most: int) -> None:
    transport = Counting(hasty=hasty)
    credential = carnet_broker.credential("support-app")
    with Broker(carnet_broker.url, credential=credential, transport=transport) as broker, broker.run() as run:
        child = run.spawn("clerk", REFUND, wait=0)
        begun = time.monotonic()
        with pytest.raises(ApprovalPending):
            child.wait(0.8)
        assert 0.75 < time.monotonic() - begun < 3
        assert transport.looks <= most + 1
