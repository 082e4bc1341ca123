"""The connection to the broker: what is tried again, for how long, and what a fork leaves alone."""

import asyncio
import os
import time

import httpx2
import pytest

from carnet import Unavailable
from carnet.wire.achannel import AsyncChannel
from carnet.wire.ask import Ask
from carnet.wire.channel import Channel


class Flaky:
    """A broker that fails so many times, by not answering or by a 503, and counts."""

    def __init__(self, failures: int, *, status: int | None = None) -> None:
        self.failures, self.status, self.asked = failures, status, 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        if self.asked > self.failures:
            return httpx2.Response(200, json={"asked": self.asked})
        if self.status is None:
            raise httpx2.ReadTimeout("lost", request=request)
        return httpx2.Response(self.status, json={"reason": "unavailable"}, headers={"retry-after": "0"})


def send(flaky: Flaky, ask: Ask, timeout: float = 5.0) -> dict[str, object]:
    channel = Channel("https://broker.example", timeout=timeout, transport=httpx2.MockTransport(flaky))
    try:
        return channel.send(ask)
    finally:
        channel.close()


def asend(flaky: Flaky, ask: Ask) -> dict[str, object]:
    async def main() -> dict[str, object]:
        channel = AsyncChannel("https://broker.example", timeout=5.0, transport=httpx2.MockTransport(flaky))
        try:
            return await channel.send(ask)
        finally:
            await channel.close()

    return asyncio.run(main())


@pytest.mark.parametrize("status", [None, 503])
@pytest.mark.parametrize("send", [send, asend])
def test_a_repeatable_request_is_tried_again(send: object, status: int | None) -> None:
    flaky = Flaky(2, status=status)
    assert callable(send)
    assert send(flaky, Ask(method="GET", path="/x", repeatable=True)) == {"asked": 3}


@pytest.mark.parametrize("send", [send, asend])
def test_what_could_act_twice_is_sent_once(send: object) -> None:
    flaky = Flaky(1)
    assert callable(send)
    with pytest.raises(Unavailable):
        send(flaky, Ask(method="POST", path="/x"))
    assert flaky.asked == 1


def test_trying_again_ends_within_the_time_of_one_request() -> None:
    flaky = Flaky(99)
    began = time.monotonic()
    with pytest.raises(Unavailable):
        send(flaky, Ask(method="GET", path="/x", repeatable=True), timeout=0.05)
    assert time.monotonic() - began < 0.5
    assert flaky.asked < 4


def test_a_forked_process_opens_connections_of_its_own() -> None:
    channel = Channel("https://broker.example", timeout=1.0, transport=httpx2.MockTransport(Flaky(0)))
    mine = channel.client()
    child = os.fork()
    if child == 0:
        os._exit(0 if channel.client() is not mine else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert channel.client() is mine
    channel.close()
