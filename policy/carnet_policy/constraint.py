"""`Constraint`: what one argument must be, as a value; and what it means for two JSON values to be the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from carnet_policy.pattern import Pattern
from carnet_policy.reading import is_number

__all__ = ["Constraint", "fits_type", "same", "type_of"]

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True)
class Constraint:
    """`type` is the declared or implied type; `declared_only` means that the declared type is all there is to judge.
    `required`: True = present and not null, "" or []; None = present; False = may be absent."""

    type: str | None = None
    required: bool | None = None
    min: int | float | None = None
    max: int | float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    compiled: Pattern | None = None
    enum: tuple[object, ...] | None = None  # const is an enum of one
    items: Constraint | None = None
    min_items: int | None = None
    max_items: int | None = None
    properties: Mapping[str, Constraint] | None = None
    path_within: tuple[tuple[str, ...], ...] | None = None
    url_host: frozenset[str] | None = None
    declared_only: bool = True


def type_of(value: object) -> str:
    """The JSON type by exact Python type; `integer` for int, `number` for float, "" for what is no JSON value."""
    return "null" if value is None else _JSON_TYPES.get(type(value), "")


def fits_type(value: object, wanted: str) -> bool:
    """Whether `value` is of the named type: an int is a number too, 1.0 is no integer, True is no number."""
    if wanted == "number":
        return is_number(value)
    return type_of(value) == wanted


def same(one: object, other: object) -> bool:
    """Equal with types told apart at every depth: 1, 1.0 and True are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return one == other
