"""One log line for a caller that proved nothing: it belongs to no tenant, so there is no audit record of it.

A flood of such requests must not become a flood of lines: each reason has its own small budget, and the next line of
that reason says how many were left out.
"""

import logging
from collections import Counter
from collections.abc import Callable

from carnet.reasons import Reason
from carnet_broker.http.pace import Pace

__all__ = ["RefusalLog"]

_LOG = logging.getLogger("carnet.refused")


class RefusalLog:
    """clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._pace = Pace(clock, burst=10, rate=0.5, names=len(Reason))
        self._left_out: Counter[Reason] = Counter()

    def note(self, door: str, reason: Reason, trace: str) -> None:
        """door: the path as it is declared, never as it was sent."""
        if not self._pace.allow(reason.value):
            self._left_out[reason] += 1
            return
        fields = {"door": door, "reason": reason.value, "trace_id": trace, "left_out": self._left_out.pop(reason, 0)}
        _LOG.info("caller refused", extra={"fields": fields})
