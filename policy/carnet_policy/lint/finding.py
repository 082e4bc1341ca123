"""What lint says: where, how bad, and one sentence with the fix."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Code", "Finding", "Place", "Severity"]

Place = tuple[str, int, int]
"""File, line and column, both counted from 1."""


class Severity(StrEnum):
    """error: the policy is wrong. warning: it is probably not what was meant. note: good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding. `id` and `name` never change their meaning; `severity` is the usual one, `about` what the
    manual says."""

    id: str
    name: str
    severity: Severity
    about: str


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` is the name that decisions use (`refund[1]`, `history[0]`), None where no rule is meant."""

    code: Code
    severity: Severity
    message: str
    file: str
    line: int
    column: int
    rule: str | None = None
