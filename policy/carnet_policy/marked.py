"""A value read from a text, together with the place of each of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from carnet_policy.errors import PolicyError

__all__ = ["Mark", "Marked"]

Path = Sequence[str | int]


@dataclass(slots=True)
class Mark:
    """Line and column (from 1) of one part: of its key in a mapping, of itself in a list."""

    line: int = 0
    column: int = 0
    parts: dict[str | int, Mark] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Marked:
    """`value` holds plain dict, list, str, int, float, bool and None only; `name` is what errors call the text."""

    value: object
    name: str
    mark: Mark = field(default_factory=Mark, repr=False)

    def at(self, path: Path = ()) -> tuple[int, int]:
        """Line and column of the part at `path`; of the nearest part around it when there is none."""
        mark = self.mark
        for step in path:
            inner = mark.parts.get(step)
            if inner is None:
                break
            mark = inner
        return mark.line, mark.column

    def error(self, path: Path, message: str) -> PolicyError:
        """An error that points at the part at `path`."""
        line, column = self.at(path)
        return PolicyError(message, self.name, line, column)
