"""The catalog: facts about tools that derivation, guard and history use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from carnet_policy.reading import Part

__all__ = ["UNKNOWN", "ToolFacts", "read_catalog"]

EFFECTS = ("read", "write", "irreversible")


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """`effect` None = unknown, which counts as the worst. `resource_arg` names the argument that holds the ids of the
    business objects a call touches; a list counts each element."""

    effect: Literal["read", "write", "irreversible"] | None = None
    data_class: frozenset[str] = frozenset()
    resource_arg: str | None = None

    @property
    def irreversible(self) -> bool:
        """Whether it counts as irreversible: an unknown effect does."""
        return self.effect in (None, "irreversible")


UNKNOWN = ToolFacts()


def read_catalog(part: Part) -> dict[str, ToolFacts]:
    """Facts by tool name."""
    found: dict[str, ToolFacts] = {}
    for name, entry in part.mapping().items():
        Part(entry.document, name, entry.path, entry.name).tool()
        given: Mapping[str, Part] = entry.mapping(("effect", "data_class", "resource_arg"))
        effect = given["effect"].word_of(EFFECTS) if "effect" in given else None
        found[name] = ToolFacts(
            effect=cast(Literal["read", "write", "irreversible"] | None, effect),
            data_class=given["data_class"].words() if "data_class" in given else frozenset(),
            resource_arg=given["resource_arg"].text(128) if "resource_arg" in given else None,
        )
    return found
