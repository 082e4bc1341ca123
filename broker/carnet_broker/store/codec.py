"""Rows and records as JSON bytes, and back: exactly the same value or an error, never a default.

Free mappings (facts, arguments, what a person is shown) hold plain JSON values; a tuple in one comes back as a list.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import orjson

from carnet.audit import Record
from carnet_broker.core.rows import Approval, Call, Delegation, PolicyInForce
from carnet_broker.store.base import Unavailable

__all__ = ["Corrupt", "Stored", "decode", "encode"]

Stored = Delegation | Approval | Call | PolicyInForce | Record
S = TypeVar("S", Delegation, Approval, Call, PolicyInForce, Record)
Convert = Callable[[Any], Any]
_EXACT = frozenset((str, int, bool, NoneType))


class Corrupt(Unavailable):
    """A stored row is not what its kind demands. Nothing is decided from it: restore the store from a backup."""


@dataclass(frozen=True, slots=True)
class _Shape:
    names: frozenset[str]
    converts: tuple[tuple[str, type | None, Convert], ...]  # name, type that may stay as it is, what makes the rest
    free: tuple[str, ...]  # fields that hold free mappings


def encode(row: Stored) -> bytes:
    """JSON of a row. TypeError or ValueError for what JSON cannot hold exactly: NaN, dates, sets, ints over 64 bits."""
    kind: type = type(row)
    for name in _shape(kind).free:
        _plain(getattr(row, name))
    if isinstance(row, Delegation):
        _plain(row.envelope.ceilings)
    return orjson.dumps(row, default=_mapping)


def decode(kind: type[S], body: bytes, **given: int) -> S:
    """The row of `body` with the fields of `given` (those that the store gives) in their places."""
    try:
        members = orjson.loads(body)
        if type(members) is not dict:
            raise ValueError("no object")
        members.update(given)
        return kind(**_members(kind, members))
    except (ValueError, TypeError, KeyError) as error:
        raise Corrupt(f"A stored {kind.__name__} cannot be read ({error}); restore the store from a backup.") from error


def _members(kind: type, members: dict[str, Any]) -> dict[str, Any]:
    shape = _shape(kind)
    if members.keys() != shape.names:
        odd = ", ".join(sorted(members.keys() ^ shape.names))
        raise ValueError(f"fields missing or unknown: {odd}")
    for name, stays, convert in shape.converts:
        value = members[name]
        if type(value) is not stays:
            try:
                members[name] = convert(value)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{name}: {error}") from error
    return members


def _mapping(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON value: {type(value).__name__}")


def _plain(value: object) -> None:
    if type(value) in _EXACT:
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number that is not finite cannot be stored")
    elif isinstance(value, Mapping):
        for item in value.values():
            _plain(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _plain(item)
    elif not isinstance(value, str):
        raise TypeError(f"no JSON value: {type(value).__name__}")


@cache
def _shape(kind: type) -> _Shape:
    hints = get_type_hints(kind)
    names = tuple(field.name for field in fields(kind))
    free = tuple(name for name in names if _is_free(hints[name]))
    converts = tuple((name, _stays(hints[name]), _convert(hints[name])) for name in names)
    return _Shape(frozenset(names), converts, free)


def _stays(hint: Any) -> type | None:
    """The exact JSON type that needs no conversion: a short way for most fields."""
    for part in (hint, *(get_args(hint) if get_origin(hint) in (Union, UnionType) else ())):
        if part in (str, int, bool):
            plain: type = part
            return plain
        if get_origin(part) is Mapping and get_args(part)[1] is Any:
            return dict
    return None


def _is_free(hint: Any) -> bool:
    return get_origin(hint) is Mapping or any(get_origin(part) is Mapping for part in get_args(hint))


def _convert(hint: Any) -> Convert:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        inner = [part for part in parts if part is not NoneType]
        if len(inner) != 1 or len(parts) != 2:
            raise TypeError(f"no codec for {hint}")
        return _optional(_convert(inner[0]))
    if origin is tuple:
        return _sequence(_convert(parts[0])) if parts[-1] is Ellipsis else _fixed(tuple(map(_convert, parts)))
    if origin is Mapping:
        return _object(None if parts[1] is Any else _convert(parts[1]))
    if hint in (str, int, bool):
        return _exactly(hint)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint
    if not is_dataclass(hint):
        raise TypeError(f"no codec for {hint}")
    return _nested(hint)


def _exactly(kind: type) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{type(value).__name__} where {kind.__name__} must be")
        return value

    return convert


def _optional(inner: Convert) -> Convert:
    return lambda value: None if value is None else inner(value)


def _sequence(inner: Convert) -> Convert:
    def convert(value: Any) -> tuple[Any, ...]:
        return tuple([inner(item) for item in _list(value)])

    return convert


def _fixed(inners: tuple[Convert, ...]) -> Convert:
    def convert(value: Any) -> tuple[Any, ...]:
        return tuple(inner(item) for inner, item in zip(inners, _list(value), strict=True))

    return convert


def _object(inner: Convert | None) -> Convert:
    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise TypeError("no object")
        return value if inner is None else {name: inner(item) for name, item in value.items()}

    return convert


def _nested(kind: Any) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise TypeError("no object")
        return kind(**_members(kind, value))

    return convert


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError("no array")
    return value
