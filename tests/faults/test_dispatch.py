"""No tool runs without a durable record before it, however its server dies; and every record gets an end."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.failpoints import VARIABLE
from tests.faults.calling import calling, children
from tests.faults.intents import intents, open_calls, outcomes
from tests.faults.ports import free_port
from tests.faults.processes import Process, broker, running, tool_server, until
from tests.faults.rounds import ROUNDS
from tests.faults.scene import Scene, build
from tests.faults.toolhost import ran

POINTS = ("before_dispatch", "after_audit_intent", "after_dispatch_before_outcome", "")  # "" = at any moment
UNKNOWN_AFTER = 2000  # seconds: the longest life of a token, the minute after it, and more


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = build(tmp_path / "scene")
    with running(broker(scene)):
        yield scene


def call_and_kill(scene: Scene, point: str, round: int, ledger: Path, variant: str = "") -> int:
    """Let clients call until the tool server is killed. How many calls were answered with their result."""
    chance, port = random.Random(round), free_port()
    armed = {VARIABLE: f"{point}=kill@{chance.randint(20, 60)}"} if point else {}
    server = tool_server(scene, port, ledger, variant, **armed)
    try:
        server.await_ready()
        with calling(port, children(scene.port)) as calls:
            _fall(server, point, chance)
    finally:
        server.stop()
    return len(calls.allowed)


def _fall(server: Process, point: str, chance: random.Random) -> None:
    if point:
        assert server.await_death() == -9
    else:
        time.sleep(1 + chance.random())
        server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("round", range(max(ROUNDS, len(POINTS))))
def test_what_ran_was_on_record_before(scene: Scene, tmp_path: Path, round: int) -> None:
    point, ledger = POINTS[round % len(POINTS)], tmp_path / "ledger"
    answered = call_and_kill(scene, point, round, ledger)
    executed, permitted = ran(ledger), intents(scene.database, scene.journal)
    print(f"\n{point or 'any moment'}: {answered} answered, {len(executed)} ran, {len(permitted)} on record before")
    assert answered >= 10, "too few calls for the kill to mean anything"
    assert len(executed) >= answered
    assert executed.keys() <= permitted
    if point == "after_audit_intent":
        assert len(permitted) > len(executed), "it was not killed between record and run"


@pytest.mark.slow
def test_the_next_tool_server_ships_what_the_dead_one_left(tmp_path: Path) -> None:
    scene, ledger = build(tmp_path / "scene"), tmp_path / "ledger"
    with running(broker(scene)):
        call_and_kill(scene, "after_dispatch_before_outcome", 1, ledger)
        left, unended = sorted(scene.journal.glob("*.journal")), open_calls(scene.journal)
        assert left
        with running(tool_server(scene, free_port(), ledger)):
            until(lambda: not any(path.exists() for path in left), 10, "the dead process's journal is shipped")
        known = outcomes(scene.database)
        assert ran(ledger).keys() <= known.keys()
    scene.pass_time(UNKNOWN_AFTER)
    with running(broker(scene, ready="/healthz")):  # not ready: the system's clock is behind, so it mints nothing
        until(lambda: None not in outcomes(scene.database).values(), 10, "every call has an end")
    ends = outcomes(scene.database)
    assert unended
    assert {ends[name] for name in unended} == {"unknown"}
    assert set(ends.values()) == {"done", "unknown"}
    print(f"\n{len(ends)} calls on record, {list(ends.values()).count('unknown')} of them unknown")


def test_a_guard_that_records_after_the_call_is_caught(scene: Scene, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    call_and_kill(scene, "after_dispatch_before_outcome", 1, ledger, variant="audit_after_dispatch")
    assert not ran(ledger).keys() <= intents(scene.database, scene.journal)
