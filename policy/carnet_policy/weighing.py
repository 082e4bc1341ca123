"""Why one value fits a constraint or not: each word of the constraint judged alone, by the engine's own judges.

Findings explain; they never decide. The verdict over all words is that of the compiled constraint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from carnet_policy.constraint import Constraint, fits_type
from carnet_policy.excerpt import excerpt, label
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.reading import is_number

__all__ = ["Finding", "weigh"]

MAX_FINDINGS = 24
_PLAIN = ("min", "max", "min_length", "max_length", "min_items", "max_items")
_HOW_MANY = {
    Reading.CLOSED: "every element",
    Reading.EVERY: "every element",
    Reading.SOME: "at least one element",
    Reading.MOST: "every element (some: in doubt)",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`where` is a path like `lines[2].sku`; `answer` None = the value can not be judged. `value` is short and safe to
    print; empty where a member is missing."""

    where: str
    word: str
    wanted: str
    value: str
    answer: bool | None

    @property
    def sentence(self) -> str:
        if self.word == "missing":
            return f"{self.where} is missing"
        if self.word == "unnamed":
            return f"{self.where} is not named by the rule"
        verb = {True: "satisfies", False: "does not satisfy", None: "can not be judged by"}[self.answer]
        return f"{self.where}: {self.value} {verb} {self.word}{' ' if self.wanted else ''}{self.wanted}"


def weigh(where: str, rule: Constraint, value: object, reading: Reading) -> tuple[Finding, ...]:
    """The findings about one present value, at most MAX_FINDINGS of them."""
    found: list[Finding] = []
    for finding in _weigh(where, rule, value, reading):
        found.append(finding)
        if len(found) == MAX_FINDINGS:
            break
    return tuple(found)


def _weigh(where: str, rule: Constraint, value: object, reading: Reading) -> Iterator[Finding]:
    seen = excerpt(value)
    if rule.type is not None and not fits_type(value, rule.type):
        yield Finding(where, "type", rule.type, seen, False if rule.declared_only else None)
        return
    if type(value) is float and not is_number(value):
        yield Finding(where, "type", "a finite number", seen, None)
        return
    doubt = False
    for word, wanted, alone in _words(rule):
        answer = compile_judge(alone, reading)(value)
        doubt = doubt or answer is None
        yield Finding(where, word, wanted, seen, answer)
    if rule.required and not doubt and (value is None or value == "" or (type(value) is list and not value)):
        yield Finding(where, "required", "true", seen, False)
    if rule.declared_only and rule.type is not None:
        yield Finding(where, "type", rule.type, seen, True)
    if rule.items is not None and isinstance(value, list):
        yield from _elements(where, rule.items, value, reading)
    if rule.properties is not None and isinstance(value, dict):
        yield from _members(where, rule.properties, value, reading)


def _words(rule: Constraint) -> Iterator[tuple[str, str, Constraint]]:
    for word in _PLAIN:
        bound = getattr(rule, word)
        if bound is not None:
            alone = Constraint(type=rule.type, declared_only=False, **{word: bound})
            yield word, excerpt(bound), alone
    if rule.compiled is not None:
        alone = Constraint(type=rule.type, pattern=rule.pattern, compiled=rule.compiled, declared_only=False)
        yield "pattern", excerpt(rule.pattern), alone
    if rule.enum is not None:
        yield "enum", excerpt(list(rule.enum)), Constraint(enum=rule.enum, declared_only=False)
    if rule.path_within is not None:
        folders = ["/" + "/".join(parts) for parts in rule.path_within]
        alone = Constraint(type="string", path_within=rule.path_within, declared_only=False)
        yield "path_within", excerpt(folders), alone
    if rule.url_host is not None:
        alone = Constraint(type="string", url_host=rule.url_host, declared_only=False)
        yield "url_host", excerpt(sorted(rule.url_host)), alone


def _elements(where: str, rule: Constraint, value: list[object], reading: Reading) -> Iterator[Finding]:
    whole = Constraint(type="array", items=rule, declared_only=False)
    answer = compile_judge(whole, reading)(value)
    yield Finding(where, "items", f"({_HOW_MANY[reading]})", excerpt(value), answer)
    if answer is not True:
        judge = compile_judge(rule, reading)
        for index, element in enumerate(value):
            if judge(element) is not True:
                yield from _weigh(f"{where}[{index}]", rule, element, reading)


def _members(
    where: str, properties: Mapping[str, Constraint], value: Mapping[str, object], reading: Reading
) -> Iterator[Finding]:
    for name, rule in properties.items():
        if name in value:
            yield from _weigh(f"{where}.{name}", rule, value[name], reading)
        elif rule.required is not False:
            yield Finding(f"{where}.{name}", "missing", "", "", False)
    if reading is Reading.CLOSED:
        for name in value:
            if name not in properties:
                yield Finding(f"{where}.{label(name)}", "unnamed", "", excerpt(value[name]), False)
