"""A tool server that is told to end: its guard ships what it recorded and is gone, whatever the broker does."""

import json
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carnet import Guard
from carnet.testing import CarnetBroker
from tests.faults.calling import call, children
from tests.faults.ports import free_port
from tests.faults.processes import Process, broker, running, tool_server, until
from tests.faults.scene import Scene, build
from tests.faults.toolhost import ran
from tests.faults.wire import Wire

IN_TIME = 5.0  # seconds


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return build(tmp_path / "scene")


@pytest.fixture
def keeper(scene: Scene) -> Iterator[Process]:
    with running(broker(scene)) as process:
        yield process


def on_record(scene: Scene) -> list[dict[str, Any]]:
    with sqlite3.connect(f"file:{scene.database}?mode=ro", uri=True) as conn:
        return [json.loads(row[0]) for row in conn.execute("SELECT body FROM record ORDER BY seq")]


def used(scene: Scene, keeper: Process, ledger: Path, number: signal.Signals, *, hung: bool = False) -> float:
    """Call a tool of a fresh tool server, then end that at once: seconds until it is gone."""
    port = free_port()
    token = children(scene.port)["search"][1]
    with running(tool_server(scene, port, ledger)) as server:
        with Wire(port) as wire:
            until(lambda: call(wire, "search", "first", token).status == 200, 10, "a call is allowed")
            assert [call(wire, "search", f"last-{n}", token).status for n in range(20)] == [200] * 20
        if hung:
            keeper.signal(signal.SIGSTOP)
        began = time.monotonic()
        server.signal(number)
        server.await_death(30)
        return time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_ran_last_is_with_the_broker_when_the_server_is_gone(
    scene: Scene, keeper: Process, tmp_path: Path, number: signal.Signals
) -> None:
    assert used(scene, keeper, tmp_path / "ledger", number) < IN_TIME
    kinds = [record["kind"] for record in on_record(scene) if record["kind"].startswith("call_")]
    effects = len(ran(tmp_path / "ledger"))
    assert effects == 21
    assert (kinds.count("call_intent"), kinds.count("call_outcome")) == (effects, effects)


def test_a_broker_that_hangs_keeps_no_server_from_ending(scene: Scene, keeper: Process, tmp_path: Path) -> None:
    assert used(scene, keeper, tmp_path / "ledger", signal.SIGTERM, hung=True) < IN_TIME
    keeper.signal(signal.SIGCONT)
    assert list(scene.journal.iterdir()), "what could not be shipped stays for the next guard"


def test_a_broker_that_is_gone_keeps_no_server_from_ending(scene: Scene, keeper: Process, tmp_path: Path) -> None:
    port = free_port()
    with running(tool_server(scene, port, tmp_path / "ledger")) as server:
        keeper.kill()
        time.sleep(1)
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        server.await_death(30)
        assert time.monotonic() - began < IN_TIME


def test_a_closed_guard_leaves_no_thread_and_no_line_behind(carnet_broker: CarnetBroker) -> None:
    before = set(threading.enumerate())
    guard = carnet_broker.bind(Guard("desk"))

    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]) as child:
        for n in range(5):
            search(f"{n}")
        guard.close()
        left = {thread.name for thread in set(threading.enumerate()) - before}
        assert {name for name in left if name.startswith("carnet-")} == set()
        kinds = [row["kind"] for row in carnet_broker.records(delegation=child.id) if row["tool"] in ("search", None)]
    assert kinds.count("call_intent") == 5
