"""Clocks as arguments: wall time for what is compared between machines, monotonic time for how long something took."""

import time
from threading import Lock
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    def now(self) -> int:
        """Unix seconds."""
        ...

    def mono(self) -> float:
        """Seconds that only grow, counting the time in which the machine slept."""
        ...


class SystemClock:
    """The machine's clocks. CLOCK_BOOTTIME, where there is one, goes on while the machine is suspended: a guard that
    slept must know that what it knew is old."""

    __slots__ = ()

    def now(self) -> int:
        return int(time.time())

    if hasattr(time, "CLOCK_BOOTTIME"):

        def mono(self) -> float:
            return time.clock_gettime(time.CLOCK_BOOTTIME)

    else:

        def mono(self) -> float:
            return time.monotonic()


class ManualClock:
    """A clock for tests: stands still until it is advanced. Thread-safe."""

    __slots__ = ("_elapsed", "_lock", "_start")

    def __init__(self, start: int = 1_800_000_000) -> None:
        self._start = start
        self._elapsed = 0.0
        self._lock = Lock()

    def now(self) -> int:
        with self._lock:
            return int(self._start + self._elapsed)

    def mono(self) -> float:
        with self._lock:
            return self._elapsed

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("time does not go back; use set_wall to step the wall clock")
        with self._lock:
            self._elapsed += seconds

    def set_wall(self, now: int) -> None:
        """Step the wall clock, backwards too, without moving the monotonic one."""
        with self._lock:
            self._start = now - int(self._elapsed)
