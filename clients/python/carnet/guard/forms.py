"""How a Python value reads as JSON, by the annotation of its parameter.

`freeze` makes the copy that the tool will get (exact types, nothing shared with the caller); `json` reads that copy.
Plain JSON is its own reading. A value that is not what was annotated raises Unfit, which is a refusal; an annotation
without a JSON form raises ConfigError when the tool is decorated.
"""

import copy
import enum
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import copysign, isfinite
from typing import Any
from uuid import UUID

__all__ = [
    "PLAIN",
    "TEXTUAL",
    "Choice",
    "Exact",
    "Fields",
    "Form",
    "Keyed",
    "Listed",
    "Model",
    "Number",
    "Plain",
    "Row",
    "Textual",
    "Unfit",
    "Union",
    "Words",
]

_DEEPEST = 16
_SAFE = 2**53
_SURROGATE = re.compile("[\ud800-\udfff]")


class Unfit(Exception):
    """The value is not what the annotation says. The text is for the caller and names types, never values."""


class Form(ABC):
    """One annotation."""

    @abstractmethod
    def freeze(self, value: Any) -> Any:
        """The copy for the tool. Raises Unfit."""

    def json(self, frozen: Any) -> Any:
        """The JSON value of a copy that `freeze` made."""
        return frozen


class Exact(Form):
    """One scalar type of JSON; True is no int, and an int may stand where a float is annotated (PEP 484)."""

    def __init__(self, kind: type) -> None:
        self._kinds = (kind, int) if kind is float else (kind,)

    def freeze(self, value: Any) -> Any:
        if type(value) in self._kinds:
            return _scalar(value)
        raise Unfit(f"is {_kind(value)}, not {self._kinds[0].__name__}")


class Plain(Form):
    """Any JSON value (no annotation, Any, object)."""

    def freeze(self, value: Any) -> Any:
        return _plain(value, 1)


class Listed(Form):
    """A list, or a tuple of any length, of one form."""

    def __init__(self, item: Form, kind: type[list[Any]] | type[tuple[Any, ...]]) -> None:
        self._item, self._kind = item, kind

    def freeze(self, value: Any) -> Any:
        if type(value) is not self._kind:
            raise Unfit(f"is {_kind(value)}, not {self._kind.__name__}")
        made = [self._item.freeze(item) for item in value]
        return made if self._kind is list else tuple(made)

    def json(self, frozen: Any) -> Any:
        return [self._item.json(item) for item in frozen]


class Row(Form):
    """A tuple of fixed length."""

    def __init__(self, items: Sequence[Form]) -> None:
        self._items = tuple(items)

    def freeze(self, value: Any) -> Any:
        if type(value) is not tuple or len(value) != len(self._items):
            raise Unfit(f"is not a tuple of {len(self._items)}")
        return tuple(form.freeze(item) for form, item in zip(self._items, value, strict=True))

    def json(self, frozen: Any) -> Any:
        return [form.json(item) for form, item in zip(self._items, frozen, strict=True)]


class Keyed(Form):
    """A dict with string keys and values of one form."""

    def __init__(self, item: Form) -> None:
        self._item = item

    def freeze(self, value: Any) -> Any:
        if type(value) is not dict:
            raise Unfit(f"is {_kind(value)}, not dict")
        return {_key(name): self._item.freeze(item) for name, item in value.items()}

    def json(self, frozen: Any) -> Any:
        return {name: self._item.json(item) for name, item in frozen.items()}


class Union(Form):
    """The first of several forms that fits."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = tuple(forms)

    def freeze(self, value: Any) -> Any:
        return self._fitting(value)[1]

    def json(self, frozen: Any) -> Any:
        return self._fitting(frozen)[0].json(frozen)

    def _fitting(self, value: Any) -> tuple[Form, Any]:
        for form in self._forms:
            try:
                return form, form.freeze(value)
            except Unfit:
                continue
        raise Unfit(f"is {_kind(value)}, none of the annotated types")


class Choice(Form):
    """A Literal, by value and type."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = {(type(value), value) for value in values}

    def freeze(self, value: Any) -> Any:
        if type(value) in (str, int, bool, type(None)) and (type(value), value) in self._values:
            return value
        raise Unfit("is none of the annotated literals")


class Words(Form):
    """An enumeration of strings, by value."""

    def __init__(self, kind: type[enum.Enum]) -> None:
        self._kind = kind

    def freeze(self, value: Any) -> Any:
        if type(value) is self._kind:
            return value
        raise Unfit(f"is {_kind(value)}, not {self._kind.__name__}")

    def json(self, frozen: Any) -> Any:
        return str(frozen.value)


class Textual(Form):
    """A type that stands as one string: UUID, date, datetime."""

    def __init__(self, kind: type, write: Callable[[Any], str]) -> None:
        self._kind, self._write = kind, write

    def freeze(self, value: Any) -> Any:
        if type(value) is self._kind:
            return copy.deepcopy(value)
        raise Unfit(f"is {_kind(value)}, not {self._kind.__name__}")

    def json(self, frozen: Any) -> Any:
        return self._write(frozen)


class Number(Form):
    """A Decimal as the JSON number that it equals; one that no JSON number equals is refused."""

    def freeze(self, value: Any) -> Any:
        if type(value) is not Decimal:
            raise Unfit(f"is {_kind(value)}, not Decimal")
        if not value.is_finite() or not -_SAFE < value < _SAFE:
            raise Unfit("is a Decimal that no JSON number equals")
        if value != value.to_integral_value() and Decimal(repr(float(value))) != value:
            raise Unfit("is a Decimal that no JSON number equals")
        return value

    def json(self, frozen: Any) -> Any:
        return int(frozen) if frozen == frozen.to_integral_value() else float(frozen)


class Fields(Form):
    """A TypedDict: an object of named members."""

    def __init__(self, members: Mapping[str, Form], required: frozenset[str], name: str) -> None:
        self.members, self._required, self._name = dict(members), required, name

    def freeze(self, value: Any) -> Any:
        if type(value) is not dict or not self._required <= value.keys() <= self.members.keys():
            raise Unfit(f"is no {self._name}")
        return {name: self.members[name].freeze(item) for name, item in value.items()}

    def json(self, frozen: Any) -> Any:
        return {name: self.members[name].json(item) for name, item in frozen.items()}


class Model(Form):
    """A dataclass or pydantic model: copied whole, read field by field."""

    def __init__(self, kind: type, members: Mapping[str, Form]) -> None:
        self._kind, self.members = kind, dict(members)

    def freeze(self, value: Any) -> Any:
        if type(value) is not self._kind:
            raise Unfit(f"is {_kind(value)}, not {self._kind.__name__}")
        made = copy.deepcopy(value)
        for name, form in self.members.items():
            try:
                form.freeze(getattr(made, name))
            except Unfit as unfit:
                raise Unfit(f"has a field {name} that {unfit}") from None
        return made

    def json(self, frozen: Any) -> Any:
        return {name: form.json(form.freeze(getattr(frozen, name))) for name, form in self.members.items()}


def _day(value: date) -> str:
    return value.isoformat()


PLAIN = Plain()
TEXTUAL: dict[type, Form] = {UUID: Textual(UUID, str), date: Textual(date, _day), datetime: Textual(datetime, _day)}


def _plain(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is float or kind is bool or value is None:
        return _scalar(value)
    if depth > _DEEPEST:
        raise Unfit("is nested too deep")
    if kind is list:
        return [_plain(item, depth + 1) for item in value]
    if kind is dict:
        return {_key(name): _plain(item, depth + 1) for name, item in value.items()}
    raise Unfit(f"is {_kind(value)}, no JSON value")


def _scalar(value: Any) -> Any:
    """The value, if it has a canonical form (`carnet.arguments`): what the broker could not record is refused here too,
    so that no call depends on who decides it."""
    kind = type(value)
    if kind is str:
        if not value.isascii() and _SURROGATE.search(value) is not None:
            raise Unfit("holds half a surrogate pair")
    elif kind is int:
        if not -_SAFE < value < _SAFE:
            raise Unfit("is an integer that is not below 2^53")
    elif kind is float:
        if not isfinite(value):
            raise Unfit("is a float that JSON does not have")
        if value == 0 and copysign(1, value) < 0:
            raise Unfit("is minus zero")
    return value


def _key(name: Any) -> str:
    if type(name) is str:
        return str(_scalar(name))
    raise Unfit("has a member whose name is no string")


def _kind(value: Any) -> str:
    return f"of type {type(value).__name__}"
