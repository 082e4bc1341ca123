"""What loads, but is worth a second look by its author."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carnet_policy.catalog import UNKNOWN, ToolFacts
from carnet_policy.decision import Effect
from carnet_policy.history import HistoryRule
from carnet_policy.rule import Rule
from carnet_policy.sensitivity import doubt

__all__ = ["warnings_of"]


def warnings_of(
    catalog: Mapping[str, ToolFacts] | None,
    rules: Mapping[str, Sequence[Rule]],
    history: Sequence[HistoryRule],
    default: Effect,
) -> tuple[str, ...]:
    """One sentence per finding, in a stable order."""
    found = []
    if default is not Effect.DENY:
        found.append(f"the default is {default}: what no rule names gets through")
    if catalog is None:
        found.append("no catalog: effects are unknown here, every tool counts for match: irreversible")
    else:
        tools = dict.fromkeys([*catalog, *rules])
        unknown = [tool for tool in tools if catalog.get(tool, UNKNOWN).effect is None]
        found += [f"{tool} has no effect in the catalog, so it counts as irreversible" for tool in unknown]
    for tool, facts in (catalog or {}).items():
        found += _of_classes(tool, facts.data_class)
    known = set(rules) | set(catalog or {})
    found += [
        f"{rule.name} matches the tool {rule.tool}, which no rule names"
        for rule in history
        if rule.tool is not None and rule.tool not in known
    ]
    for tool_rules in rules.values():
        for rule in tool_rules:
            found += _of_rule(rule)
    return tuple(found)


def _of_classes(what: str, words: frozenset[str]) -> list[str]:
    return [f"{what}: {told}" for word in sorted(words) if (told := doubt(word)) is not None]


def _of_rule(rule: Rule) -> list[str]:
    found = _of_classes(rule.name, rule.data_class)
    for name, constraint in rule.args.items():
        if rule.effect is Effect.ALLOW and constraint.max is not None and constraint.min is None:
            found.append(f"{rule.name}: {name} has a max and no min, so it is unbounded below (negative numbers match)")
        if rule.effect is Effect.DENY and constraint.compiled is not None and constraint.compiled.dot_stops:
            found.append(f"{rule.name}: . in the pattern of {name} stops at a line break; begin it with (?s)")
    return found
