"""The clocks: a real one that counts sleep, and one for tests that stands still."""

import time

import pytest

from carnet.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_tells_unix_seconds_and_only_grows() -> None:
    clock: Clock = SystemClock()
    assert abs(clock.now() - time.time()) < 2
    readings = [clock.mono() for _ in range(5)]
    assert readings == sorted(readings)
    assert type(clock.now()) is int


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(100)
    assert (clock.now(), clock.mono()) == (100, 0.0)
    clock.advance(1.5)
    assert (clock.now(), clock.mono()) == (101, 1.5)
    clock.set_wall(50)
    assert (clock.now(), clock.mono()) == (50, 1.5)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)
