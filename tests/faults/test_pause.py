"""A broker or a guard that stands still: no yes of before is used after, and what was revoked meanwhile is revoked."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carnet.failpoints import VARIABLE
from tests.faults.acks import AckLog
from tests.faults.calling import Called, Calls, call, calling, children
from tests.faults.intents import intents
from tests.faults.ports import free_port
from tests.faults.processes import Process, broker, running, tool_server, until
from tests.faults.scene import Scene, build
from tests.faults.toolhost import ran
from tests.faults.traffic import Client
from tests.faults.wire import Wire

PAUSE = 3.0  # seconds
BUDGET = 1.0  # seconds for which a guard may rest on what it heard
SLACK = 0.3  # seconds for a busy machine, between a call's start and the decision that this test can't see
RECOVERY = 5.0


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return build(tmp_path / "scene")


@contextmanager
def standing_still(process: Process) -> Iterator[None]:
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


def revoke(scene: Scene, session: str, delegation: str, log: AckLog) -> None:
    with Wire(scene.port) as wire:
        Client(wire, log, session, "").revoke(f"dlg:{delegation}")


def allowed_between(calls: Calls, first: float, last: float) -> list[Called]:
    """Calls that began and were answered with their result inside the span."""
    return [call for call in calls.allowed if first < call.started and call.ended < last]


@pytest.mark.parametrize("revoked", ["search", "tag"])
def test_while_the_broker_stands_still_nothing_stale_is_allowed(scene: Scene, tmp_path: Path, revoked: str) -> None:
    ledger, port, log = tmp_path / "ledger", free_port(), AckLog(time.monotonic)
    with running(broker(scene)) as process, running(tool_server(scene, port, ledger)):
        tokens = children(scene.port)
        with Wire(scene.port) as wire:
            session = wire.session()
        other = "tag" if revoked == "search" else "search"
        with calling(port, tokens, each=1, pause=0.01) as calls:
            until(lambda: {call.tool for call in calls.allowed} == {"search", "tag"}, 10, "both tools are called")
            with standing_still(process):
                stopped = time.monotonic()
                asking = threading.Thread(target=revoke, args=(scene, session, tokens[revoked][0], log))
                asking.start()
                time.sleep(PAUSE)
                continued = time.monotonic()
            asking.join(10)
            (ack,) = log.of("revoke")
            until(lambda: any(call.tool == other for call in after(calls, ack.ended)), RECOVERY, "the other works")
            time.sleep(1)
        assert allowed_between(calls, stopped + BUDGET + SLACK, continued) == []
        paused = [call for call in calls.made if stopped + BUDGET + SLACK < call.started and call.ended < continued]
        assert {call.reason for call in paused} == {"revocation_state_stale"}
        judge_revocation(calls, ledger, revoked, ack.ended)
        print(f"\n{len(calls.made)} calls, {len(paused)} refused in the pause, none of {revoked} after its revocation")


def after(calls: Calls, moment: float) -> list[Called]:
    return [call for call in calls.allowed if call.started > moment]


def judge_revocation(calls: Calls, ledger: Path, tool: str, revoked_at: float) -> None:
    """From the moment on at which guards must know, the tool did not run for the revoked child."""
    late = [call.name for call in after(calls, revoked_at + BUDGET) if call.tool == tool]
    assert late == []
    ran_late = [name for name, at in ran(ledger).items() if name.startswith(tool) and at > revoked_at + BUDGET + SLACK]
    assert ran_late == []
    told = [call.reason for call in calls.made if call.tool == tool and call.started > revoked_at + BUDGET]
    assert told


def test_a_guard_that_stood_still_before_its_tool_does_not_run_it(scene: Scene, tmp_path: Path) -> None:
    """The yes was given, then the whole guard slept: what was revoked meanwhile must hold when it wakes."""
    ledger, port, log = tmp_path / "ledger", free_port(), AckLog(time.monotonic)
    sleeping = {VARIABLE: "before_dispatch=sleep:2"}
    with running(broker(scene)), running(tool_server(scene, port, ledger, **sleeping)) as guard:
        tokens = children(scene.port)
        with Wire(scene.port) as wire:
            session = wire.session()
        calls: list[Called] = []
        threads = [
            threading.Thread(target=lambda tool=tool: calls.append(called(port, tool, tokens[tool][1])))
            for tool in tokens
        ]
        for thread in threads:
            thread.start()
        until(lambda: len(intents(scene.database, scene.journal)) == 2, 10, "both calls are decided")
        with standing_still(guard):
            for delegation, _ in tokens.values():
                revoke(scene, session, delegation, log)
            time.sleep(PAUSE)
        for thread in threads:
            thread.join(20)
    assert len(log.of("revoke")) == 2
    assert [call.status for call in calls] == [401, 401]
    assert ran(ledger) == {}


def called(port: int, tool: str, token: str) -> Called:
    with Wire(port) as wire:
        return call(wire, tool, f"{tool}-once", token)
