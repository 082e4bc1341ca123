"""When to try again: a few times, with full jitter under a cap, and only what a second sending can't change."""

from collections.abc import Callable, Iterator

from carnet.wire.ask import Ask

__all__ = ["TRIES", "pauses"]

TRIES = 4
_FIRST = 0.1  # seconds
_CAP = 1.0


def pauses(ask: Ask, draw: Callable[[], float]) -> Iterator[float]:
    """Seconds to sleep before each further try; none where a repeat could act twice. draw: uniform in [0, 1)."""
    if not ask.repeatable:
        return
    for attempt in range(TRIES - 1):
        yield draw() * min(_CAP, _FIRST * 2**attempt)
