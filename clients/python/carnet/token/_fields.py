"""Typed reading of the members of a JSON object. Fault stays inside: the public functions turn it into a Refusal."""

import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, cast

from carnet.reasons import Reason, Refusal

__all__ = ["ID", "Fault", "Texts", "members", "number", "optional_text", "record", "text"]

ID = re.compile(r"[\x21-\x7e]{1,256}")


class Fault(Exception):
    """A member is missing, unknown, of the wrong type, or contradicts another one."""

    def __init__(self, detail: str, reason: Reason = Reason.TOKEN_CLAIM) -> None:
        super().__init__(detail)
        self.refusal = Refusal(reason, detail)


def members(obj: Mapping[str, Any], required: frozenset[str], optional: frozenset[str], where: str) -> None:
    """The closed set: nothing missing, nothing unknown. An unknown name is not repeated, it may be anything."""
    if obj.keys() == required:
        return
    missing = required - obj.keys()
    if missing:
        raise Fault(f"{where} lacks the claim {min(missing)}")
    if not obj.keys() <= required | optional:
        raise Fault(f"{where} has an unknown claim")


def text(obj: Mapping[str, Any], name: str, pattern: re.Pattern[str] = ID) -> str:
    value = obj[name]
    if type(value) is not str or pattern.fullmatch(value) is None:
        raise Fault(f"the claim {name} is no string of the allowed form")
    return value


class Texts:
    """Several members that `text` would read, checked at once: joined by line feeds, which no pattern may allow."""

    __slots__ = ("_all", "_get", "_patterns", "_types")

    def __init__(self, **patterns: re.Pattern[str]) -> None:
        self._patterns = patterns
        self._get = itemgetter(*patterns)
        self._all = re.compile("\n".join(pattern.pattern for pattern in patterns.values()))
        self._types = [str] * len(patterns)

    def of(self, obj: Mapping[str, Any]) -> tuple[str, ...]:
        values: tuple[Any, ...] = self._get(obj)
        if [*map(type, values)] != self._types or self._all.fullmatch("\n".join(values)) is None:
            for name, pattern in self._patterns.items():  # which one it was
                text(obj, name, pattern)
        return values


def optional_text(obj: Mapping[str, Any], name: str, pattern: re.Pattern[str] = ID) -> str | None:
    """A string or null; the member itself must be there."""
    return None if obj[name] is None else text(obj, name, pattern)


def number(obj: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """A real integer (no bool, no float) in low..high."""
    value = obj[name]
    if type(value) is not int:
        raise Fault(f"the claim {name} is no integer")
    if not low <= value <= high:
        raise Fault(f"the claim {name} is out of range")
    return value


def record(value: object, name: str) -> Mapping[str, Any]:
    if type(value) is not dict:
        raise Fault(f"the claim {name} is no object")
    return cast("Mapping[str, Any]", value)
