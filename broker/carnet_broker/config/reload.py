"""Reading the configuration again: all of it or nothing, and the last good one stays.

`decide` is pure; `refresh` adds the reading. A file that was found bad is not tried again until something changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from carnet.errors import ConfigError
from carnet_broker.config.files import Sources, digest_of
from carnet_broker.config.load import Loaded, find_configs, load_all

__all__ = ["Step", "Watched", "decide", "observe", "refresh", "watch"]


class Step(StrEnum):
    KEEP = "keep"
    LOAD = "load"


@dataclass(frozen=True, slots=True)
class Watched:
    """good: what is in force. tried: the digests of the last attempt. problem: why that attempt failed, None if not."""

    path: Path
    good: Loaded
    tried: Mapping[Path, str]
    problem: str | None = None


def decide(tried: Mapping[Path, str], seen: Mapping[Path, str]) -> Step:
    """Whether the files differ in content, or are others, from those of the last attempt."""
    return Step.KEEP if dict(tried) == dict(seen) else Step.LOAD


def watch(path: Path) -> Watched:
    """The first load. Raises ConfigError: there is no last good state to fall back on."""
    good = load_all(path)
    return Watched(path, good, good.sources)


def observe(state: Watched) -> Mapping[Path, str]:
    """Digests now, of the files of the last attempt and of files that have come."""
    try:
        found = find_configs(state.path)
    except ConfigError:
        found = ()
    return {path: digest_of(path) for path in (*state.tried, *found)}


def refresh(state: Watched) -> Watched:
    """The same state when nothing changed; a new `good` when what changed loads; else the old one with the problem."""
    seen = observe(state)
    if decide(state.tried, seen) is Step.KEEP:
        return state
    sources = Sources()
    try:
        good = load_all(state.path, sources)
    except ConfigError as error:
        # also what the bad files name: a missing file that comes later mends them without another edit
        return replace(state, tried={**seen, **sources.digests}, problem=str(error))
    return Watched(state.path, good, good.sources)
