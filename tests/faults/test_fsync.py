"""An answer leaves the broker only after the disk has what it promises. A kill can't show that: strace can."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.acks import AckLog
from tests.faults.processes import broker, running, serve_command
from tests.faults.scene import build
from tests.faults.tracing import Missing, events, traced, unsynced_answers
from tests.faults.traffic import Client
from tests.faults.wire import Wire

ACTS = 20
PAUSE = 0.12  # seconds between requests: what a broker does late falls outside the next request


def events_of(tmp_path: Path, module: str, acts: Callable[[Client], Iterator[object]]) -> str:
    """What a serving broker did while one client acted, one act after the other."""
    scene, log = build(tmp_path / "scene"), tmp_path / "strace"
    try:
        command = traced(serve_command(module), log)
    except Missing as why:
        pytest.skip(str(why))
    process = broker(scene, command)
    with running(process), Wire(scene.port) as wire:
        steps = acts(Client(wire, AckLog(time.monotonic), wire.session(), ""))
        begun = log.stat().st_size
        for _ in steps:
            time.sleep(PAUSE)
    tail = tmp_path / "tail"
    tail.write_bytes(log.read_bytes()[begun:])
    return events(tail)


def spawns_and_revocations(client: Client) -> Iterator[object]:
    root = client.run()
    yield root
    for _ in range(ACTS // 2):
        child = client.spawn(root, "reader", ["search"])
        yield child
        yield client.revoke(f"dlg:{child['id']}")


def runs(client: Client) -> Iterator[object]:
    for _ in range(ACTS):
        yield client.run()


def test_every_answer_follows_the_sync_of_its_commit(tmp_path: Path) -> None:
    found = events_of(tmp_path, "carnet.cli", spawns_and_revocations)
    print(f"\n{found.count('a')} answers, {found.count('s')} syncs of the log, each before its answer")
    assert found.count("a") >= ACTS
    assert found.count("s") >= ACTS
    assert unsynced_answers(found) == 0


def test_a_broker_that_answers_before_its_commit_is_caught_by_the_trace(tmp_path: Path) -> None:
    assert unsynced_answers(events_of(tmp_path, "tests.faults.wrongbroker", runs)) >= ACTS // 2


@pytest.mark.parametrize(
    ("found", "wrong"), [("rwsa", 0), ("rwwsra", 1), ("rwas", 1), ("ra", 1), ("wsra", 1), ("arwwsa", 0)]
)
def test_the_judge_of_traces_knows_right_from_wrong(found: str, wrong: int) -> None:
    assert unsynced_answers(found) == wrong
