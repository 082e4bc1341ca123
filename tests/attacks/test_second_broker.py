"""Something stands where the broker should be and answers what it likes: nothing runs, and nothing else breaks."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from carnet import CarnetError, Guard, Refused, Unavailable
from carnet.guard.book import read_book
from carnet.guard.feed import Feed, Gap
from carnet.guard.upkeep import Upkeep
from carnet.testing import CarnetBroker
from carnet.wire.ask import Ask
from carnet.wire.channel import Channel
from tests.guard.desk import POLICY

Answer = Callable[[httpx2.Request], httpx2.Response]


def send(answer: Answer) -> dict[str, Any]:
    channel = Channel("https://broker.example", timeout=1.0, transport=httpx2.MockTransport(answer))
    try:
        return channel.send(Ask(method="POST", path="/v1/calls", bearer="secret", json={}))
    finally:
        channel.close()


BODIES = [
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"a":' + b"9" * 5000 + b"}",
    b"<html>",
    b'"' + b"a" * 1_000_000,
]


@pytest.mark.parametrize("status", [200, 400, 503])
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body_that_is_no_document_is_an_error_of_ours(body: bytes, status: int) -> None:
    with pytest.raises(CarnetError):
        send(lambda _: httpx2.Response(status, content=body))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_carries_the_token_nowhere(status: int) -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return httpx2.Response(status, headers={"location": "https://elsewhere.example/v1/calls"})

    with pytest.raises(Refused):
        send(answer)
    assert asked == ["https://broker.example/v1/calls"]


def test_a_body_that_drips_or_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Drip(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                yield b" " * 65536
                time.sleep(0.01)

    began = time.monotonic()
    with pytest.raises(Unavailable, match="slowly"):
        send(lambda _: httpx2.Response(200, stream=Drip()))
    assert time.monotonic() - began < 3
    monkeypatch.setattr("carnet.wire.answer.LONGEST", 1_000_000)
    with pytest.raises(Unavailable, match="too long"):
        send(lambda _: httpx2.Response(200, stream=Drip()))


@pytest.fixture
def document(carnet_broker: CarnetBroker) -> dict[str, Any]:
    guard = carnet_broker.bind(Guard("desk"))
    return guard.started().follower._session.policy()


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "0" * 64},
        {"digest": None},
        {"documents": []},
        {"documents": [{"name": "desk.policy.yaml", "text": POLICY.replace("max: 50}", "max: 51}")}]},
        {"documents": [{"name": "desk.policy.yaml", "text": "{" * 2000}]},
        {"documents": [{"name": "a", "text": POLICY}, {"name": "b", "text": POLICY}]},
        {"host": {}},
    ],
)
def test_a_policy_of_another_digest_is_not_loaded(document: dict[str, Any], change: dict[str, Any]) -> None:
    assert read_book(document).digest == document["digest"]
    with pytest.raises(Unavailable):
        read_book({**document, **change})


@pytest.mark.parametrize("budget", [1e9, float("inf"), float("nan")])
def test_no_answer_widens_the_staleness_budget(document: dict[str, Any], budget: float) -> None:
    host = {**document["host"], "staleness": {"0": budget, "1": budget, "2": budget}}
    budgets = read_book({**document, "host": host}).budgets
    assert (budgets[1], budgets[2]) == (1.0, 1.0)
    assert budgets[0] <= 30.0


def part(seq: int, *marks: str, snapshot: bool = False, epoch: str = "e", **more: Any) -> dict[str, Any]:
    entries = [
        {"seq": seq - len(marks) + 1 + i, "mark": mark, "until": 9, "reason": "r"} for i, mark in enumerate(marks)
    ]
    return {"epoch": epoch, "seq": seq, "snapshot": snapshot, "entries": entries, "policy_digest": "d", **more}


@pytest.mark.parametrize(
    "next",
    [
        part(1),
        part(1, "dlg:a"),
        part(4, "dlg:c"),
        part(3, "dlg:c", epoch="f"),
        {**part(3, "dlg:c"), "seq": 3.0},
        {**part(3, "dlg:c"), "seq": True},
        {**part(3, "dlg:c"), "snapshot": "true", "epoch": "f"},
        {**part(3, "dlg:c"), "entries": None},
        {**part(3), "seq": 10**30},
        {**part(2), "policy_digest": None},
    ],
)
def test_a_feed_that_goes_back_leaps_or_lies_is_whole_no_more(next: dict[str, Any]) -> None:
    feed = Feed()
    feed.take({**part(2, "dlg:a", "dlg:b", snapshot=True), "system": part(0, snapshot=True)})
    states = [feed.whole]
    with pytest.raises(Gap):
        feed.take({**next, "system": part(0)})
    assert [*states, feed.whole] == [True, False]
    assert "dlg:a" in feed.tenant.until, "what was known stays known"


YES = {"decision": "allow", "state": "running", "reason": "policy_allow", "detail": "", "rule": "x"}


@pytest.mark.parametrize(
    "answer",
    [
        YES,
        {**YES, "call_id": None, "policy": {"digest": "d"}},
        {**YES, "call_id": "call_x", "policy": None},
        {**YES, "call_id": "call_x", "policy": {"digest": 1}},
        {**YES, "call_id": "call_x", "policy": {"digest": "d"}, "repeat": True},
        {"decision": "ALLOW", "call_id": "call_x"},
        {"decision": True},
        {"decision": ["allow"]},
        {"decision": "require_approval", "state": "running", "call_id": "call_x"},
        {},
    ],
)
def test_a_yes_that_is_none_runs_nothing(carnet_broker: CarnetBroker, answer: dict[str, Any]) -> None:
    class Lying(httpx2.HTTPTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.path.endswith("/v1/calls"):
                return httpx2.Response(200, json=answer)
            return super().handle_request(request)

    guard = carnet_broker.bind(Guard("desk", transport=Lying()), journal=False)

    @guard.tool
    def search(query: str) -> None:
        raise AssertionError("ran")

    with carnet_broker.child(tools=["search"]), pytest.raises((Refused, Unavailable)):
        search("a")


def test_a_report_that_can_not_be_made_keeps_no_other_back() -> None:
    told: list[str] = []
    upkeep = Upkeep(None)

    def bad() -> None:
        raise KeyError("call_id")

    upkeep.later(bad)
    upkeep.later(lambda: told.append("second"))
    upkeep.once()
    assert told == ["second"]
