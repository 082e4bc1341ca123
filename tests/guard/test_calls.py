"""Calls through the guard against a real broker: both lanes, approvals, refusals, arguments that can't be changed."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from carnet import ApprovalPending, Guard, Refused, Task, bind, current_child
from carnet.reasons import Reason
from carnet.testing import CarnetBroker


@pytest.fixture
def guard(carnet_broker: CarnetBroker) -> Guard:
    return carnet_broker.bind(Guard("desk"))


def test_a_read_tool_runs_in_the_local_lane_and_is_on_record(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str, limit: int = 5) -> str:
        return f"{query} {limit}"

    with carnet_broker.child(tools=["search"], level=0):
        assert search("late parcels") == "late parcels 5"
        with pytest.raises(Refused) as caught:
            search("x" * 201)
    assert caught.value.reason is Reason.NO_MATCH
    assert caught.value.as_dict()["decision"] == "deny"
    assert caught.value.call_id is not None
    rows = carnet_broker.records(tool="search")
    by_kind = {row["kind"]: row for row in rows}
    assert by_kind["call_intent"]["decision"] == "allow"
    assert by_kind["call_decided"]["decision"] == "deny"
    assert "late parcels" not in str(rows)


def test_a_tool_with_a_resource_goes_through_the_broker(carnet_broker: CarnetBroker, guard: Guard) -> None:
    seen: list[str] = []

    @guard.tool
    def lookup(ticket: str) -> str:
        seen.append(ticket)
        return f"about {ticket}"

    with carnet_broker.child(tools=["lookup"], level=0):
        assert lookup(ticket="T-1") == "about T-1"
    rows = carnet_broker.records(tool="lookup")
    assert next(row["kind"] for row in rows if row["kind"].startswith("call")) == "call_decided"
    assert seen == ["T-1"]


def test_without_a_journal_every_call_is_the_brokers(carnet_broker: CarnetBroker) -> None:
    guard = carnet_broker.bind(Guard("desk"), journal=False)

    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]):
        assert search("a") == "a"
    assert {row["kind"] for row in carnet_broker.records(tool="search")} >= {"call_decided"}


def test_no_child_no_call(guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        raise AssertionError("reached")

    with pytest.raises(Refused) as caught:
        search("a")
    assert caught.value.reason is Reason.TOKEN_MISSING


def test_a_tool_outside_the_scope_is_refused_and_on_record(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def refund(amount: float, customer: str) -> None:
        raise AssertionError("reached")

    with carnet_broker.child(tools=["search"]), pytest.raises(Refused) as caught:
        refund(5.0, "c")
    assert caught.value.reason is Reason.SCOPE_MISSING
    assert carnet_broker.records(tool="refund", reason="scope_missing")


def test_a_person_approves_an_exact_call(carnet_broker: CarnetBroker, guard: Guard) -> None:
    paid: list[tuple[float, str]] = []

    @guard.tool
    def refund(amount: float, customer: str) -> str:
        paid.append((amount, customer))
        return "paid"

    with carnet_broker.approving(), carnet_broker.child(tools=["refund"], level=2):
        assert refund(5.0, customer="c1") == "paid"
        with pytest.raises(Refused) as caught:
            refund(6.0, customer="c2")
    assert caught.value.reason is Reason.HISTORY_LIMIT
    assert paid == [(5.0, "c1")]


def test_nobody_waits_behind_max_wait_0_and_the_same_call_goes_on(carnet_broker: CarnetBroker) -> None:
    guard = carnet_broker.bind(Guard("desk", max_wait=0))

    @guard.tool
    def refund(amount: float, customer: str) -> str:
        return "paid"

    with carnet_broker.child(tools=["refund"], level=2):
        with pytest.raises(ApprovalPending) as first:
            refund(5.0, "c1")
        with pytest.raises(ApprovalPending) as second:
            refund(5.0, "c1")
        assert first.value.approval_id == second.value.approval_id
        assert first.value.as_dict()["approval_id"] == first.value.approval_id
        assert first.value.as_dict()["decision"] == "require_approval"
        assert first.value.approval_id is not None
        carnet_broker.approve(first.value.approval_id)
        assert refund(5.0, "c1") == "paid"


def test_a_persons_no_is_told_apart_from_silence(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def refund(amount: float, customer: str) -> None:
        raise AssertionError("reached")

    def answer(deny: bool) -> None:
        while not carnet_broker.pending():
            time.sleep(0.01)
        if deny:
            carnet_broker.deny(carnet_broker.pending()[0])
        else:
            carnet_broker.clock.advance(61)

    for deny, reason in ((True, Reason.APPROVAL_DENIED), (False, Reason.APPROVAL_TIMED_OUT)):
        with carnet_broker.child(tools=["refund"], level=2):
            thread = threading.Thread(target=answer, args=(deny,))
            thread.start()
            with pytest.raises(Refused) as caught:
                refund(5.0, "c1")
            thread.join()
            assert caught.value.reason is reason


def test_an_async_tool_and_the_callers_cancellation(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    async def search(query: str) -> str:
        await asyncio.sleep(0 if query == "quick" else 30)
        return query

    async def main() -> None:
        assert await search("quick") == "quick"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await search("slow")

    with carnet_broker.child(tools=["search"]):
        asyncio.run(main())
    outcomes = [row["outcome"] for row in carnet_broker.records() if row["kind"] == "call_outcome"]
    assert outcomes == ["done", "unknown"]


def test_what_was_checked_is_what_runs(carnet_broker: CarnetBroker, guard: Guard) -> None:
    given: dict[str, Any] = {}

    def mutate() -> None:
        given["args"]["query"] = "x" * 999

    got: list[Any] = []

    @guard.tool(name="search")
    def first(query: str, limit: int = 5) -> None:
        got.append(query)

    class Sneaky(str):
        __slots__ = ()

    with carnet_broker.child(tools=["search"]):
        with pytest.raises(Refused) as caught:
            first(Sneaky("a"))
        assert caught.value.reason is Reason.ARGUMENTS_INVALID
        given["args"] = {"query": "a"}

        def tool(**args: Any) -> None:
            mutate()
            got.append(args["query"])

        guard.call("search", given["args"], tool)
    assert got == ["a"]


def test_a_failing_tool_raises_its_own_error_and_is_recorded_as_failed(
    carnet_broker: CarnetBroker, guard: Guard
) -> None:
    @guard.tool
    def lookup(ticket: str) -> None:
        raise ZeroDivisionError(ticket)

    with carnet_broker.child(tools=["lookup"]), pytest.raises(ZeroDivisionError):
        lookup("T-1")
    rows = [row for row in carnet_broker.records() if row["kind"] == "call_outcome"]
    assert [row["outcome"] for row in rows] == ["failed"]
    assert "T-1" not in str([row["detail"] for row in rows])


def test_preview_tells_and_reserves_nothing(carnet_broker: CarnetBroker, guard: Guard) -> None:
    with carnet_broker.child(tools=["refund"], level=2):
        assert guard.preview("refund", {"amount": 5.0, "customer": "c"}).effect == "require_approval"
        assert guard.preview("refund", {"amount": 60.0, "customer": "c"}).effect == "deny"
        assert asyncio.run(guard.apreview("refund", {"amount": 60.0, "customer": "c"})).effect == "deny"
    assert not carnet_broker.pending()


def test_threads_need_bind_and_asyncio_threads_do_not(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]) as child, ThreadPoolExecutor(2) as pool:
        assert current_child() is child
        with pytest.raises(Refused) as caught:
            pool.submit(search, "a").result()
        assert caught.value.reason is Reason.TOKEN_MISSING
        assert list(pool.map(bind(search), ["a", "b", "c"])) == ["a", "b", "c"]

        async def threaded() -> str:
            return await asyncio.to_thread(search, "d")

        assert asyncio.run(threaded()) == "d"


def test_a_pending_child_calls_nothing(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def refund(amount: float, customer: str) -> None:
        raise AssertionError("reached")

    facts = Task(touches_pii=False, touches_secrets=False, reversible=False, resource_count=1, tools=("refund",))
    with carnet_broker.run() as run, run.spawn("clerk", facts, wait=0), pytest.raises(Refused) as caught:
        refund(5.0, "c1")
    assert caught.value.reason is Reason.TOKEN_MISSING


def test_a_function_is_guarded_once(guard: Guard) -> None:
    def search(query: str) -> str:
        return query

    guarded = guard.tool(search)
    assert guard.tool(guarded) is guarded
    assert guard.wrap(guarded) is guarded
    assert not hasattr(guarded, "__wrapped__")
    assert guarded.__name__ == "search"


def test_a_guard_without_a_client_speaks_with_the_childs_token(carnet_broker: CarnetBroker) -> None:
    guard = Guard("desk", url=carnet_broker.url)
    guard.placed(_with_clock(guard, carnet_broker))

    @guard.tool
    def lookup(ticket: str) -> str:
        return ticket

    try:
        assert not guard.ready()
        with carnet_broker.child(tools=["lookup"]):
            assert lookup("T-1") == "T-1"
        with carnet_broker.child(tools=["lookup"]):
            assert lookup("T-2") == "T-2"
    finally:
        guard.close()


def _with_clock(guard: Guard, broker: CarnetBroker) -> Any:
    from dataclasses import replace

    from carnet.testing.clock import GuardClock

    return replace(guard.setup, clock=GuardClock(broker.clock.now))


def test_a_guard_that_hears_nothing_refuses_everything(carnet_broker: CarnetBroker) -> None:
    guard = Guard("desk", url="http://127.0.0.1:9", credential=carnet_broker.credential("desk-server"))

    @guard.tool
    def search(query: str) -> None:
        raise AssertionError("reached")

    try:
        with carnet_broker.child(tools=["search"]), pytest.raises(Refused) as caught:
            search("a")
        assert caught.value.reason is Reason.NOT_READY
        assert "127.0.0.1:9" in caught.value.detail
    finally:
        guard.close()
