"""Named places at which a test can kill, stop or fail the process: `TEST_CARNET_FAILPOINT="name=action[@n]"`.

Actions: `kill` (SIGKILL to the own process), `raise` (Failed), `sleep:<seconds>`. With `@n` only the n-th passing acts;
several entries are separated by commas. Unset, `hit` is an empty function.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

__all__ = ["NAMES", "VARIABLE", "Failed", "Failpoints", "hit"]

VARIABLE = "TEST_CARNET_FAILPOINT"
NAMES = frozenset(
    {
        "before_tx",
        "after_tx_before_reply",
        "after_audit_intent",
        "before_dispatch",
        "after_dispatch_before_outcome",
        "before_publish",
        "after_publish",
    }
)


class Failed(Exception):
    """A failpoint was told to raise."""


@dataclass(frozen=True, slots=True)
class _Action:
    act: Callable[[str], None]
    only: int | None  # the n-th passing, or each


class Failpoints:
    """The failpoints of one setting. Thread-safe: passings are counted under a lock."""

    def __init__(self, actions: Mapping[str, _Action]) -> None:
        self._actions = dict(actions)
        self._passed = dict.fromkeys(actions, 0)
        self._lock = threading.Lock()

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError for a name or action that does not exist: a test with a typo must not pass."""
        actions = {}
        for entry in filter(None, (part.strip() for part in text.split(","))):
            name, _, action = entry.partition("=")
            if name not in NAMES:
                raise ValueError(f"{VARIABLE}: no failpoint is named {name!r}")
            word, _, count = action.partition("@")
            actions[name] = _Action(_act(word), int(count) if count else None)
        return cls(actions)

    def hit(self, name: str) -> None:
        """Pass the failpoint `name`: do what was set for it."""
        action = self._actions.get(name)
        if action is None:
            return
        with self._lock:
            self._passed[name] += 1
            passing = self._passed[name]
        if action.only in (None, passing):
            action.act(name)


def _act(word: str) -> Callable[[str], None]:
    verb, _, amount = word.partition(":")
    if verb == "kill" and not amount:
        return _kill
    if verb == "raise" and not amount:
        return _raise
    if verb == "sleep":
        seconds = float(amount)
        return lambda _: time.sleep(seconds)
    raise ValueError(f"{VARIABLE}: no action is named {word!r}; use kill, raise or sleep:<seconds>")


def _kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(name: str) -> None:
    raise Failed(name)


def _nothing(_: str) -> None:
    return None


_SETTING = os.environ.get(VARIABLE, "")
hit: Callable[[str], None] = Failpoints.parse(_SETTING).hit if _SETTING else _nothing
