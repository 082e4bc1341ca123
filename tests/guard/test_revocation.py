"""Revocation reaches a guard: the next call, a running tool, a call between its decision and its dispatch."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from carnet import Guard, Interrupted, Refused
from carnet.guard import dispatch
from carnet.guard.feed import Feed
from carnet.reasons import Reason
from carnet.testing import CarnetBroker


@pytest.fixture
def guard(carnet_broker: CarnetBroker) -> Guard:
    return carnet_broker.bind(Guard("desk"))


def refused_within(seconds: float, call: Callable[[], object]) -> Refused:
    until = time.monotonic() + seconds
    while True:
        try:
            call()
        except Refused as refused:
            return refused
        assert time.monotonic() < until, "still allowed"
        time.sleep(0.005)


@pytest.mark.parametrize(
    "mark", ["dlg:{child}", "dlg:{run}", "agent:reader", "client:support-app", "host:desk", "tenant:main"]
)
def test_every_call_is_refused_within_a_second(carnet_broker: CarnetBroker, guard: Guard, mark: str) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.run() as run, carnet_broker.child(tools=["search"]) as child:
        assert search("a") == "a"
        carnet_broker.revoke(mark.format(child=child.id, run=child._run.id))
        assert refused_within(1.0, lambda: search("a")).reason is Reason.REVOKED
        assert run.id


def test_one_tool_is_taken_from_a_child(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    @guard.tool
    def lookup(ticket: str) -> str:
        return ticket

    with carnet_broker.child(tools=["search", "lookup"]) as child:
        carnet_broker.revoke(f"tool:{child.id}/search")
        assert refused_within(1.0, lambda: search("a")).reason is Reason.REVOKED
        assert lookup("T-1") == "T-1"


def test_a_child_that_its_parent_ended_is_told_so(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]) as child:
        assert search("a") == "a"
        child.end()
        assert refused_within(1.0, lambda: search("a")).reason is Reason.COMPLETED


@pytest.mark.parametrize("tool", ["search", "lookup"])
def test_a_running_async_tool_is_cancelled(carnet_broker: CarnetBroker, guard: Guard, tool: str) -> None:
    entered = asyncio.Event()

    async def slow(**_: object) -> None:
        entered.set()
        await asyncio.sleep(30)

    async def main(child: str) -> None:
        task = asyncio.create_task(guard.acall(tool, {"search": {"query": "a"}, "lookup": {"ticket": "T"}}[tool], slow))
        await entered.wait()
        await asyncio.to_thread(carnet_broker.revoke, f"dlg:{child}")
        began = time.monotonic()
        with pytest.raises(Interrupted) as caught:
            await task
        assert time.monotonic() - began < 1.0
        assert caught.value.reason is Reason.REVOKED
        assert caught.value.call_id is not None

    with carnet_broker.child(tools=[tool]) as child:
        asyncio.run(main(child.id))
    outcomes = [row["outcome"] for row in carnet_broker.records() if row["kind"] == "call_outcome"]
    assert outcomes == ["unknown"]


def test_a_blocking_tool_ends_by_itself_and_its_result_is_kept_back(carnet_broker: CarnetBroker, guard: Guard) -> None:
    with carnet_broker.child(tools=["search"]) as child:

        @guard.tool
        def search(query: str) -> str:
            carnet_broker.revoke(f"dlg:{child.id}")
            time.sleep(0.5)
            return query

        with pytest.raises(Interrupted):
            search("a")
    outcomes = [row["outcome"] for row in carnet_broker.records() if row["kind"] == "call_outcome"]
    assert outcomes == ["done"]


@pytest.mark.parametrize("tool", ["search", "lookup", "refund"])
def test_a_pause_between_decision_and_dispatch_reaches_no_tool(
    carnet_broker: CarnetBroker, guard: Guard, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    known: dict[str, dict[str, Any]] = {
        "search": {"query": "a"},
        "lookup": {"ticket": "T"},
        "refund": {"amount": 5.0, "customer": "c"},
    }
    args = known[tool]
    reached: list[object] = []
    with carnet_broker.child(tools=[tool], level=2 if tool == "refund" else None) as child, carnet_broker.approving():

        def pause(name: str) -> None:
            if name == "before_dispatch":
                carnet_broker.revoke(f"dlg:{child.id}")
                time.sleep(0.4)

        monkeypatch.setattr(dispatch, "hit", pause)
        with pytest.raises(Refused) as caught:
            guard.call(tool, args, lambda **given: reached.append(given))
    assert caught.value.reason is Reason.REVOKED
    assert not reached


def test_a_level_2_call_that_paused_asks_the_broker_again(
    carnet_broker: CarnetBroker, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed is held back here, so only the broker's own answer can know."""
    reached: list[object] = []
    with carnet_broker.child(tools=["refund"], level=2) as child, carnet_broker.approving():
        guard.started()

        def pause(name: str) -> None:
            if name == "before_dispatch":
                monkeypatch.setattr(Feed, "take", lambda *_: False)
                monkeypatch.setattr(Feed, "beat", lambda *_: None)
                carnet_broker.revoke(f"dlg:{child.id}")
                time.sleep(1.2)

        monkeypatch.setattr(dispatch, "hit", pause)
        with pytest.raises(Refused, match="no longer lets the call run"):
            guard.call("refund", {"amount": 5.0, "customer": "c"}, lambda **given: reached.append(given))
    assert not reached


def test_an_expired_token_is_refused_by_the_brokers_time(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]):
        assert search("a") == "a"
        carnet_broker.clock.advance(906)
        assert refused_within(1.0, lambda: search("a")).reason in (Reason.TOKEN_EXPIRED, Reason.EXPIRED)


def test_many_threads_at_once_are_all_refused_after_the_revocation(carnet_broker: CarnetBroker, guard: Guard) -> None:
    from carnet import bind

    @guard.tool
    def search(query: str) -> str:
        return query

    late: list[float] = []
    revoked = threading.Event()

    def work() -> None:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            known = revoked.is_set()
            began = time.monotonic()
            try:
                search("a")
            except Refused:
                if known:
                    return
                continue
            if known:
                late.append(began)

    with carnet_broker.child(tools=["search"]) as child:
        threads = [threading.Thread(target=bind(work)) for _ in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        carnet_broker.revoke(f"dlg:{child.id}")
        at = time.monotonic()
        revoked.set()
        for thread in threads:
            thread.join()
    assert all(began - at < 1.0 for began in late)
