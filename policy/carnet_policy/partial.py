"""What can be said of a call of which some arguments are not known: every answer that may come of it, never a guess.

Rules are looked at one by one, so an answer may be named that no single value brings about. One that is not named can
not come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from carnet_policy.decision import Effect
from carnet_policy.policy import NO_RULES, Policy
from carnet_policy.rule import Rule

__all__ = ["possible_by_rules", "possible_effects"]

Answers = frozenset[bool | None]
_ANY: Answers = frozenset({True, False, None})
_STRICTNESS = {Effect.ALLOW: 0, Effect.REQUIRE_APPROVAL: 1, Effect.DENY: 2}


def possible_effects(
    policy: Policy,
    tool: str,
    known: Mapping[str, object],
    hidden: frozenset[str],
    bounds: Iterable[frozenset[Effect | None]] = (),
    pinned: bool | None = False,
) -> frozenset[Effect]:
    """The effects that a call may have. `hidden` arguments are there, with any value. `bounds`: per history rule what
    it may say, None = it is content. `pinned` None = not known."""
    by_rules = possible_by_rules(policy, tool, known, hidden)
    bounds = [one for one in bounds if one != {None}]
    floored = policy.catalog is not None and policy.irreversible(tool)
    pins = {False, True} if pinned is None else {pinned}
    said = _strictest(bounds)
    found = set()
    for base, history, pin in product(by_rules, said, pins):
        answer = base if history is None else max(base, history, key=_STRICTNESS.__getitem__)
        if answer is Effect.ALLOW and floored and not pin:
            answer = Effect.REQUIRE_APPROVAL
        found.add(answer)
    return frozenset(found)


def _strictest(bounds: Iterable[frozenset[Effect | None]]) -> set[Effect | None]:
    """What several history rules may say together."""
    together: set[Effect | None] = {None}
    for one in bounds:
        together = {
            max((a, b), key=lambda effect: -1 if effect is None else _STRICTNESS[effect])
            for a, b in product(together, one)
        }
    return together


def possible_by_rules(
    policy: Policy, tool: str, known: Mapping[str, object], hidden: frozenset[str]
) -> frozenset[Effect]:
    """What the rules alone may say, before history and floor."""
    rules = policy.tools.get(tool, NO_RULES)
    denies = [_answers(rule, known, hidden) for rule, _ in rules.denies]
    asks = [_answers(rule, known, hidden) for rule, _ in rules.asks]
    allows = [_answers(rule, known, hidden) for rule, _ in rules.allows]
    found: set[Effect] = set()
    if any(one & {True, None} for one in denies):
        found.add(Effect.DENY)
    if any(False not in one for one in denies):
        return frozenset(found)
    if any(True in one for one in asks):
        found.add(Effect.REQUIRE_APPROVAL)
    if any(one == {True} for one in asks):
        return frozenset(found)
    if any(True in one for one in allows):
        found |= _let_through(asks)
    if not any(one == {True} for one in allows):
        found |= _let_through(asks) if policy.default is Effect.ALLOW else {policy.default}
    return frozenset(found)


def _let_through(asks: Iterable[Answers]) -> set[Effect]:
    """An allow, or the question that a rule which can not judge an argument makes of it."""
    asks = list(asks)
    found = {Effect.REQUIRE_APPROVAL} if any(None in one for one in asks) else set()
    return found | (set() if any(one == {None} for one in asks) else {Effect.ALLOW})


def _answers(rule: Rule, known: Mapping[str, object], hidden: frozenset[str]) -> Answers:
    named = frozenset(name for name, _, _ in rule.fields)
    if not hidden & named:
        unnamed = rule.effect is Effect.ALLOW and not rule.extra_args and bool(hidden)
        return frozenset({False}) if unnamed else frozenset({rule.matches(known)})
    if rule.effect is Effect.ALLOW and not rule.extra_args and not named.issuperset([*known, *hidden]):
        return frozenset({False})
    for name, judge, optional in rule.fields:
        if name in known:
            if judge(known[name]) is False:
                return frozenset({False})
        elif name not in hidden and not optional:
            return frozenset({False})
    return _ANY
