"""One tool as somebody defined it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from carnet_policy.tooldefs.shape import Shape

__all__ = ["ToolDefinition", "ToolDefinitions"]


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """`shape` is that of the arguments, None where none is told; `hint` is what the server says of itself, which
    nobody has checked. `problems` say what of the schema could not be followed."""

    name: str
    file: str
    shape: Shape | None
    hint: str | None = None
    problems: tuple[str, ...] = ()

    def at(self, path: Iterable[str]) -> Shape | None:
        """The shape of an argument, or of a member inside it; None where nothing is told."""
        shape = self.shape
        for name in path:
            shape = None if shape is None else shape.properties.get(name)
        return shape


@dataclass(frozen=True, slots=True)
class ToolDefinitions:
    """Tools by name, and what was left out and why."""

    tools: Mapping[str, ToolDefinition]
    problems: tuple[tuple[str, str], ...] = field(default=())
    """Pairs of file and sentence."""
