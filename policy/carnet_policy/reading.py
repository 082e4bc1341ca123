"""Small readers of a marked document; each refuses what it does not know and says where."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import isfinite

from carnet_policy.marked import Marked

__all__ = ["Part", "is_number", "shown"]

_WORD = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_TOOL = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]{1,128}")
MAX_REASON = 500


def is_number(value: object) -> bool:
    """A finite JSON number; a boolean is none."""
    return type(value) is int or (type(value) is float and isfinite(value))


def shown(value: object) -> str:
    """A short form for messages."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Part:
    """One part of a document: its value, and errors that point at it."""

    __slots__ = ("document", "name", "path", "value")

    def __init__(self, document: Marked, value: object, path: tuple[str | int, ...] = (), name: str = "") -> None:
        self.document = document
        self.value = value
        self.path = path
        self.name = name or "the file"

    def error(self, message: str) -> Exception:
        return self.document.error(self.path, message)

    def step(self, step: str | int, value: object) -> Part:
        name = f"{self.name}[{step}]" if isinstance(step, int) else step if not self.path else f"{self.name}.{step}"
        return Part(self.document, value, (*self.path, step), name)

    def mapping(self, known: Collection[str] | None = None, what: str = "key") -> Mapping[str, Part]:
        """The entries; with `known`, any other key is an error."""
        if type(self.value) is not dict:
            if self.value is None:
                raise self.error(f"{self.name} is empty: a mapping must stand there")
            raise self.error(f"{self.name} must be a mapping, not {shown(self.value)}")
        for key in self.value:
            if known is not None and key not in known:
                raise self.step(key, None).error(_unknown(key, known, what, self.name))
        return {key: self.step(key, value) for key, value in self.value.items()}

    def sequence(self) -> list[Part]:
        if type(self.value) is not list:
            hint = f": write [{self.value}]" if type(self.value) is str and _WORD.fullmatch(self.value) else ""
            raise self.error(f"{self.name} must be a list, not {shown(self.value)}{hint}")
        return [self.step(index, value) for index, value in enumerate(self.value)]

    def word_of(self, words: Collection[str]) -> str:
        if type(self.value) is not str or self.value not in words:
            raise self.error(f"{self.name} must be one of {', '.join(words)}, not {shown(self.value)}")
        return self.value

    def text(self, limit: int = MAX_REASON) -> str:
        if type(self.value) is not str or not self.value or len(self.value) > limit:
            raise self.error(f"{self.name} must be a text of 1 to {limit} characters, not {shown(self.value)}")
        return self.value

    def tool(self) -> str:
        if type(self.value) is not str or not _TOOL.fullmatch(self.value):
            raise self.error(f"{shown(self.value)} is no tool name: 1 to 128 printable ASCII characters without space")
        return self.value

    def boolean(self) -> bool:
        if type(self.value) is not bool:
            raise self.error(f"{self.name} must be true or false, not {shown(self.value)}")
        return self.value

    def integer(self, least: int, most: int) -> int:
        if type(self.value) is not int or not least <= self.value <= most:
            wanted = least if least == most else f"a whole number from {least} to {most}"
            raise self.error(f"{self.name} must be {wanted}, not {shown(self.value)}")
        return self.value

    def number(self) -> int | float:
        if is_number(self.value) and isinstance(self.value, int | float):
            return self.value
        raise self.error(f"{self.name} must be a finite number, not {shown(self.value)}")

    def words(self) -> frozenset[str]:
        """A list of lower-case names, as for data classes and groups."""
        for part in self.sequence():
            if type(part.value) is not str or not _WORD.fullmatch(part.value):
                raise part.error(f"{part.name} must be a lower-case name like customer-data, not {shown(part.value)}")
        return frozenset(part.text() for part in self.sequence())


def _unknown(key: str, known: Collection[str], what: str, where: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, known, 1)
    fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
    return f"unknown {what} {shown(key)} in {where}; {fix}"
