"""What a policy says and another engine can not."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CanNotMap", "Unmapped"]


@dataclass(frozen=True, slots=True)
class Unmapped:
    """One thing that keeps a policy from being exported: where it stands, and why in one sentence."""

    file: str
    line: int
    column: int
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.why}"


class CanNotMap(Exception):
    """Carries what an `Unmapped` tells from where it is found to the export; never leaves this package."""

    def __init__(self, why: str, *path: str) -> None:
        super().__init__(why)
        self.why = why
        self.path = path  # from the arguments of the rule down to the word

    def inside(self, step: str) -> CanNotMap:
        return CanNotMap(self.why, step, *self.path)
