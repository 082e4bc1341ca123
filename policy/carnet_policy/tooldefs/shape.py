"""What a JSON Schema lets through, seen from outside: widened wherever it can not be told exactly, so that "this can
never be" is always right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from carnet_policy.constraint import same

__all__ = ["ANYTHING", "NOTHING", "TYPES", "Shape", "both", "either"]

TYPES = frozenset(("string", "number", "integer", "boolean", "array", "object", "null"))
Bound = int | float | None
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Shape:
    """`types` are JSON types, where `number` stands for numbers that are not whole; `enum` None = not listed. `named`
    says that the schema names members of an object, `open` that it lets others in on purpose."""

    types: frozenset[str] = TYPES
    enum: tuple[object, ...] | None = None
    minimum: Bound = None
    maximum: Bound = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    pattern: str | None = None
    items: Shape | None = None
    properties: Mapping[str, Shape] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    named: bool = False
    open: bool = False


ANYTHING = Shape()
NOTHING = Shape(types=frozenset())


def both(one: Shape, other: Shape) -> Shape:
    """What both let through."""
    names = dict.fromkeys([*one.properties, *other.properties])
    return Shape(
        types=one.types & other.types,
        enum=_common(one.enum, other.enum),
        minimum=_pick(max, one.minimum, other.minimum),
        maximum=_pick(min, one.maximum, other.maximum),
        min_length=_pick(max, one.min_length, other.min_length),
        max_length=_pick(min, one.max_length, other.max_length),
        min_items=_pick(max, one.min_items, other.min_items),
        max_items=_pick(min, one.max_items, other.max_items),
        pattern=one.pattern or other.pattern,
        items=other.items if one.items is None else one.items if other.items is None else both(one.items, other.items),
        properties={
            name: both(one.properties.get(name, ANYTHING), other.properties.get(name, ANYTHING)) for name in names
        },
        required=one.required | other.required,
        named=one.named or other.named,
        open=(one.open or not one.named) and (other.open or not other.named) and (one.open or other.open),
    )


def either(one: Shape, other: Shape) -> Shape:
    """What one of the two lets through. A bound holds only where the other side has one, or no such values."""
    if not one.types or not other.types:
        return other if not one.types else one
    numbers, texts, lists = {"number", "integer"}, {"string"}, {"array"}
    holders = [side for side in (one, other) if "object" in side.types]
    return Shape(
        types=one.types | other.types,
        enum=None if one.enum is None or other.enum is None else (*one.enum, *other.enum),
        minimum=_loose(min, numbers, one, other, lambda side: side.minimum),
        maximum=_loose(max, numbers, one, other, lambda side: side.maximum),
        min_length=_loose(min, texts, one, other, lambda side: side.min_length),
        max_length=_loose(max, texts, one, other, lambda side: side.max_length),
        min_items=_loose(min, lists, one, other, lambda side: side.min_items),
        max_items=_loose(max, lists, one, other, lambda side: side.max_items),
        pattern=_loose(_equal, texts, one, other, lambda side: side.pattern),
        items=_loose(either, lists, one, other, lambda side: side.items),
        properties=_members(holders),
        required=frozenset.intersection(*(side.required for side in holders)) if holders else frozenset(),
        named=bool(holders) and all(side.named for side in holders),
        open=any(side.open for side in holders),
    )


def _members(holders: list[Shape]) -> dict[str, Shape]:
    names = dict.fromkeys(name for side in holders for name in side.properties)
    return {name: _any_of([side.properties[name] for side in holders if name in side.properties]) for name in names}


def _any_of(shapes: list[Shape]) -> Shape:
    found = shapes[0]
    for shape in shapes[1:]:
        found = either(found, shape)
    return found


def _pick(choose: Callable[[_T, _T], _T], one: _T | None, other: _T | None) -> _T | None:
    return other if one is None else one if other is None else choose(one, other)


def _loose(
    choose: Callable[[_T, _T], _T | None], kinds: set[str], one: Shape, other: Shape, read: Callable[[Shape], _T | None]
) -> _T | None:
    if not kinds & one.types:
        return read(other)
    if not kinds & other.types:
        return read(one)
    mine, theirs = read(one), read(other)
    return None if mine is None or theirs is None else choose(mine, theirs)


def _equal(one: str, other: str) -> str | None:
    return one if one == other else None


def _common(one: tuple[object, ...] | None, other: tuple[object, ...] | None) -> tuple[object, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    return tuple(member for member in one if any(same(member, wanted) for wanted in other))
