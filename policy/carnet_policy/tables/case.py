"""What a test file says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from carnet_policy.decision import Call, Effect

__all__ = ["FREES", "HOLDS", "NOW", "REASONS", "WAITS", "Case", "Expected", "Past", "Table"]

NOW = 1_000_000_000  # the moment of every tested call, in seconds; ages of past calls count back from it

# The reason codes of a decision that a policy makes.
REASONS = (
    *("policy_allow", "policy_deny", "policy_approval", "no_match", "unknown_tool"),
    *("history_limit", "history_value", "history_recent", "irreversible_floor", "policy_error"),
)

# What became of a past call, and so whether it still holds a slot. A failed one does where it can not be undone.
HOLDS = ("ok", "done", "running", "unknown")
WAITS = ("pending", "waiting")
FREES = ("denied", "refused", "timed_out", "withdrawn", "superseded", "lapsed")


@dataclass(frozen=True, slots=True)
class Past:
    """A past call; `age` in seconds before the tested one."""

    tool: str
    args: Mapping[str, object] = field(repr=False)
    outcome: str = "ok"
    age: int = 60


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be true of the decision; None = not said. `contains` is a part of the sentence, in any case."""

    decision: Effect
    rule: str | None = None
    reason: str | None = None
    contains: str | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One call, its past in this run and in other runs of the client, and what must come of it. `cell`: from a
    matrix."""

    name: str
    call: Call
    expected: Expected
    line: int
    history: tuple[Past, ...] = ()
    client_history: tuple[Past, ...] = ()
    cell: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One test file. `policies` are the files of the policy, as written; empty = the one beside the test file."""

    file: str
    policies: tuple[str, ...]
    cases: tuple[Case, ...]
