"""The store's clock: the system's, except that it never goes back below what the store has seen."""

import threading
import time
from collections.abc import Callable

__all__ = ["BACKWARD", "HighWater", "system"]

BACKWARD = 5  # seconds that the system clock may be behind the mark before it is called a problem


def system() -> int:
    """Unix time in whole seconds."""
    return int(time.time())


class HighWater:
    """Whole Unix seconds that never step back. The mark outlives the process: the writer stores it with its commits."""

    def __init__(self, clock: Callable[[], int], mark: int) -> None:
        self._clock = clock
        self._mark = mark
        self._lock = threading.Lock()

    def now(self) -> int:
        read = self._clock()
        with self._lock:
            self._mark = max(self._mark, read)
            return self._mark

    def raise_to(self, mark: int) -> None:
        """Another process has seen this time."""
        with self._lock:
            self._mark = max(self._mark, mark)

    def behind(self) -> int:
        """How many seconds the system clock is behind the mark."""
        return max(0, self.now() - self._clock())
