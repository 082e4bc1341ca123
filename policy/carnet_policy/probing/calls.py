"""Calls of one tool at the edges of its rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from carnet_policy.constraint import Constraint
from carnet_policy.probing.values import STRANGERS, distinct, probe_values, witness
from carnet_policy.rule import Rule

__all__ = ["Probes", "probe_calls"]

MOST = 20_000  # calls of one tool
UNNAMED = "an_argument_that_no_rule_names"

Args = dict[str, object]


@dataclass(frozen=True, slots=True)
class Probes:
    """`bases` are the calls that each rule is meant for, `calls` those and what lies around them. `blind` tells, in
    words, what could not be probed."""

    bases: tuple[Args, ...]
    calls: tuple[Args, ...]
    blind: tuple[str, ...]


def probe_calls(rules: Sequence[Rule], extra: Mapping[str, Sequence[object]] | None = None) -> Probes:
    """For the rules of one tool, of one policy or of several. `extra`: further arguments of the tool with values worth
    trying, as from its input schema."""
    extra = extra or {}
    blind: list[str] = []
    bases = [{}, *(base for rule in rules for base in _bases(rule, blind))]
    if extra:
        bases.append({name: values[0] for name, values in extra.items() if values})
    bases = _once(bases)
    values = _values(rules, extra)
    calls = _limited(_around(bases, values))
    if len(calls) == MOST:
        blind.append(f"more than {MOST} calls lie at the edges; the rest was not tried")
    return Probes(tuple(bases), calls, tuple(dict.fromkeys(blind)))


def _bases(rule: Rule, blind: list[str]) -> Iterator[Args]:
    needed: Args = {}
    possible: Args = {}
    for name, constraint in rule.args.items():
        found = witness(constraint)
        if found is not None:
            possible[name] = found[0]
            if constraint.required is not False:
                needed[name] = found[0]
        else:
            blind.append(f"{rule.name}: no value was found that fits {name}")
    yield possible
    if needed != possible:
        yield needed


def _values(rules: Iterable[Rule], extra: Mapping[str, Sequence[object]]) -> dict[str, tuple[object, ...]]:
    found: dict[str, list[Constraint]] = {}
    for rule in rules:
        for name, constraint in rule.args.items():
            found.setdefault(name, []).append(constraint)
    values = {name: distinct(v for one in many for v in probe_values(one)) for name, many in found.items()}
    for name, more in extra.items():
        values[name] = distinct([*values.get(name, ()), *more, *STRANGERS])
    return values


def _around(bases: Sequence[Args], values: Mapping[str, Sequence[object]]) -> Iterator[Args]:
    """One argument at a time around every base, then two at a time."""
    yield from bases
    for base in bases:
        yield {**base, UNNAMED: "x"}
        for name in base:
            yield {other: value for other, value in base.items() if other != name}
        for name, some in values.items():
            for value in some:
                yield {**base, name: value}
    for base in bases:
        yield from _pairs(base, values)


def _pairs(base: Args, values: Mapping[str, Sequence[object]]) -> Iterator[Args]:
    names = list(values)
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            for mine in values[one]:
                for theirs in values[other]:
                    yield {**base, one: mine, other: theirs}


def _once(calls: Iterable[Args]) -> list[Args]:
    return list({json.dumps(args, sort_keys=True): args for args in calls}.values())


def _limited(calls: Iterable[Args]) -> tuple[Args, ...]:
    found: dict[str, Args] = {}
    for args in calls:
        found.setdefault(json.dumps(args, sort_keys=True), args)
        if len(found) == MOST:
            break
    return tuple(found.values())
