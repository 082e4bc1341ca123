"""The clock of a test: stands still until it is advanced, for broker and guards alike."""

from collections.abc import Callable

from carnet.clock import ManualClock, SystemClock

__all__ = ["GuardClock", "TestClock"]


class TestClock:
    """Unix seconds as everybody in the test sees them. moved: called after each step; returns once it is felt."""

    __test__ = False  # pytest must not collect it

    def __init__(self, moved: Callable[[], None]) -> None:
        self._manual = ManualClock()
        self._moved = moved

    def now(self) -> int:
        """Unix seconds."""
        return self._manual.now()

    def advance(self, seconds: float) -> None:
        """Step forward; when this returns, what became due has happened and bound guards know the time."""
        self._manual.advance(seconds)
        self._moved()


class GuardClock(SystemClock):
    """The test's wall clock, but the machine's monotonic one: how fresh a feed is stays a matter of real seconds."""

    __slots__ = ("_now",)

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    def now(self) -> int:
        return self._now()
