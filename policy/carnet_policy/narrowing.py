"""`narrower`: a child admits nothing that its parent refuses; what can not be compared is not narrower."""

from __future__ import annotations

from collections.abc import Mapping

from carnet_policy.ceilings import compile_constraints
from carnet_policy.constraint import Constraint
from carnet_policy.errors import PolicyError
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.places import is_within

__all__ = ["narrower"]

Raw = Mapping[str, Mapping[str, object]]


def narrower(child: Raw, parent: Raw) -> bool:
    """True only if every call that the child's constraints admit is admitted by the parent's. Constraints that do not
    compile are not narrower than anything, nor is anything narrower than they are."""
    try:
        return _all_within(compile_constraints(child, "child").rules, compile_constraints(parent, "parent").rules)
    except (PolicyError, RecursionError, TypeError, AttributeError):
        return False


def _all_within(child: Mapping[str, Constraint], parent: Mapping[str, Constraint]) -> bool:
    return all(name in child and _within(child[name], rule) for name, rule in parent.items())


def _within(child: Constraint, parent: Constraint) -> bool:
    if _presence(child) < _presence(parent):
        return False
    if child.enum is not None:
        admitted, judge = compile_judge(child, Reading.EVERY), compile_judge(parent, Reading.EVERY)
        return all(judge(member) is True for member in child.enum if admitted(member) is True)
    return parent.enum is None and _typed(child, parent) and _ranged(child, parent) and _shaped(child, parent)


def _presence(rule: Constraint) -> int:
    return 2 if rule.required else 0 if rule.required is False else 1


def _typed(child: Constraint, parent: Constraint) -> bool:
    return parent.type in (None, child.type) or (parent.type == "number" and child.type == "integer")


def _ranged(child: Constraint, parent: Constraint) -> bool:
    lows = ((child.min, parent.min), (child.min_length, parent.min_length), (child.min_items, parent.min_items))
    highs = ((child.max, parent.max), (child.max_length, parent.max_length), (child.max_items, parent.max_items))
    return all(theirs is None or (own is not None and own >= theirs) for own, theirs in lows) and all(
        theirs is None or (own is not None and own <= theirs) for own, theirs in highs
    )


def _shaped(child: Constraint, parent: Constraint) -> bool:
    if parent.pattern is not None and child.pattern != parent.pattern:
        return False
    if parent.url_host is not None and (child.url_host is None or not child.url_host <= parent.url_host):
        return False
    if parent.path_within is not None and not _below(child.path_within, parent.path_within):
        return False
    if parent.items is not None and (child.items is None or not _within(child.items, parent.items)):
        return False
    return parent.properties is None or (
        child.properties is not None and _all_within(child.properties, parent.properties)
    )


def _below(child: tuple[tuple[str, ...], ...] | None, parent: tuple[tuple[str, ...], ...]) -> bool:
    return child is not None and all(any(is_within(root, other) for other in parent) for root in child)
