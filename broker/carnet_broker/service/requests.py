"""What callers ask for, as frozen values. Nothing in them is trusted before the use case has checked it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["CallRequest", "RecordBatch", "SpawnRequest", "Verdict"]


class Verdict(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    WITHDRAW = "withdraw"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnRequest:
    """One spawn. task: the stated facts as they were sent. hosts: () no tokens in the answer, ("*",) all, else names.

    ttl: seconds, None = what the level gives. ceilings: {tool: {"args": {argument: constraints}, "max_calls": n}}.
    """

    target: str
    task: Mapping[str, Any]
    payload: Any = None
    ttl: int | None = None
    hosts: tuple[str, ...] = ()
    ceilings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """One tool call that a guard asks about. token: the child's, never shown in repr."""

    token: str = field(repr=False)
    tool: str
    args: Mapping[str, Any] = field(repr=False)
    preview: bool = False
    approval_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBatch:
    """Lines of a guard's journal: `first` is the number of the first line, numbers are contiguous per journal."""

    journal: str
    first: int
    lines: tuple[Mapping[str, Any], ...]
