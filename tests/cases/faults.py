"""What happens to the world in a sequence: time passes, stores and key endpoints fail, brokers restart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.cases.answering import Answer
from tests.cases.verdict import CaseFailed

if TYPE_CHECKING:
    from tests.cases.steps import Player

__all__ = [
    "advance",
    "crash_during",
    "jwks_down",
    "jwks_up",
    "reload_policy",
    "restart_broker",
    "store_down",
    "store_up",
]

Step = Mapping[str, Any]
READY = 5.0
SPAN = re.compile(r"approval_timeout *([+-] *[0-9]+)?")
APPROVAL_TIMEOUT = 120


def advance(player: Player, step: Step) -> Answer:
    """Seconds on every clock of the world."""
    amount = step["seconds"]
    if isinstance(amount, str):
        found = SPAN.fullmatch(amount)
        if found is None:
            raise CaseFailed(f"unknown span of time {amount!r}")
        amount = APPROVAL_TIMEOUT + int((found[1] or "0").replace(" ", ""))
    player.world.advance(float(amount))
    player.settle()
    return Answer("ok")


def store_down(player: Player, step: Step) -> Answer:
    player.world.store_down(True)
    return Answer("ok")


def store_up(player: Player, step: Step) -> Answer:
    player.world.store_down(False)
    player.settle(READY)
    return Answer("ok")


def jwks_down(player: Player, step: Step) -> Answer:
    player.world.tools.wire.keys_down = True
    return Answer("ok")


def jwks_up(player: Player, step: Step) -> Answer:
    player.world.tools.wire.keys_down = False
    return Answer("ok")


def restart_broker(player: Player, step: Step) -> Answer:
    player.world.restart()
    player.settle(READY)
    return Answer("ok")


def crash_during(player: Player, step: Step) -> Answer:
    """The step's answer is lost on its way, and the broker comes up again from its store."""
    with player.world.losing_answers():
        player.do(
            {**step["step"], "expect_status_in": [None]} if "expect" not in step["step"] else step["step"], "crash"
        )
    player.world.restart()
    player.settle(READY)
    return Answer("ok")


def reload_policy(player: Player, step: Step) -> Answer:
    """The policy file with a patch: in force at broker and guard, or refused, and then the last good one stays."""
    problem = player.world.change_policy(step["patch"])
    player.settle(READY)
    return Answer("ok") if problem is None else Answer("refused", problem)
