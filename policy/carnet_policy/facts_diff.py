"""What changes between two policies beside the decisions of single calls: facts that derivation and approvals use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from carnet_policy.policy import Policy

__all__ = ["FactChange", "compare_facts"]

_RANKS = {"read": 0, "write": 1, "irreversible": 2, None: 3}


@dataclass(frozen=True, slots=True)
class FactChange:
    """`wider`: the change lets more happen, or lets it happen with less asking."""

    what: str
    before: str
    after: str
    wider: bool


def compare_facts(old: Policy, new: Policy, tools: Iterable[str]) -> tuple[FactChange, ...]:
    """Effects, data classes and resource arguments of the tools; then the terms of approvals."""
    found = [change for tool in tools for change in _of_tool(old, new, tool)]
    return (*found, *_of_approvals(old, new))


def _of_tool(old: Policy, new: Policy, tool: str) -> Iterator[FactChange]:
    one, other = old.facts(tool), new.facts(tool)
    if one.effect != other.effect:
        less = _RANKS[other.effect] < _RANKS[one.effect]
        yield FactChange(f"{tool}: effect", one.effect or "unknown", other.effect or "unknown", less)
    if one.data_class != other.data_class:
        lost = not one.data_class <= other.data_class
        yield FactChange(f"{tool}: data_class", _words(one.data_class), _words(other.data_class), lost)
    if one.resource_arg != other.resource_arg:
        lost = one.resource_arg is not None
        yield FactChange(f"{tool}: resource_arg", one.resource_arg or "none", other.resource_arg or "none", lost)


def _of_approvals(old: Policy, new: Policy) -> Iterator[FactChange]:
    one, other = old.approvals, new.approvals
    if one.timeout != other.timeout:
        yield FactChange("approvals: timeout", f"{one.timeout} s", f"{other.timeout} s", other.timeout > one.timeout)
    if one.on_denial != other.on_denial:
        yield FactChange("approvals: on_denial", one.on_denial, other.on_denial, other.on_denial == "continue")
    if one.approvers != other.approvers:
        # No group at all means that anyone with the role may answer.
        more = bool(one.approvers) and (not other.approvers or not other.approvers <= one.approvers)
        yield FactChange("approvals: approvers", _words(one.approvers), _words(other.approvers), more)


def _words(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"
