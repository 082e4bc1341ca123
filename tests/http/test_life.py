"""The server's life: it stops in order while others wait, follows changed files, and admits broken upkeep."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from carnet_broker.composition import Broker, compose
from carnet_broker.config.reload import watch
from carnet_broker.keys import KeyRing
from carnet_broker.runner import BrokerServer
from carnet_broker.store.base import Unavailable
from carnet_broker.store.sqlite import SqliteStore
from carnet_broker.supervisor import Chore, Supervisor
from tests.http.world import World, limits, make_broker, write_config


@pytest.fixture
def own(tmp_path: Path) -> Iterator[BrokerServer]:
    made = BrokerServer(lambda issuer: make_broker(tmp_path, issuer), limits=limits())
    yield made
    made.stop()


def test_waits_and_streams_end_at_once_when_the_server_stops(own: BrokerServer) -> None:
    seen: dict[str, Any] = {}
    with own, World(own.url) as world:
        root, guard = world.root()["access_token"], world.guard()
        child = world.spawn(root).json()["id"]

        def wait() -> None:
            seen["wait"] = world.get(f"/v1/delegations/{child}", root, wait=20)

        def follow() -> None:
            headers = {"authorization": f"Bearer {guard}", "accept": "text/event-stream"}
            with httpx2.stream("GET", f"{own.url}/v1/feed", headers=headers, timeout=20) as answer:
                seen["stream"] = answer.read()

        threads = [threading.Thread(target=wait), threading.Thread(target=follow)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        began = time.monotonic()
        own.stop()
        for thread in threads:
            thread.join(10)
    assert time.monotonic() - began < 4
    assert seen["wait"].json()["state"] == "active"
    assert seen["stream"].startswith(b"event: feed")


def test_stopping_twice_and_using_a_stopped_server_is_plain(own: BrokerServer) -> None:
    own.start()
    own.stop()
    own.stop()
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"{own.url}/healthz")


def test_a_port_that_is_taken_is_told_at_once(own: BrokerServer, tmp_path: Path) -> None:
    port = int(own.url.rpartition(":")[2])
    with own, pytest.raises(OSError, match="in use"):
        BrokerServer(lambda issuer: make_broker(tmp_path, issuer), where=("127.0.0.1", port))


def test_what_keeps_a_broker_from_starting_is_raised_where_it_was_started() -> None:
    def broken(_: str) -> Broker:
        raise Unavailable("the store is away")

    with pytest.raises(Unavailable, match="away"):
        BrokerServer(broken).start()


def test_only_loopback_is_served_without_tls() -> None:
    with pytest.raises(ValueError, match="not a loopback"):
        BrokerServer(lambda issuer: make_broker(Path(), issuer), where=("0.0.0.0", 0))


def test_an_issuer_with_a_path_is_served_below_it_and_at_the_root(tmp_path: Path) -> None:
    with BrokerServer(lambda issuer: make_broker(tmp_path, issuer), path="/dev") as server, World(server.url) as world:
        assert world.root()["token_type"] == "Bearer"
        base = server.url.removesuffix("/dev")
        for path in ("/.well-known/oauth-authorization-server/dev", "/dev/.well-known/openid-configuration"):
            document = httpx2.get(base + path).json()
            assert document["issuer"] == server.url
            assert httpx2.get(document["jwks_uri"]).status_code == 200
        assert httpx2.get(f"{base}/healthz").status_code == 200


def test_a_changed_configuration_comes_into_force_and_a_broken_one_does_not(tmp_path: Path) -> None:
    write_config(tmp_path)

    def make(issuer: str) -> Broker:
        watched = watch(tmp_path)
        store = SqliteStore.open(tmp_path / "carnet.db")
        keys = KeyRing.ephemeral()
        return compose(store=store, keys=keys, registries=watched.good.registries, issuer=issuer, watched=watched)

    with BrokerServer(make) as server, World(server.url) as world:
        policy = tmp_path / "main.policy.yaml"
        before = world.get("/v1/policy", world.guard()).json()["digest"]
        policy.write_text(policy.read_text().replace("max_length: 200", "max_length: 100"))
        after = _until_other(world, before)
        assert after != before
        policy.write_text(policy.read_text().replace("decision: allow", "decision: permit"))
        assert _until(lambda: "configuration" in server.broker.problems)
        ready = httpx2.get(f"{server.url}/readyz")
        assert (ready.status_code, len(ready.json()["notices"])) == (200, 1)
        assert "permit" not in ready.text
        assert world.get("/v1/policy", world.guard()).json()["digest"] == after


def test_a_reload_never_gives_a_host_the_issuer_as_its_audience(tmp_path: Path) -> None:
    write_config(tmp_path)

    def make(issuer: str) -> Broker:
        watched = watch(tmp_path)
        store = SqliteStore.open(tmp_path / "carnet.db")
        registries = watched.good.registries
        return compose(store=store, keys=KeyRing.ephemeral(), registries=registries, issuer=issuer, watched=watched)

    with BrokerServer(make) as server:
        file = tmp_path / "main.carnet.yaml"
        file.write_text(file.read_text().replace("https://crm.example", server.url))
        assert _until(lambda: "configuration" in server.broker.problems)
        assert server.broker.context.registries["main"].hosts["crm"].audience == "https://crm.example"


def _until_other(world: World, digest: str) -> str:
    guard = world.guard()
    found: list[str] = []

    def other() -> bool:
        found.append(world.get("/v1/policy", guard).json().get("digest", digest))
        return found[-1] != digest

    _until(other)
    return found[-1]


def _until(condition: Any, seconds: float = 8) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


# Upkeep


def run_chores(*chores: Chore, seconds: float = 0.2) -> list[str]:
    async def main() -> list[str]:
        supervisor = Supervisor(chores)
        async with supervisor.running():
            await asyncio.sleep(seconds)
        return supervisor.fallen()

    return asyncio.run(main())


def test_a_chore_repeats_and_a_store_that_is_away_is_tried_again() -> None:
    rounds: list[int] = []

    async def away() -> None:
        rounds.append(1)
        raise Unavailable("away")

    assert run_chores(Chore("sweeper", 0.01, away)) == []
    assert len(rounds) > 3


def test_a_chore_that_breaks_is_named_and_the_others_go_on() -> None:
    rounds: list[int] = []

    async def broken() -> None:
        raise ValueError("a fault of ours")

    async def well() -> None:
        rounds.append(1)

    assert run_chores(Chore("sealer", 0.01, broken), Chore("sweeper", 0.01, well)) == ["sealer"]
    assert len(rounds) > 3


def test_a_round_that_is_under_way_is_waited_for() -> None:
    finished: list[int] = []

    async def slow() -> None:
        await asyncio.sleep(0.3)
        finished.append(1)

    run_chores(Chore("sealer", 10, slow), seconds=0.05)
    assert finished == [1]


def test_a_broker_without_its_upkeep_is_not_ready(own: BrokerServer) -> None:
    async def broken() -> None:
        raise ValueError("a fault of ours")

    class Broken(Broker):
        def chores(self) -> list[Chore]:
            return [Chore("sweeper", 1, broken)]

    def make(issuer: str) -> Broker:
        made = own_make(issuer)
        return Broken(made.context, made.service)

    own_make = own._make
    own.stop()
    with BrokerServer(make) as server:
        assert _until(lambda: httpx2.get(f"{server.url}/readyz").status_code == 503)
        assert "sweeper" in httpx2.get(f"{server.url}/readyz").json()["problems"][0]
        assert httpx2.get(f"{server.url}/healthz").status_code == 200
