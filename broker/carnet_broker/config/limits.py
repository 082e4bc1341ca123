"""The `limits` of carnet.yaml: each value inside its built-in bound, so that a file can tighten and never loosen."""

from collections.abc import Mapping
from types import MappingProxyType

from carnet.token.names import LEVEL_TTL
from carnet_broker.core.derivation import MIN_TTL
from carnet_broker.core.registry import MAX_RUN_TTL, Limits
from carnet_policy.reading import Part

__all__ = ["MAX_OPEN_RUNS", "read_limits"]

MAX_OPEN_RUNS = 10_000
_STALENESS = MappingProxyType({0: 30, 1: 1})  # seconds: at most
KEYS = ("ttl", "run_ttl", "staleness", "bind_from_level", "max_open_runs")


def read_limits(part: Part) -> Limits:
    given = part.mapping(KEYS)
    default = Limits()
    return Limits(
        ttl=_by_level(given.get("ttl"), default.ttl, LEVEL_TTL, MIN_TTL),
        run_ttl=given["run_ttl"].integer(60, MAX_RUN_TTL) if "run_ttl" in given else default.run_ttl,
        staleness=_by_level(given.get("staleness"), default.staleness, _STALENESS, 1),
        bind_from_level=given["bind_from_level"].integer(0, 3)
        if "bind_from_level" in given
        else default.bind_from_level,
        max_open_runs=given["max_open_runs"].integer(1, MAX_OPEN_RUNS)
        if "max_open_runs" in given
        else default.max_open_runs,
    )


def _by_level(part: Part | None, default: Mapping[int, int], most: Mapping[int, int], least: int) -> Mapping[int, int]:
    """Seconds by level; a level that is left out keeps its default. The keys are written quoted: `"0": 900`."""
    if part is None:
        return default
    given = part.mapping([str(level) for level in most], "level")
    read = {int(level): entry.integer(least, most[int(level)]) for level, entry in given.items()}
    return MappingProxyType({**default, **read})
