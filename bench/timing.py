"""How long something takes: CPU time of this thread, median of interleaved rounds."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Figure", "cpu_seconds", "percentile", "render"]

_ROUND = 0.15  # seconds of CPU that one round of one candidate aims at


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the report. floor None: printed only. `higher` False: the value must stay at or below the floor."""

    name: str
    value: float
    floor: float | None
    unit: str = "x"
    higher: bool = True

    @property
    def ok(self) -> bool:
        if self.floor is None:
            return True
        return self.value >= self.floor if self.higher else self.value <= self.floor


def cpu_seconds(candidates: Mapping[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """CPU seconds per call of each candidate. Rounds are interleaved, so that a slow moment hits all of them."""
    counts = {name: _calibrate(call) for name, call in candidates.items()}
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in candidates.items():
                taken[name].append(_run(call, counts[name]) / counts[name])
    finally:
        gc.enable()
    return {name: statistics.median(values) for name, values in taken.items()}


def _calibrate(call: Callable[[], object]) -> int:
    count = 1
    while (spent := _run(call, count)) < _ROUND / 4:
        count *= 2 if spent > 0 else 10
    return max(1, int(count * _ROUND / spent))


def _run(call: Callable[[], object], count: int) -> float:
    begun = time.thread_time()
    for _ in range(count):
        call()
    return time.thread_time() - begun


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def render(figure: Figure) -> str:
    bound = "-" if figure.floor is None else f"{'>=' if figure.higher else '<='}{figure.floor:g}"
    mark = "" if figure.ok else "   BELOW" if figure.higher else "   ABOVE"
    return f"{figure.name:<52} {figure.value:>12.2f} {figure.unit:<8} {bound}{mark}"
