"""A broker killed under load: what it acknowledged is there, whole, and it is back at once."""

import random
import time
from pathlib import Path

import pytest

from tests.faults.acks import AckLog
from tests.faults.filling import ROWS, fill
from tests.faults.judging import audit_problem, broken_rows, lost, read_kept, served_otherwise
from tests.faults.processes import broker, serve_command
from tests.faults.rounds import ROUNDS
from tests.faults.scene import Scene, build
from tests.faults.traffic import Client, traffic
from tests.faults.wire import Wire

RATE = 100  # mints a second, reached before a kill counts
LOAD_SECONDS = 60.0
RECOVERY_SECONDS = 2.0


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A deployment whose store holds many rows already."""
    return build(tmp_path_factory.mktemp("used") / "scene", fill)


def load_and_kill(scene: Scene, round: int) -> tuple[AckLog, float]:
    """Traffic until it is heavy enough, then SIGKILL at a random moment. The best rate that was seen."""
    process = broker(scene)
    try:
        process.await_ready()
        with traffic(scene.port) as log:
            rate, began = 0.0, time.monotonic()
            while (rate < RATE or not log.of("approve")) and time.monotonic() - began < LOAD_SECONDS and not log.wrong:
                time.sleep(0.1)
                rate = max(rate, log.rate(1.0))
            time.sleep(random.Random(round).random())
            process.kill()
    finally:
        process.stop()
    return log, rate


def judge(scene: Scene, log: AckLog) -> tuple[float, float]:
    """Start again and compare what is there with what was promised. Seconds until it was ready; how many of them it
    waited for a processor that others had."""
    process = broker(scene)
    try:
        seconds, starved = process.await_ready(), process.starved()
        kept = read_kept(scene.database)
        assert kept.integrity == "ok"
        assert lost(log, kept) == []
        assert broken_rows(scene.database) == []
        with Wire(scene.port) as wire:
            session = wire.session()
            assert served_otherwise(log, wire, session, wire.guard()) == []
            assert audit_problem(wire, session) is None
    finally:
        process.stop()
    return seconds, starved


@pytest.mark.slow
@pytest.mark.parametrize("round", range(ROUNDS))
def test_a_kill_under_load_loses_nothing_that_was_acknowledged(used: Scene, tmp_path: Path, round: int) -> None:
    scene = used.copied(tmp_path / "scene")
    log, rate = load_and_kill(scene, round)
    assert not log.wrong, log.wrong[:3]
    assert rate >= RATE, f"only {rate:.0f} mints a second: too little load for the kill to mean anything"
    assert all(log.of(kind) for kind in ("spawn", "mint", "call", "revoke", "approve"))
    seconds, starved = judge(scene, log)
    print(
        f"\nkill {round}: {rate:.0f} mints/s, {len(log.acks)} acknowledged acts, {len(log.open)} in flight, 0 lost; "
        f"ready {seconds:.2f} s after the start ({starved:.2f} s without a processor) with over {ROWS} rows"
    )
    assert seconds - starved < RECOVERY_SECONDS


def test_a_broker_that_acknowledges_before_its_commit_is_caught(tmp_path: Path) -> None:
    scene = build(tmp_path / "scene")
    process = broker(scene, serve_command("tests.faults.wrongbroker"))
    log = AckLog(time.monotonic)
    try:
        process.await_ready()
        with Wire(scene.port) as wire:
            for _ in range(10):
                Client(wire, log, "", "").run()
            process.kill()
    finally:
        process.stop()
    assert lost(log, read_kept(scene.database))
