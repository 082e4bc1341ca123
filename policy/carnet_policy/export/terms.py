"""Conditions on the facts of one value, as both languages can say them.

A condition that reads a fact which is not there is false, so every printer must keep the order of `And` and stop early.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from carnet_policy.export.regex import Node

__all__ = [
    "NO", "YES", "All", "And", "Any", "Below", "Equal", "FoldFree", "Host", "KindIn", "Length", "Matches", "Member",
    "Missing", "NamesWithin", "Or", "Over", "Term", "TextIn", "Truth", "Within", "both", "either",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class KindIn:
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Below:
    """Number < units, or <= when `also`."""

    units: int
    also: bool


@dataclass(frozen=True, slots=True)
class Over:
    """Number > units, or >= when `also`."""

    units: int
    also: bool


@dataclass(frozen=True, slots=True)
class Equal:
    units: int


@dataclass(frozen=True, slots=True)
class Length:
    """Code points of a text, elements of an array."""

    sign: Literal["<", "<=", ">", ">="]
    count: int


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool


@dataclass(frozen=True, slots=True)
class TextIn:
    """inside False: there is a text, and it is none of these; or it is none that can be written down."""

    words: tuple[str, ...]
    inside: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """inside False: there is a text that does not match."""

    regex: Node
    inside: bool


@dataclass(frozen=True, slots=True)
class FoldFree:
    """There is a text without the two letters that only case folding makes ASCII."""


@dataclass(frozen=True, slots=True)
class Within:
    """The path can be judged and is (not) one of these folders or below; folders end in "/"."""

    folders: tuple[str, ...]
    inside: bool


@dataclass(frozen=True, slots=True)
class Host:
    hosts: tuple[str, ...]
    inside: bool


@dataclass(frozen=True, slots=True)
class Member:
    """The named member is there and fulfils the term."""

    name: str
    term: Term


@dataclass(frozen=True, slots=True)
class Missing:
    name: str


@dataclass(frozen=True, slots=True)
class NamesWithin:
    """Every member of the object is (inside False: some member is not) one of these."""

    names: tuple[str, ...]
    inside: bool


@dataclass(frozen=True, slots=True)
class All:
    """Every element fulfils the term."""

    term: Term


@dataclass(frozen=True, slots=True)
class Any:
    """Some element fulfils the term."""

    term: Term


Term = (
    And | Or | KindIn | Below | Over | Equal | Length | Truth | TextIn | Matches | FoldFree | Within | Host
    | Member | Missing | NamesWithin | All | Any
)  # fmt: skip
YES, NO = And(()), Or(())


def both(parts: Iterable[Term]) -> Term:
    """And, flattened and shortened."""
    found: list[Term] = []
    for part in parts:
        if part == NO:
            return NO
        found += part.parts if isinstance(part, And) else [part]
    return found[0] if len(found) == 1 else And(tuple(found))


def either(parts: Iterable[Term]) -> Term:
    """Or, flattened and shortened."""
    found: list[Term] = []
    for part in parts:
        if part == YES:
            return YES
        found += part.parts if isinstance(part, Or) else [part]
    return found[0] if len(found) == 1 else Or(tuple(found))
