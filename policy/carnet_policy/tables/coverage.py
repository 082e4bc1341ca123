"""Which rules the tests hit. A rule is hit by a call that it decides, or would decide if history and floor were silent;
a history rule by a call whose rules let it through and that passes its bound."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from carnet_policy.decision import Effect
from carnet_policy.explain import Trace
from carnet_policy.policy import Policy

__all__ = ["Coverage", "Hits"]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Hits per rule in file order; `floor` and `default` count apart and never lower the percentage. `floor` is None
    where the policy has no catalog, so no floor."""

    rules: tuple[tuple[str, int], ...]
    floor: int | None
    default: int

    @property
    def missed(self) -> tuple[str, ...]:
        return tuple(name for name, times in self.rules if not times)

    @property
    def percent(self) -> float:
        """Of the rules that were hit; 100 for a policy without rules."""
        return 100.0 if not self.rules else 100.0 * (len(self.rules) - len(self.missed)) / len(self.rules)


class Hits:
    """Collects traces of one policy. Mutable, owned by the caller."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._hits: Counter[str] = Counter()

    def note(self, trace: Trace) -> None:
        """Take in one decided call."""
        base, final = trace.by_rules, trace.decision
        self._hits[base.rule or "default"] += 1
        if base.effect is not Effect.DENY:
            self._hits.update(one.name for one in trace.history if one.state not in ("within", "unknown"))
        if final.rule == "floor":
            self._hits["floor"] += 1

    def coverage(self) -> Coverage:
        """What was hit so far."""
        policy = self._policy
        names = [rule.name for tool in policy.tools.values() for rule in tool.rules]
        names += [rule.name for rule in policy.history]
        return Coverage(
            rules=tuple((name, self._hits[name]) for name in names),
            floor=None if policy.catalog is None else self._hits["floor"],
            default=self._hits["default"],
        )
