"""A broker killed at each place of a commit: the same key gives the same answer again, and nothing is half made."""

import random
import time
from pathlib import Path
from typing import Any

import pytest

from carnet.failpoints import VARIABLE
from tests.faults.acks import AckLog, Asked
from tests.faults.judging import Kept, audit_problem, broken_rows, lost, read_kept
from tests.faults.processes import broker
from tests.faults.rounds import ROUNDS
from tests.faults.scene import Scene, build
from tests.faults.traffic import Client
from tests.faults.wire import Gone, Wire

POINTS = ("before_tx", "after_tx_before_reply", "before_publish", "after_publish")
PASSINGS = 25  # commits after a start among which the fatal one is drawn; the acts below make more


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A deployment that has been started once, so that its policy is in force."""
    scene = build(tmp_path_factory.mktemp("fresh") / "scene")
    process = broker(scene)
    process.await_ready()
    process.stop()
    return scene


def acts(client: Client) -> None:
    """Every kind of act, one after the other, until the broker dies."""
    root = client.run()
    for n in range(20):
        client.spawn(root, "reader", ["search"])
        writer = client.spawn(root, "writer", ["tag"])
        called = client.call(writer["tokens"]["desk"]["access_token"], "tag", {"ticket": f"T-{n}"})
        client.finish(called["call_id"])
        clerk = client.spawn(root, "clerk", ["refund"], reversible=False, resource_count=n)
        (client.deny if n % 2 else client.approve)(clerk["approval"]["id"])
        client.mint(root, writer["id"])
        client.revoke(f"dlg:{writer['id']}")


def act_until_it_dies(scene: Scene, log: AckLog) -> None:
    try:
        with Wire(scene.port) as wire:
            acts(Client(wire, log, wire.session(), wire.guard()))
    except Gone:
        return


@pytest.mark.slow
@pytest.mark.parametrize("round", range(max(ROUNDS, len(POINTS))))
def test_after_a_kill_at_a_failpoint_the_same_key_gives_the_same_answer(
    fresh: Scene, tmp_path: Path, round: int
) -> None:
    point = POINTS[round % len(POINTS)]
    scene = fresh.copied(tmp_path / "scene")
    passing = random.Random(round).randint(4, PASSINGS)
    armed = broker(scene, **{VARIABLE: f"{point}=kill@{passing}"})
    log = AckLog(time.monotonic)
    try:
        if armed.comes_up():
            act_until_it_dies(scene, log)
        assert armed.await_death() == -9
    finally:
        armed.stop()
    assert not log.wrong, log.wrong
    assert broken_rows(scene.database) == []
    before = read_kept(scene.database)
    assert lost(log, before) == []
    again = broker(scene)
    try:
        again.await_ready()
        with Wire(scene.port) as wire:
            client = Client(wire, log, wire.session(), wire.guard())
            for asked in log.open:
                replayed(client, asked, unheard(log, before))
            for ack in [ack for ack in log.acks if ack.asked.key][-5:]:
                status, answer = client.replay(ack.asked)
                revoked = ack.asked.kind == "call" and status == 401  # its child was, meanwhile
                assert revoked or made((status, answer)) == ack.id
            assert audit_problem(wire, wire.session()) is None
    finally:
        again.stop()
    assert broken_rows(scene.database) == []
    during = log.open[0].kind if log.open else "nothing"
    print(f"\n{point} at commit {passing}, during {during}: {len(log.acks)} acknowledged, 0 lost, 0 half made")


def unheard(log: AckLog, kept: Kept) -> set[str]:
    """Delegations and calls that were made and that nobody was told of."""
    told = {ack.id for ack in log.acks}
    return {id for id in (*kept.delegations, *kept.calls) if id not in told}


def replayed(client: Client, asked: Asked, unheard: set[str]) -> None:
    """Ask again what was never answered. Twice: whatever the first answer is, it stays."""
    if not asked.path.startswith("/v1"):
        return  # opening a run has no key; a run that nobody heard of holds nothing
    first, second = client.replay(asked), client.replay(asked)
    if asked.key:
        assert first[0] < 300
        assert made(first) == made(second)
        assert not unheard or unheard == {made(first)}, "the key made a second one"
    else:
        assert first[0] < 300 or first[1]["reason"] == "already_answered", first


def made(answer: tuple[int, dict[str, Any]]) -> str:
    """The id of what the answer speaks of."""
    return str(answer[1].get("id") or answer[1].get("call_id"))
