"""`Policy`: the loaded, compiled form; immutable, made by the loader only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from carnet_policy.catalog import UNKNOWN, ToolFacts
from carnet_policy.constraint import Constraint
from carnet_policy.decision import Decision, Effect, PolicyRef
from carnet_policy.history import HistoryRule, Over
from carnet_policy.rule import Rule

__all__ = ["NO_RULES", "Approvals", "Policy", "ToolRules"]


@dataclass(frozen=True, slots=True)
class Approvals:
    """`timeout` in seconds; `approvers` = groups of which one must answer, empty = anyone with the role."""

    timeout: int = 120
    on_denial: Literal["revoke", "continue"] = "revoke"
    approvers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ToolRules:
    """The rules of one tool, by strictness, each with the decision that it makes."""

    rules: tuple[Rule, ...] = ()
    denies: tuple[tuple[Rule, Decision], ...] = ()
    asks: tuple[tuple[Rule, Decision], ...] = ()
    allows: tuple[tuple[Rule, Decision], ...] = ()


NO_RULES = ToolRules()


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """`catalog` is None when no file has one. `history_ids` maps the stable id of a history rule to its index;
    `texts` are the sources (name, text), from which `loads` makes the very same policy."""

    ref: PolicyRef
    catalog: Mapping[str, ToolFacts] | None
    tools: Mapping[str, ToolRules] = field(repr=False)
    history: tuple[HistoryRule, ...] = field(repr=False)
    default: Effect
    approvals: Approvals
    warnings: tuple[str, ...]
    texts: tuple[tuple[str, str], ...] = field(repr=False)
    _bounding: Mapping[str, tuple[HistoryRule, ...]] = field(repr=False)
    _bounding_unsafe: tuple[HistoryRule, ...] = field(repr=False)

    @property
    def history_ids(self) -> dict[str, int]:
        return {rule.id: rule.index for rule in self.history}

    @property
    def over_client(self) -> bool:
        """Whether some rule counts what a client did outside this run."""
        return any(rule.over is Over.CLIENT for rule in self.history)

    @property
    def client_window(self) -> int:
        """The largest window in seconds, 0 without one."""
        return max((rule.window for rule in self.history), default=0)

    def facts(self, tool: str) -> ToolFacts:
        """What is known of a tool: its catalog entry, with the data classes that its rules name."""
        known = (self.catalog or {}).get(tool, UNKNOWN)
        rules = self.tools.get(tool, NO_RULES).rules
        return ToolFacts(known.effect, known.data_class.union(*(rule.data_class for rule in rules)), known.resource_arg)

    def irreversible(self, tool: str) -> bool:
        """Whether `match: irreversible` means this tool; without a catalog nothing is known, so it may be any."""
        return self.catalog is None or self.catalog.get(tool, UNKNOWN).irreversible

    def bounding(self, tool: str) -> tuple[HistoryRule, ...]:
        """The history rules that match a tool."""
        found = self._bounding.get(tool)
        if found is None:
            return self._bounding_unsafe if self.irreversible(tool) else ()
        return found

    def bounds(self, tool: str) -> bool:
        """Whether some history rule matches, so that a call of this tool needs the ledger that is shared."""
        return bool(self.bounding(tool))

    def asks(self, tool: str) -> bool:
        """Whether a call can end in require_approval: by a rule, the default, the floor or a history rule."""
        return (
            bool(self.tools.get(tool, NO_RULES).asks)
            or self.default is Effect.REQUIRE_APPROVAL
            or (self._floored(tool) and self._allows(tool))
            or any(rule.effect is Effect.REQUIRE_APPROVAL for rule in self.bounding(tool))
        )

    def unasked(self, tool: str, *, pinned: bool) -> bool:
        """Whether some call can end in a plain allow. pinned: as in `Call`."""
        return self._allows(tool) and (pinned or not self._floored(tool))

    def rule_args(self, tool: str) -> frozenset[tuple[str, ...]]:
        """The arguments that a call which is not denied can carry, members of objects as longer paths. Empty where
        they can not be told: no rule names one, or one that no rule names may pass too."""
        rules = self.tools.get(tool, NO_RULES).rules
        if self.default is Effect.ALLOW or any(rule.extra_args for rule in rules):
            return frozenset()
        named = (rule.args for rule in rules if rule.effect is not Effect.DENY)
        return frozenset(path for args in named for path in _leaves(args))

    def _allows(self, tool: str) -> bool:
        return bool(self.tools.get(tool, NO_RULES).allows) or self.default is Effect.ALLOW

    def _floored(self, tool: str) -> bool:
        return self.catalog is not None and self.irreversible(tool)

    def history_args(self, tool: str) -> frozenset[str]:
        """The arguments of a past call that must be kept: those a history rule adds up, and the resource ids."""
        names = {rule.arg for rule in self.bounding(tool)} | {self.facts(tool).resource_arg}
        return frozenset(name for name in names if name is not None)


def _leaves(args: Mapping[str, Constraint], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, rule in args.items():
        if rule.properties:
            yield from _leaves(rule.properties, (*above, name))
        else:
            yield (*above, name)
