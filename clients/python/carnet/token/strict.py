"""Strict JSON: what RFC 8259 leaves open is refused, because two parsers that differ are a way around a check.

Refused: a byte order mark, bytes that are not UTF-8, a member named twice, NaN and infinities (written out or by
overflow), minus zero written as an integer (it would lose its sign), lone surrogates, and what is too deep or too wide.
"""

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any, NoReturn

__all__ = ["DuplicateMember", "NotStrict", "TooDeep", "loads"]

# The closing quote is optional, so that text with a string that never ends is passed over once and not once per quote.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = re.compile(r"[^\[\]{}]+")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_MAX_DIGITS = 400  # longer than any double needs; keeps reading a number cheap


class NotStrict(ValueError):
    """The text is no strict JSON. The message never repeats the text."""


class DuplicateMember(NotStrict):
    """An object names a member twice."""


class TooDeep(NotStrict):
    """More nested or more members than allowed."""


def loads(raw: bytes, *, max_depth: int, max_members: int) -> Any:
    """Parse one JSON text. Depth counts nested arrays and objects ({} is 1), members count over all objects.

    Raises NotStrict or one of its two kinds, and nothing else.
    """
    text = _text(raw)
    # Every level has its own opening bracket: text with few of them, wherever they stand, is not deep.
    if text.count("{") + text.count("[") > max_depth:
        _check_depth(text, max_depth)
    try:
        # Every member has its own colon: text with few of them, wherever they stand, needs no count of members.
        value = (_FEW if text.count(":") <= max_members else _decoder(_Budget(max_members).unique)).decode(text)
    except NotStrict:
        raise
    except (ValueError, RecursionError):
        raise NotStrict("not JSON") from None
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        _check_surrogates(value)
    return value


class _Budget:
    """Counts members over all objects of one text."""

    __slots__ = ("left",)

    def __init__(self, members: int) -> None:
        self.left = members

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self.left -= len(pairs)
        if self.left < 0:
            raise TooDeep("too many members")
        return _unique(pairs)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise DuplicateMember("a member is named twice")
    return made


def _text(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8", "strict")
    except UnicodeDecodeError:
        raise NotStrict("not UTF-8") from None
    if text.startswith("\ufeff"):
        raise NotStrict("starts with a byte order mark")
    return text


def _check_depth(text: str, max_depth: int) -> None:
    """Before parsing, so that the parser's own recursion is bounded. Text in strings does not count."""
    depth = 0
    for bracket in _NOT_BRACKETS.sub("", _STRING.sub("", text)):
        if bracket in "[{":
            depth += 1
            if depth > max_depth:
                raise TooDeep("nested too deep")
        else:
            depth -= 1


def _no_constant(_name: str) -> NoReturn:
    raise NotStrict("NaN and infinities are no JSON")


def _finite(literal: str) -> float:
    if len(literal) > _MAX_DIGITS:
        raise NotStrict("a number is too long")
    value = float(literal)
    if not isfinite(value):
        raise NotStrict("a number is out of range")
    return value


def _integer(literal: str) -> int:
    if len(literal) > _MAX_DIGITS:
        raise NotStrict("a number is too long")
    if literal == "-0":
        raise NotStrict("minus zero has no integer form")
    return int(literal)


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise NotStrict("a string holds half a surrogate pair") from None


def _decoder(unique: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_integer
    )


_FEW = _decoder(_unique)  # keeps nothing between two texts
