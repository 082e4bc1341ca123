"""One constraint as two terms: when a value surely fits it, and when it surely does not; neither = no judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from carnet_policy.constraint import Constraint, type_of
from carnet_policy.export.facts import is_clean, plain_name
from carnet_policy.export.numbers import units_of
from carnet_policy.export.regex import Node, read_regex
from carnet_policy.export.terms import (
    NO,
    All,
    Any,
    Below,
    Equal,
    FoldFree,
    Host,
    KindIn,
    Length,
    Matches,
    Member,
    Missing,
    NamesWithin,
    Over,
    Term,
    TextIn,
    Truth,
    Within,
    both,
    either,
)  # fmt: skip
from carnet_policy.export.unmapped import CanNotMap
from carnet_policy.judging import Reading

__all__ = ["KINDS", "Answer", "Target", "fields_answer"]

KINDS = ("string", "integer", "number", "boolean", "null", "array", "object", "nonfinite", "other")
NUMBERS = ("integer", "number")


@dataclass(frozen=True, slots=True)
class Target:
    """What one language has. `check_regex` and `check_text` raise CanNotMap for a pattern or a text that it can not
    say; `no_lists` tells why elements of lists can not be judged, None if they can."""

    check_regex: Callable[[Node], object]
    check_text: Callable[[str], object]
    no_lists: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    yes: Term
    no: Term


def fields_answer(rules: Mapping[str, Constraint], reading: Reading, target: Target, *, closed: bool) -> Answer:
    """All named arguments together. closed: one that is not named means no. Errors: CanNotMap."""
    yes: list[Term] = []
    no: list[Term] = []
    for name, rule in rules.items():
        if not plain_name(name) or name == "\ufffd":
            raise CanNotMap("an argument of this name can not be handed to other engines", name)
        try:
            target.check_text(name)
            inner = _answer(rule, reading, target)
        except CanNotMap as problem:
            raise problem.inside(name) from None
        absent = rule.required is False
        yes.append(either([Member(name, inner.yes), Missing(name)]) if absent else Member(name, inner.yes))
        no += [Member(name, inner.no)] if inner.no != NO else []
        no += [] if absent else [Missing(name)]
    if closed:
        names = tuple(rules)
        yes.insert(0, NamesWithin(names, True))
        no.append(NamesWithin(names, False))
    return Answer(both(yes), either(no))


def _answer(rule: Constraint, reading: Reading, target: Target) -> Answer:
    sizes = [*_sizes(rule)]
    checks = [*_numbers(rule), *_strings(rule, target), *_members(rule, target), *_inner(rule, reading, target)]
    fits = _kinds(rule.type)
    others = tuple(kind for kind in KINDS if kind not in fits)
    # Sizes come first everywhere: some engines do not survive a pattern over a very long text.
    sized = both(size.yes for size in sizes)
    yes = both([KindIn(fits), sized, *(check.yes for check in checks)])
    wrong = [*(size.no for size in sizes), *(both([sized, check.no]) for check in checks)]
    no = both([KindIn(fits), either(wrong)])
    if rule.declared_only and not sizes and not checks:
        strange = tuple(kind for kind in others if kind != "nonfinite")
        no = either([no, KindIn(strange)]) if strange else no
    return _nonempty(yes, no) if rule.required else Answer(yes, no)


def _kinds(wanted: str | None) -> tuple[str, ...]:
    if wanted is None:
        return tuple(kind for kind in KINDS if kind != "nonfinite")
    return NUMBERS if wanted == "number" else (wanted,)


def _nonempty(yes: Term, no: Term) -> Answer:
    blank = Length("<=", 0)
    sized = KindIn(("string", "array"))
    empty = either([KindIn(("null",)), both([sized, blank])])
    full = either(
        [
            KindIn(tuple(kind for kind in KINDS if kind not in ("string", "array", "null"))),
            both([sized, Length(">", 0)]),
        ]
    )
    return Answer(both([yes, full]), either([no, both([yes, empty])]))


def _numbers(rule: Constraint) -> Iterator[Answer]:
    if rule.min is not None:
        low = _units(rule.min, "min")
        yield Answer(Over(low, True), Below(low, False))
    if rule.max is not None:
        high = _units(rule.max, "max")
        yield Answer(Below(high, True), Over(high, False))


def _units(bound: int | float, word: str) -> int:
    units = units_of(bound)
    if units is None:
        raise CanNotMap(
            f"{word} {bound!r} does not map: exported bounds have up to four decimals and stay below 900,000,000,000",
            word,
        )
    return units


def _sizes(rule: Constraint) -> Iterator[Answer]:
    low = rule.min_length if rule.min_length is not None else rule.min_items
    high = rule.max_length if rule.max_length is not None else rule.max_items
    if low is not None:
        yield Answer(Length(">=", low), Length("<", low))
    if high is not None:
        yield Answer(Length("<=", high), Length(">", high))


def _strings(rule: Constraint, target: Target) -> Iterator[Answer]:
    if rule.pattern is not None and rule.compiled is not None:
        regex = read_regex(rule.pattern)
        target.check_regex(regex)
        first = [FoldFree()] if rule.compiled.folds else []
        yield Answer(both([*first, Matches(regex, True)]), both([*first, Matches(regex, False)]))
    if rule.path_within is not None:
        if any("\ufffd" in part or not is_clean(part) for root in rule.path_within for part in root):
            raise CanNotMap("a folder of path_within holds a character that other engines do not read", "path_within")
        folders = tuple("".join(f"/{part}" for part in root) + "/" for root in rule.path_within)
        for folder in folders:
            _checked(target, folder, "path_within")
        yield Answer(Within(folders, True), Within(folders, False))
    if rule.url_host is not None:
        hosts = tuple(sorted(rule.url_host))
        yield Answer(Host(hosts, True), Host(hosts, False))


def _members(rule: Constraint, target: Target) -> Iterator[Answer]:
    members = rule.enum
    if members is None:
        return
    kinds = frozenset(map(type_of, members))
    if kinds & {"array", "object"}:
        raise CanNotMap("a list or an object in enum or const does not map", "enum")
    words = tuple(dict.fromkeys(member for member in members if isinstance(member, str)))
    if not all(is_clean(word) and "\0" not in word for word in words):
        raise CanNotMap("a text in enum or const holds a character that other engines do not read", "enum")
    for word in words:
        _checked(target, word, "enum")
    numbers = [member for member in members if isinstance(member, int | float) and not isinstance(member, bool)]
    bounds = {_units(number, "enum") for number in numbers}
    truths = {member for member in members if isinstance(member, bool)}
    yes: list[Term] = [both([KindIn((type_of(one),)), Equal(_units(one, "enum"))]) for one in numbers]
    yes += [both([KindIn(("boolean",)), Truth(truth)]) for truth in sorted(truths)]
    yes += [both([KindIn(("string",)), TextIn(words, True)])] if words else []
    yes += [KindIn(("null",))] if "null" in kinds else []
    no: list[Term] = [both([KindIn(("string",)), TextIn(words, False)])] if words else []
    no += [both([KindIn(("boolean",)), Truth(not truth)]) for truth in truths if len(truths) == 1]
    if numbers:
        apart = (either([Below(bound, False), Over(bound, False)]) for bound in sorted(bounds))
        no.append(both([KindIn(NUMBERS), *apart]))
    yield Answer(either(yes), either(no))


def _checked(target: Target, text: str, word: str) -> None:
    try:
        target.check_text(text)
    except CanNotMap as problem:
        raise problem.inside(word) from None


def _inner(rule: Constraint, reading: Reading, target: Target) -> Iterator[Answer]:
    if rule.items is not None:
        if target.no_lists is not None:
            raise CanNotMap(target.no_lists, "items")
        try:
            element = _answer(rule.items, reading, target)
        except CanNotMap as problem:
            raise problem.inside("items") from None
        yield _LISTS[reading](element)
    if rule.properties is not None:
        try:
            yield fields_answer(rule.properties, reading, target, closed=reading is Reading.CLOSED)
        except CanNotMap as problem:
            raise problem.inside("properties") from None


def _every(one: Answer) -> Answer:
    return Answer(All(one.yes), Any(one.no))


def _some(one: Answer) -> Answer:
    return Answer(Any(one.yes), All(one.no))


def _mixed(one: Answer) -> Answer:
    return Answer(All(one.yes), both([Any(one.no), All(one.no)]))


_LISTS = {Reading.CLOSED: _every, Reading.EVERY: _every, Reading.SOME: _some, Reading.MOST: _mixed}
