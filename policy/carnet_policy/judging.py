"""Constraints compiled to closures with three answers: True, False, and None for "this can not be judged".

A value that is not of the type which a constraint judges is not simply "no": an allow takes None as no, a deny takes it
as yes. One exception is a constraint that asks for the type alone, which judges every value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from typing import Any

from carnet_policy.constraint import Constraint, fits_type, same, type_of
from carnet_policy.places import host_of, is_within, segments_of

__all__ = ["Judge", "Reading", "compile_judge"]

Judge = Callable[[Any], bool | None]


class Reading(Enum):
    """How a rule reads lists and objects."""

    CLOSED = "allow: every element must match, and an object holds nothing that is not named"
    EVERY = "ceiling: every element must match; unnamed members are not bounded"
    SOME = "deny: one matching element is enough; unnamed members do not matter"
    MOST = "require_approval: as SOME, but a list of which only some elements match stays in doubt"


def compile_judge(rule: Constraint, reading: Reading) -> Judge:
    """The judge of one present value."""
    checks = [*_numbers(rule), *_sizes(rule), *_strings(rule), *_members(rule), *_inner(rule, reading)]
    judge = _guard(rule, checks)
    return _nonempty(judge) if rule.required else judge


def _guard(rule: Constraint, checks: list[Judge]) -> Judge:
    fits = _typed(rule.type)
    wrong = False if rule.declared_only else None
    if len(checks) == 1:
        only = checks[0]
        if rule.type == "string":  # the most frequent kind, without a call that asks for the type
            return lambda value: only(value) if type(value) is str else wrong
        return lambda value: only(value) if fits(value) else wrong
    if not checks:
        return lambda value: fits(value) or (None if _is_nonfinite(value) else wrong)

    def judge(value: object) -> bool | None:
        if not fits(value):
            return wrong
        doubt = False
        for check in checks:
            answer = check(value)
            if answer is False:
                return False
            doubt = doubt or answer is None
        return None if doubt else True

    return judge


def _typed(wanted: str | None) -> Callable[[object], bool]:
    if wanted == "string":
        return lambda value: type(value) is str
    if wanted is None:
        return lambda value: not _is_nonfinite(value)
    return lambda value: fits_type(value, wanted)


def _is_nonfinite(value: object) -> bool:
    return type(value) is float and not isfinite(value)


def _nonempty(judge: Judge) -> Judge:
    # A value of the wrong type stays in doubt before it is called empty, so null can not dodge a deny.
    def required(value: object) -> bool | None:
        answer = judge(value)
        if answer is None or not (value is None or value == "" or (type(value) is list and not value)):
            return answer
        return False

    return required


def _numbers(rule: Constraint) -> list[Judge]:
    low, high = rule.min, rule.max
    if low is not None and high is not None:
        return [lambda value: low <= value <= high]
    if low is not None:
        return [lambda value: value >= low]
    return [] if high is None else [lambda value: value <= high]


def _sizes(rule: Constraint) -> list[Judge]:
    low = rule.min_length if rule.min_length is not None else rule.min_items
    high = rule.max_length if rule.max_length is not None else rule.max_items
    if low is None and high is None:
        return []
    least, most = low or 0, high if high is not None else 1 << 62
    return [lambda value: least <= len(value) <= most]


def _strings(rule: Constraint) -> list[Judge]:
    found: list[Judge] = []
    if rule.compiled is not None:
        found.append(rule.compiled.judge)
    if rule.path_within is not None:
        found.append(_path(rule.path_within))
    if rule.url_host is not None:
        found.append(_host(rule.url_host))
    return found


def _path(roots: tuple[tuple[str, ...], ...]) -> Judge:
    def judge(value: Any) -> bool | None:
        parts = segments_of(str(value))
        return None if parts is None else any(is_within(parts, root) for root in roots)

    return judge


def _host(hosts: frozenset[str]) -> Judge:
    def judge(value: Any) -> bool | None:
        host = host_of(str(value))
        return None if host is None else host in hosts

    return judge


def _members(rule: Constraint) -> list[Judge]:
    members = rule.enum
    if members is None:
        return []
    kinds = frozenset(map(type_of, members))
    if kinds == {"string"}:
        words = frozenset(map(str, members))
        return [lambda value: value in words if type(value) is str else None]

    def judge(value: Any) -> bool | None:
        if any(same(value, member) for member in members):
            return True
        kind = type_of(value)
        if kind in ("integer", "number") and kinds & {"integer", "number"}:
            # 1.0 is not the member 1, but a tool may take it for that.
            return None if any(value == member for member in members if type_of(member) != "boolean") else False
        return False if kind in kinds else None

    return [judge]


def _inner(rule: Constraint, reading: Reading) -> list[Judge]:
    found: list[Judge] = []
    if rule.items is not None:
        element = compile_judge(rule.items, reading)
        found.append(_LISTS[reading](element))
    if rule.properties is not None:
        found.append(_object(rule.properties, reading))
    return found


def _every(element: Judge) -> Judge:
    def judge(value: Any) -> bool | None:
        answers = [element(inner) for inner in value]
        return False if False in answers else None if None in answers else True

    return judge


def _some(element: Judge) -> Judge:
    def judge(value: Any) -> bool | None:
        answers = [element(inner) for inner in value]
        return True if True in answers else None if None in answers else False

    return judge


def _mixed(element: Judge) -> Judge:
    every, some = _every(element), _some(element)

    def judge(value: Any) -> bool | None:
        answer = every(value)
        return None if answer is False and some(value) is not False else answer

    return judge


_LISTS = {Reading.CLOSED: _every, Reading.EVERY: _every, Reading.SOME: _some, Reading.MOST: _mixed}


def _object(properties: Mapping[str, Constraint], reading: Reading) -> Judge:
    fields = [(name, compile_judge(rule, reading), rule.required is False) for name, rule in properties.items()]
    names = frozenset(properties)

    def judge(value: Any) -> bool | None:
        members: dict[str, object] = value
        if reading is Reading.CLOSED and not members.keys() <= names:
            return False
        doubt = False
        for name, inner, optional in fields:
            if name in members:
                answer = inner(members[name])
                if answer is False:
                    return False
                doubt = doubt or answer is None
            elif not optional:
                return False
        return None if doubt else True

    return judge
