"""Whether one rule always answers instead of another. "Not certain" counts as no, so a finding is always right.

`covers(wide, narrow)`: whenever `narrow` has a say, `wide` has one that is as strict. A deny or an approval rule also
has a say about what it can not judge, so there the doubts must be covered too.
"""

from __future__ import annotations

from collections.abc import Mapping

from carnet_policy.constraint import Constraint, type_of
from carnet_policy.decision import Effect
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.places import is_within
from carnet_policy.rule import Rule

__all__ = ["STRICTNESS", "covers"]

STRICTNESS = {Effect.ALLOW: 0, Effect.REQUIRE_APPROVAL: 1, Effect.DENY: 2}


def covers(wide: Rule, narrow: Rule) -> bool:
    if STRICTNESS[wide.effect] < STRICTNESS[narrow.effect]:
        return False
    if wide.effect is Effect.ALLOW and not wide.extra_args and (narrow.extra_args or narrow.args.keys() - wide.args):
        return False
    return _Implication(wide.effect, narrow.effect).of_all(narrow.args, wide.args)


class _Implication:
    def __init__(self, wide: Effect, narrow: Effect) -> None:
        self.closed = wide is Effect.ALLOW
        self.doubts = narrow is not Effect.ALLOW
        # A deny needs one matching element, the others are content with an empty list.
        self.needs_element = wide is Effect.DENY and narrow is not Effect.DENY
        self.reading = {Effect.DENY: Reading.SOME, Effect.REQUIRE_APPROVAL: Reading.MOST, Effect.ALLOW: Reading.CLOSED}[
            wide
        ]

    def of_all(self, narrow: Mapping[str, Constraint], wide: Mapping[str, Constraint]) -> bool:
        return all(self.of_one(narrow.get(name), rule) for name, rule in wide.items())

    def of_one(self, narrow: Constraint | None, wide: Constraint) -> bool:
        """Every value (or absence) that `narrow` takes is taken by `wide`."""
        if narrow is None or _presence(narrow) < _presence(wide):
            return False
        if self.doubts and not _doubts_alike(narrow, wide):
            return False
        if narrow.enum is not None:
            if wide.enum is not None and not any(member in wide.enum for member in narrow.enum):
                return False  # told cheaply: some member fits, or the rule would not have loaded
            judge, own = compile_judge(wide, self.reading), compile_judge(narrow, self.reading)
            return all(judge(member) is True for member in narrow.enum if own(member) is True)
        return (
            wide.enum is None
            and (wide.type in (None, narrow.type) or (wide.type, narrow.type) == ("number", "integer"))
            and _ranged(narrow, wide)
            and _shaped(narrow, wide)
            and self._inner(narrow, wide)
        )

    def _inner(self, narrow: Constraint, wide: Constraint) -> bool:
        if wide.items is not None:
            if narrow.items is None or not self.of_one(narrow.items, wide.items):
                return False
            if self.needs_element and not (narrow.required or (narrow.min_items or 0) > 0):
                return False
        if wide.properties is None:
            return True
        if narrow.properties is None or (self.closed and narrow.properties.keys() - wide.properties):
            return False
        return self.of_all(narrow.properties, wide.properties)


def _presence(rule: Constraint) -> int:
    return 2 if rule.required else 0 if rule.required is False else 1


def _doubts_alike(narrow: Constraint, wide: Constraint) -> bool:
    """Whether everything that `narrow` can not judge is matched or not judged by `wide` either."""
    kinds = [None if rule.enum is None else frozenset(map(type_of, rule.enum)) for rule in (narrow, wide)]
    return narrow.type == wide.type and (narrow.declared_only or not wide.declared_only) and kinds[0] == kinds[1]


def _ranged(narrow: Constraint, wide: Constraint) -> bool:
    lows = ((narrow.min, wide.min), (narrow.min_length, wide.min_length), (narrow.min_items, wide.min_items))
    highs = ((narrow.max, wide.max), (narrow.max_length, wide.max_length), (narrow.max_items, wide.max_items))
    return all(bound is None or (own is not None and own >= bound) for own, bound in lows) and all(
        bound is None or (own is not None and own <= bound) for own, bound in highs
    )


def _shaped(narrow: Constraint, wide: Constraint) -> bool:
    if wide.pattern is not None and narrow.pattern != wide.pattern:
        return False
    if wide.url_host is not None and (narrow.url_host is None or not narrow.url_host <= wide.url_host):
        return False
    if wide.path_within is None:
        return True
    return narrow.path_within is not None and all(
        any(is_within(root, other) for other in wide.path_within) for root in narrow.path_within
    )
