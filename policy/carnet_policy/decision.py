"""What is asked of a policy and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Call", "Decision", "Effect", "PolicyRef"]


class Effect(StrEnum):
    """The three answers. The strictest wins: deny over require_approval over allow."""

    ALLOW = "allow"
    DENY = "deny"
    REQUIRE_APPROVAL = "require_approval"


@dataclass(frozen=True, slots=True)
class PolicyRef:
    """Which policy decided: `digest` is the lowercase hex SHA-256 of the canonical content of all its files."""

    id: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer and why. `reason` is a stable code, `detail` one sentence for people, `rule` e.g. `refund[1]`,
    `history[0]`, `floor`, or None when nothing in the file decided. Deliberately no truth value: match on `effect`."""

    effect: Effect
    reason: str
    detail: str
    rule: str | None
    policy: PolicyRef

    def __bool__(self) -> bool:
        raise TypeError("a Decision has no truth value; compare its effect")


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it will run. `args` are plain JSON values; `pinned` says that the approved envelope names this tool
    with a ceiling and a number of calls, so the floor of irreversible tools is already answered by a person."""

    tool: str
    args: Mapping[str, object] = field(repr=False)
    pinned: bool = False
