"""The constraints of a rule one by one, those inside lists and objects included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from carnet_policy.constraint import Constraint
from carnet_policy.lint.finding import Code, Finding, Severity
from carnet_policy.lint.subject import Step, judged
from carnet_policy.rule import Rule

__all__ = ["Field", "fields_of"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Field:
    """`label` is what people read (`order.lines[].amount`), `name` the last name in it, `path` where it is."""

    rule: Rule
    path: tuple[Step, ...]
    label: str
    name: str
    constraint: Constraint

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the name in lower case: outputDir and output_dir are both output, dir."""
        return tuple(word.lower() for word in _WORDS.findall(self.name))

    def finding(self, code: Code, message: str, *path: Step, severity: Severity | None = None) -> Finding:
        return judged(code, self.rule, (*self.path, *path), f"{self.rule.name}: {message}", severity)


def fields_of(rule: Rule) -> Iterator[Field]:
    """In the order of the file, outer ones first."""
    for name, constraint in rule.args.items():
        yield from _walk(Field(rule, ("args", name), name, name, constraint))


def _walk(field: Field) -> Iterator[Field]:
    yield field
    constraint = field.constraint
    if constraint.items is not None:
        path = (*field.path, "items")
        yield from _walk(Field(field.rule, path, f"{field.label}[]", field.name, constraint.items))
    for name, inner in (constraint.properties or {}).items():
        path = (*field.path, "properties", name)
        yield from _walk(Field(field.rule, path, f"{field.label}.{name}", name, inner))
