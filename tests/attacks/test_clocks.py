"""Clocks as a weapon: a machine that is paused and then cut off must not believe that it has just heard."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from carnet import Guard
from carnet.errors import Refused
from carnet.guard.freshness import Anchor, Freshness
from carnet.reasons import Reason
from carnet.testing import CarnetBroker
from carnet.testing.clock import GuardClock


class Pausable(GuardClock):
    """The clock of a virtual machine: while that is paused it stands still, and afterwards it goes on from there."""

    __slots__ = ("_lost", "_stands")

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self._lost = 0.0
        self._stands: float | None = None

    def mono(self) -> float:
        return super().mono() - self._lost if self._stands is None else self._stands

    def pause(self, seconds: float) -> None:
        self._stands = self.mono()
        time.sleep(seconds)
        self._lost += seconds
        self._stands = None


def test_a_guard_whose_clock_stood_still_is_no_longer_fresh_than_any_other(carnet_broker: CarnetBroker) -> None:
    guard = carnet_broker.bind(Guard("desk"))
    clock = Pausable(carnet_broker.clock.now)
    guard.placed(replace(guard.setup, clock=clock))

    @guard.tool
    def search(query: str) -> str:
        return query

    with carnet_broker.child(tools=["search"]):
        assert search("a") == "a"
        clock.pause(2.5)
        state = guard.started().state
        assert state.freshness.age(clock.mono()) >= 0.0
        works = guard.started()
        works.follower.stop()
        works.follower.join(3.0)
        time.sleep(1.1)
        with pytest.raises(Refused) as refused:
            search("b")
    assert refused.value.reason is Reason.STALE


def test_an_event_from_the_future_makes_nothing_fresh() -> None:
    anchor = Anchor(sent=10.0, first=1000.0)
    assert anchor.holds(1001.0, 11.0)
    assert not anchor.holds(1060.0, 11.0)
    fresh = Freshness()
    fresh.heard(anchor.as_of(1060.0), 0, 11.0)
    assert fresh.age(13.0) >= 2.0
