"""A token bucket per name: so many at once, so many a second after that. Bounded in memory."""

from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Pace"]


class Pace:
    """clock: monotonic seconds. burst: how many at once. rate: how many a second in the long run.

    At most `names` names are kept; beyond that the one that was used least recently starts again with a full bucket.
    """

    def __init__(self, clock: Callable[[], float], *, burst: int, rate: float, names: int = 10_000) -> None:
        self._clock, self._burst, self._rate, self._names = clock, burst, rate, names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allow(self, name: str) -> bool:
        """Whether one more may pass now; if so it is counted."""
        now = self._clock()
        left, since = self._buckets.pop(name, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._rate)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > self._names:
            self._buckets.popitem(last=False)
        return allowed

    def __len__(self) -> int:
        return len(self._buckets)
