"""The feed: polls wait for news, streams beat five times a second, and a revocation is there at once."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.http.world import World


def events(answer: httpx2.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def follow(world: World, guard: str, **query: Any) -> Any:
    headers = {"authorization": f"Bearer {guard}", "accept": "text/event-stream"}
    return world.http.stream("GET", "/v1/feed", headers=headers, params=query)


def revoke(world: World, session: str) -> str:
    run = world.root()["run_id"]
    world.post("/v1/revocations", session, {"mark": f"dlg:{run}", "reason": "test"})
    return f"dlg:{run}"


def test_a_poll_answers_the_snapshot_and_then_what_is_new(world: World) -> None:
    guard, session = world.guard(), world.session()
    start = world.get("/v1/feed", guard).json()
    assert start["snapshot"] is True
    assert start["system"].keys() == {"epoch", "seq", "snapshot", "entries"}
    known = {"epoch": start["epoch"], "after": start["seq"], "system_epoch": start["system"]["epoch"]}
    known["system_after"] = start["system"]["seq"]
    mark = revoke(world, session)
    news = world.get("/v1/feed", guard, **known, wait=0.4).json()
    assert news["snapshot"] is False
    assert [entry["mark"] for entry in news["entries"]] == [mark]
    assert news["entries"][0].keys() == {"seq", "mark", "until", "reason"}
    assert news["mono"] > start["mono"]
    assert news["policy_digest"] == start["policy_digest"]


def test_a_poll_without_news_waits_as_asked_and_no_longer(world: World) -> None:
    guard = world.guard()
    start = world.get("/v1/feed", guard).json()
    known = {"epoch": start["epoch"], "after": start["seq"], "system_epoch": start["system"]["epoch"]}
    began = time.monotonic()
    answer = world.get("/v1/feed", guard, **known, system_after=start["system"]["seq"], wait=0.3).json()
    assert 0.25 < time.monotonic() - began < 1
    assert answer["entries"] == []


@pytest.mark.parametrize("query", [{"wait": 0.5}, {"wait": -1}, {"after": -1}, {"instance": "a b"}, {"more": 1}])
def test_a_poll_out_of_bounds_is_refused(world: World, query: dict[str, Any]) -> None:
    assert world.get("/v1/feed", world.guard(), **query).status_code == 400


def test_a_stream_begins_with_the_document_and_beats_five_times_a_second(world: World) -> None:
    with follow(world, world.guard()) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = events(answer)
        name, first = next(found)
        assert name == "feed"
        began, beats = time.monotonic(), [next(found) for _ in range(5)]
        took = time.monotonic() - began
    assert {name for name, _ in beats} == {"beat"}
    assert beats[0][1].keys() == {"seq", "mono", "policy_digest", "now"}
    monos = [first["mono"], *(beat["mono"] for _, beat in beats)]
    assert monos == sorted(monos)
    assert 0.6 < took < 2.5
    assert abs((monos[-1] - monos[0]) - took) < 0.5


def test_a_revocation_reaches_a_stream_at_once(world: World) -> None:
    session = world.session()
    with follow(world, world.guard()) as answer:
        found = events(answer)
        next(found)
        began = time.monotonic()
        mark = revoke(world, session)
        news = next(body for name, body in found if name == "feed")
        assert time.monotonic() - began < 0.5
    assert mark in [entry["mark"] for entry in news["entries"]]


def test_streams_of_several_guards_and_positions_each_miss_nothing(world: World) -> None:
    session = world.session()
    start = world.get("/v1/feed", world.guard()).json()
    old = {"epoch": start["epoch"], "after": start["seq"], "system_epoch": start["system"]["epoch"]}
    old["system_after"] = start["system"]["seq"]
    before = revoke(world, session)
    with follow(world, world.guard()) as one, follow(world, world.guard("pay-server"), **old) as two:
        first, second = events(one), events(two)
        assert next(first)[1]["snapshot"] is True
        assert [entry["mark"] for entry in next(second)[1]["entries"]] == [before]
        after = revoke(world, session)
        for found in (first, second):
            news = next(body for name, body in found if name == "feed" and body["entries"])
            assert [entry["mark"] for entry in news["entries"]] == [after]


def test_a_tenant_reads_its_own_feed_only(world: World) -> None:
    mark = revoke(world, world.session())
    other = world.get("/v1/feed", world.guard("other-server")).json()
    assert mark not in [entry["mark"] for entry in other["entries"]]


@pytest.mark.parametrize("token", ["root", "session"])
def test_only_guards_follow(world: World, token: str) -> None:
    bearer = world.root()["access_token"] if token == "root" else world.session()
    assert world.get("/v1/feed", bearer).status_code in (401, 403)
