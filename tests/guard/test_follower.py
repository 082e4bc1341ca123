"""The guard keeps up with its broker: policy changes, lost links, polls, forks, a bearer that ends."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carnet import ConfigError, Guard, Refused
from carnet.guard import dispatch, follower, loading
from carnet.guard.stream import NoStream, events
from carnet.reasons import Reason
from carnet.testing import CarnetBroker
from tests.guard.desk import POLICY


@pytest.fixture
def guard(carnet_broker: CarnetBroker) -> Guard:
    return carnet_broker.bind(Guard("desk"))


def eventually(true: Callable[[], bool], seconds: float = 3.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "never came true"
        time.sleep(0.01)


def put_policy(broker: CarnetBroker, text: str) -> None:
    """Another policy in force, as a reload of the configuration does it."""
    from dataclasses import replace

    from carnet_policy import loads

    context = broker._server.broker.context
    registry = context.registries[broker.tenant]
    changed = replace(registry, policy=loads([("desk.policy.yaml", text)]))
    context.registries = {**context.registries, broker.tenant: changed}
    broker.do(broker.service.activate_policy(broker.tenant))


@pytest.fixture
def policy(carnet_broker: CarnetBroker) -> Any:
    yield lambda text: put_policy(carnet_broker, text)
    put_policy(carnet_broker, POLICY)


def test_a_new_policy_is_in_force_within_a_second(carnet_broker: CarnetBroker, guard: Guard, policy: Any) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]):
        assert search("a" * 100)
        policy(POLICY.replace("max_length: 200", "max_length: 50").replace("version: 1", "version: 2"))
        began = time.monotonic()

        def denied() -> bool:
            try:
                search("a" * 100)
            except Refused as refused:
                return refused.reason is Reason.NO_MATCH
            return False

        eventually(denied)
        assert time.monotonic() - began < 1.0
        assert search("a") == "a"


@pytest.mark.parametrize(("narrower", "allowed"), [("max_length: 50", False), ("max_length: 199", True)])
def test_a_policy_that_changes_between_decision_and_dispatch_decides_again(
    carnet_broker: CarnetBroker,
    guard: Guard,
    policy: Any,
    monkeypatch: pytest.MonkeyPatch,
    narrower: str,
    allowed: bool,
) -> None:
    reached: list[str] = []

    def pause(name: str) -> None:
        if name == "before_dispatch":
            before = guard.started().state.feed.digest
            policy(POLICY.replace("max_length: 200", narrower).replace("version: 1", "version: 3"))
            eventually(lambda: guard.started().state.feed.digest != before)

    with carnet_broker.child(tools=["search"]):
        monkeypatch.setattr(dispatch, "hit", pause)
        if allowed:
            guard.call("search", {"query": "a" * 100}, lambda query: reached.append(query))
        else:
            with pytest.raises(Refused) as caught:
                guard.call("search", {"query": "a" * 100}, lambda query: reached.append(query))
            assert caught.value.reason is Reason.POLICY_CHANGED
    assert bool(reached) is allowed


def test_a_tool_that_a_rule_now_asks_about_leaves_the_local_lane(
    carnet_broker: CarnetBroker, guard: Guard, policy: Any
) -> None:
    book = guard.started().state.book
    assert book is not None
    assert book.local == {"search"}
    policy(POLICY.replace("history:", "history:\n  - {match: {tool: search}, max: 1, decision: deny}"))

    def left() -> bool:
        now = guard.started().state.book
        return now is not None and not now.local

    eventually(left)
    with carnet_broker.child(tools=["search"]):
        guard.call("search", {"query": "a"}, lambda query: query)
        with pytest.raises(Refused) as caught:
            guard.call("search", {"query": "a"}, lambda query: query)
    assert caught.value.reason in (Reason.HISTORY_LIMIT, Reason.HISTORY_RECENT)


def test_without_a_stream_the_guard_polls(
    carnet_broker: CarnetBroker, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_stream(*_: object) -> Any:
        raise NoStream

    monkeypatch.setattr(follower, "events", no_stream)

    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]) as child:
        assert search("a") == "a"
        for _ in range(3):
            time.sleep(0.3)
            assert search("a") == "a"
        carnet_broker.revoke(f"dlg:{child.id}")

        def out() -> bool:
            try:
                search("a")
            except Refused as refused:
                return refused.reason is Reason.REVOKED
            return False

        eventually(out, 1.0)


def test_a_guard_that_lost_its_feed_refuses_and_comes_back(
    carnet_broker: CarnetBroker, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from carnet.errors import Unavailable

    cut = threading.Event()
    real = events

    def cuttable(session: Any, position: Any) -> Any:
        for event in real(session, position):
            if cut.is_set():
                raise Unavailable("the link is cut")
            yield event

    monkeypatch.setattr(follower, "events", cuttable)

    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]):
        assert search("a") == "a"
        cut.set()

        def stale() -> bool:
            try:
                search("a")
            except Refused as refused:
                return refused.reason is Reason.STALE
            return False

        eventually(stale, 4.0)
        cut.clear()
        eventually(lambda: not stale(), 4.0)
        assert search("a") == "a"


def test_a_broken_feed_reloads_the_snapshot(carnet_broker: CarnetBroker, guard: Guard) -> None:
    works = guard.started()
    carnet_broker.revoke("agent:writer")
    eventually(lambda: "agent:writer" in works.state.feed.tenant.until)
    works.state.feed.tenant.seq += 5
    eventually(lambda: works.state.feed.tenant.seq == 1 and works.state.lacking(1) is None)
    assert "agent:writer" in works.state.feed.tenant.until


def test_the_broker_hears_what_was_applied(carnet_broker: CarnetBroker, guard: Guard) -> None:
    guard.started()
    carnet_broker.revoke("agent:writer")
    person = carnet_broker._person()

    def applied() -> bool:
        listing = carnet_broker.do(carnet_broker.service.guards(person))
        return bool(listing.guards) and all(row.lag == 0 for row in listing.guards) and listing.seq == 1

    eventually(applied)


def test_a_guard_token_that_ended_is_fetched_anew(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def lookup(ticket: str) -> str:
        return ticket

    with carnet_broker.child(tools=["lookup"]):
        assert lookup("T") == "T"
    carnet_broker.clock.advance(1000)
    with carnet_broker.child(tools=["lookup"]):
        assert lookup("T") == "T"


def test_a_guard_of_another_host_is_a_config_error_in_words(carnet_broker: CarnetBroker) -> None:
    guard = Guard("books", url=carnet_broker.url, credential=carnet_broker.credential("desk-server"))
    try:
        with carnet_broker.child(tools=["search"]), pytest.raises(ConfigError, match="that of host desk"):
            guard.call("search", {"query": "a"}, lambda query: query)
    finally:
        guard.close()


def test_a_development_issuer_is_accepted_on_its_own_loopback_only() -> None:
    assert loading._same_loopback("http://127.0.0.1:8420/dev", "http://127.0.0.1:8420")
    assert not loading._same_loopback("http://127.0.0.1:8420/dev", "http://127.0.0.1:8421")
    assert not loading._same_loopback("http://broker.example/dev", "http://broker.example")


def test_a_forked_child_has_a_guard_of_its_own(carnet_broker: CarnetBroker, guard: Guard, tmp_path: Path) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]):
        assert search("parent") == "parent"
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if search("child") == "child" else 2
                guard.close()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert search("parent again") == "parent again"
    intents = [row for row in carnet_broker.records(tool="search") if row["kind"] == "call_intent"]
    assert len(intents) == 3
    assert len({row["facts"]["journal"] for row in intents}) == 2


def test_a_guard_names_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CARNET_URL", "CARNET_CLIENT_ID", "CARNET_HOST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="CARNET_URL"):
        Guard("desk").ready()
    with pytest.raises(ConfigError, match="name its host"):
        Guard(url="http://127.0.0.1:9").ready()
