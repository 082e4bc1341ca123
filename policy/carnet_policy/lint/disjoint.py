"""Whether two rules can never match one call together. "Not certain" counts as no."""

from __future__ import annotations

from collections.abc import Mapping

from carnet_policy.constraint import Constraint, type_of
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.places import is_within

__all__ = ["apart"]


def apart(one: Mapping[str, Constraint], other: Mapping[str, Constraint], besides: str = "", before: str = "") -> bool:
    """Whether some argument that both sides need has no value that both take; the one labelled `besides` is not
    looked at."""
    return any(
        _apart(rule, other[name], besides, f"{before}{name}")
        for name, rule in one.items()
        if name in other
        and rule.required is not False
        and other[name].required is not False
        and f"{before}{name}" != besides
    )


def _apart(one: Constraint, other: Constraint, besides: str, label: str) -> bool:
    if one.enum is not None and other.enum is not None and not any(member in other.enum for member in one.enum):
        return True  # told cheaply: equality takes more for the same than a judge does
    for mine, theirs in ((one, other), (other, one)):
        if mine.enum is not None:
            judge = compile_judge(theirs, Reading.MOST)
            return all(judge(member) is False or _mistyped(member, theirs) for member in mine.enum)
    types = {one.type, other.type}
    if None not in types and len(types) == 2 and types != {"number", "integer"}:
        return True
    if _beyond(one.min, other.max) or _beyond(other.min, one.max):
        return True
    if one.url_host is not None and other.url_host is not None and not one.url_host & other.url_host:
        return True
    if one.path_within is not None and other.path_within is not None:
        pairs = ((mine, theirs) for mine in one.path_within for theirs in other.path_within)
        if not any(is_within(mine, theirs) or is_within(theirs, mine) for mine, theirs in pairs):
            return True
    return apart(one.properties or {}, other.properties or {}, besides, f"{label}.")


def _mistyped(member: object, rule: Constraint) -> bool:
    kind = type_of(member)
    return rule.type is not None and kind != rule.type and (kind, rule.type) != ("integer", "number")


def _beyond(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low > high
