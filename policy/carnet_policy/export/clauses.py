"""A policy as a list of clauses, each of which says one thing about the calls that it means.

What a policy answers follows from four sets of calls. `permit`: some allow rule matches. `approve`: some approval rule
matches. `forbid`: some deny rule matches or can not be judged. `hold`: something turns an allow into a question. A call
is denied if forbidden, or neither permitted nor approved; it runs if permitted and not held; else a person is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from carnet_policy.decision import Effect
from carnet_policy.export.judgement import Target, fields_answer
from carnet_policy.export.numbers import units_of
from carnet_policy.export.terms import YES, Term
from carnet_policy.export.unmapped import CanNotMap, Unmapped
from carnet_policy.history import HistoryRule
from carnet_policy.judging import Reading
from carnet_policy.policy import Policy
from carnet_policy.rule import Rule
from carnet_policy.strictyaml import load_yaml

__all__ = ["Clause", "Counter", "Say", "Tools", "clauses_of"]


class Say(Enum):
    """Which of the four sets a clause adds to."""

    PERMIT = "permit"
    APPROVE = "approve"
    FORBID = "forbid"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Tools:
    """The one tool that is meant, or (None) every tool but these."""

    only: str | None = None
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of the past. `test` over: beyond `units`; unusable: missing or not to be counted; young: too new."""

    name: str
    test: str
    units: int = 0


@dataclass(frozen=True, slots=True)
class Clause:
    """`term` is about the arguments; `counter` about the past; `unpinned`: only for calls that no approval pins.
    `unless`: it says so wherever the term is not true, so what can not be judged is on the strict side."""

    say: Say
    tools: Tools
    name: str
    place: str
    term: Term = YES
    unless: bool = False
    counter: Counter | None = None
    unpinned: bool = False
    reason: str | None = None


_READINGS = {Effect.ALLOW: Reading.CLOSED, Effect.DENY: Reading.SOME, Effect.REQUIRE_APPROVAL: Reading.MOST}


def clauses_of(policy: Policy, target: Target) -> tuple[tuple[Clause, ...], tuple[Unmapped, ...]]:
    """All clauses, and all that does not map to the target."""
    clauses: list[Clause] = []
    unmapped: list[Unmapped] = []
    for tool, rules in policy.tools.items():
        for rule in rules.rules:
            try:
                clauses += _of_rule(tool, rule, target)
            except CanNotMap as problem:
                unmapped.append(_unmapped(rule, problem))
    places = _history_places(policy)
    for bound in policy.history:
        try:
            clauses += _of_history(policy, bound, places[bound.index])
        except CanNotMap as problem:
            file, line, column = places[bound.index]
            unmapped.append(Unmapped(file, line, column, f"{bound.name}: {problem.why}"))
    return (*clauses, *_of_default(policy), *_of_floor(policy)), tuple(unmapped)


def _of_rule(tool: str, rule: Rule, target: Target) -> Iterator[Clause]:
    closed = rule.effect is Effect.ALLOW and not rule.extra_args
    answer = fields_answer(rule.args, _READINGS[rule.effect], target, closed=closed)
    line, column = rule.part.document.at(rule.part.path)
    place = _place(rule.part.document.name, line, column)
    one = Tools(only=tool)
    if rule.effect is Effect.ALLOW:
        yield Clause(Say.PERMIT, one, rule.name, place, answer.yes, reason=rule.reason)
    elif rule.effect is Effect.DENY:
        yield Clause(Say.FORBID, one, rule.name, place, answer.no, unless=True, reason=rule.reason)
    else:
        yield Clause(Say.APPROVE, one, rule.name, place, answer.yes, reason=rule.reason)
        yield Clause(Say.HOLD, one, rule.name, place, answer.no, unless=True, reason=rule.reason)


def _place(name: str, line: int, column: int) -> str:
    """For a comment: a name can not end its line."""
    return f"{name if name.isprintable() else ascii(name)}:{line}:{column}"


def _unmapped(rule: Rule, problem: CanNotMap) -> Unmapped:
    document = rule.part.document
    path = (*rule.part.path, "args", *problem.path)
    line, column = document.at(path)
    about = ".".join(step for step in problem.path[:-1] if step not in ("items", "properties"))
    why = f"{rule.name}: {about}: {problem.why}" if about else f"{rule.name}: {problem.why}"
    return Unmapped(document.name, line, column, why)


def _history_places(policy: Policy) -> list[tuple[str, int, int]]:
    places = []
    for name, text in policy.texts:
        document = load_yaml(text, name)
        entries: object = document.value.get("history") if isinstance(document.value, Mapping) else None
        count = len(entries) if isinstance(entries, list) else 0
        places += [(name, *document.at(("history", index))) for index in range(count)]
    return places


def _of_history(policy: Policy, rule: HistoryRule, place: tuple[str, int, int]) -> Iterator[Clause]:
    units = units_of(rule.max)
    if units is None:
        raise CanNotMap(f"max {rule.max} does not map: other engines compare numbers of up to four decimals")
    tools = Tools(only=rule.tool) if rule.tool is not None else _unsafe(policy)
    where = _place(*place)
    say = Say.FORBID if rule.effect is Effect.DENY else Say.HOLD
    yield Clause(Say.FORBID, tools, rule.name, where, counter=Counter(rule.name, "unusable"))
    yield Clause(say, tools, rule.name, where, counter=Counter(rule.name, "over", units), reason=rule.reason)
    yield Clause(Say.HOLD, tools, rule.name, where, counter=Counter(rule.name, "young"))


def _unsafe(policy: Policy) -> Tools:
    known = policy.catalog or {}
    return Tools(but=tuple(sorted(tool for tool in known if not policy.irreversible(tool))))


def _of_default(policy: Policy) -> Iterator[Clause]:
    if policy.default is not Effect.DENY:
        say = Say.PERMIT if policy.default is Effect.ALLOW else Say.APPROVE
        yield Clause(say, Tools(), "default", _place(policy.texts[0][0], 1, 1))


def _of_floor(policy: Policy) -> Iterator[Clause]:
    if policy.catalog is not None:
        reason = "what can not be undone is for a person, unless the approved envelope pins it"
        yield Clause(Say.HOLD, _unsafe(policy), "floor", _place(policy.texts[0][0], 1, 1), unpinned=True, reason=reason)
