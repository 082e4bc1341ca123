"""A pattern read into a tree of characters, sequences, choices and repetitions, for engines of other makes.

Only what every engine reads alike is kept. The rest raises `CanNotMap`: `.` that stops at line breaks, `\\b`, `\\S`,
`\\p{...}`, flag m, anchors inside, ignoring case beyond ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from carnet_policy.export.unmapped import CanNotMap

__all__ = ["Cat", "Chars", "Choice", "Node", "Repeat", "read_regex"]

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Chars:
    """One character in (negated: outside of) these ranges of code points."""

    ranges: tuple[Range, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Cat:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`high` None: without end."""

    part: Node
    low: int
    high: int | None


Node = Chars | Cat | Choice | Repeat

_DIGIT: tuple[Range, ...] = ((0x30, 0x39),)
_WORD: tuple[Range, ...] = (*_DIGIT, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE: tuple[Range, ...] = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
_SETS = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_GROUP = re.compile(r"\(\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|(?P<on>[a-z]*)(?:-(?P<off>[a-z]+))?(?P<end>[:)]))")
_BRACES = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|[xu]\{([0-9A-Fa-f]{1,6})\}")


def read_regex(source: str) -> Node:
    """The tree of a pattern that the loader accepted. Errors: CanNotMap."""
    reader = _Reader(source)
    node = reader.choice(top=True)
    if reader.position != len(source):
        raise CanNotMap("its pattern can not be read here", "pattern")
    return node


class _Reader:
    """Recursive descent. `flags` holds which of i and s are on at this place."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0
        self.flags: frozenset[str] = frozenset()

    def choice(self, *, top: bool = False) -> Node:
        branches = [self._sequence(top=top)]
        while self._take("|"):
            branches.append(self._sequence(top=top))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self, *, top: bool) -> Node:
        parts: list[Node] = []
        if top:
            self._take("^")  # the match is of the whole value anyway
        while self.position < len(self.source) and self.source[self.position] not in "|)":
            if top and self.source[self.position] == "$" and self.source[self.position + 1 : self.position + 2] in "|":
                self.position += 1
                continue
            atom = self._atom()
            if atom is not None:
                parts.append(self._repeated(atom))
        return parts[0] if len(parts) == 1 else Cat(tuple(parts))

    def _take(self, text: str) -> bool:
        found = self.source.startswith(text, self.position)
        self.position += len(text) if found else 0
        return found

    def _atom(self) -> Node | None:
        char = self.source[self.position]
        if char == "(":
            return self._group()
        self.position += 1
        if char == "[":
            return self._class()
        if char == "\\":
            return self._folded(*self._escape())
        if char in "^$":
            raise CanNotMap("an anchor inside of its pattern is read differently elsewhere", "pattern")
        if char == ".":
            if "s" not in self.flags:
                raise CanNotMap(
                    "a . in its pattern stops at line breaks, of which engines know different ones; begin it with (?s)",
                    "pattern",
                )
            return Chars((), negated=True)
        return self._folded([(ord(char), ord(char))], False)

    def _group(self) -> Node | None:
        found = _GROUP.match(self.source, self.position)
        before = self.flags
        if found is None:
            self.position += 1
        else:
            self.position = found.end()
            self._set(found.group("on") or "", found.group("off") or "")
            if found.group("end") == ")":
                return None  # holds up to the end of the group around it
        inner = self.choice()
        self._take(")")
        self.flags = before
        return inner

    def _set(self, on: str, off: str) -> None:
        if "m" in on + off:
            raise CanNotMap("the flag m of its pattern is read differently elsewhere", "pattern")
        self.flags = (self.flags | set(on)) - set(off)

    def _escape(self) -> tuple[list[Range], bool]:
        """Ranges and whether they are negated."""
        char = self.source[self.position]
        code = _CODE.match(self.source, self.position)
        if code:
            self.position = code.end()
            point = int(next(group for group in code.groups() if group), 16)
            return [(point, point)], False
        self.position += 1
        if char in _SETS:
            return list(_SETS[char]), False
        if char in "DW":
            return list(_SETS[char.lower()]), True
        if char.isascii() and char.isalnum() and char not in _CONTROLS:
            raise CanNotMap(f"\\{char} in its pattern is read differently elsewhere", "pattern")
        point = ord(_CONTROLS.get(char, char))
        return [(point, point)], False

    def _class(self) -> Node:
        negated = self._take("^")
        ranges: list[Range] = []
        while not self._take("]"):
            low, inverse = self._member()
            if inverse:
                raise CanNotMap(
                    "\\D or \\W inside of a class in its pattern does not map; list the characters", "pattern"
                )
            if len(low) == 1 and self.source[self.position] == "-" and self.source[self.position + 1] != "]":
                self.position += 1
                high, _ = self._member()
                low = [(low[0][0], high[0][1])]
            ranges += low
        return self._folded(ranges, negated)

    def _member(self) -> tuple[list[Range], bool]:
        char = self.source[self.position]
        self.position += 1
        return self._escape() if char == "\\" else ([(ord(char), ord(char))], False)

    def _folded(self, ranges: Iterable[Range], negated: bool) -> Chars:
        found = list(ranges)
        if "i" in self.flags:
            if any(high > 0x7F for _, high in found):
                raise CanNotMap(
                    "its pattern ignores the case of letters outside ASCII, which engines do differently", "pattern"
                )
            for low, high in list(found):
                for first, last, shift in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
                    if max(low, first) <= min(high, last):
                        found.append((max(low, first) + shift, min(high, last) + shift))
        return Chars(tuple(dict.fromkeys(found)), negated)

    def _repeated(self, atom: Node) -> Node:
        if self.position < len(self.source) and self.source[self.position] in "*+?{":
            low, high = self._counts()
            self._take("?")  # lazy or not, the whole must match
            atom = Repeat(atom, low, high)
            if self.source[self.position : self.position + 1] in tuple("*+?{"):
                raise CanNotMap(
                    "a repetition right after a repetition in its pattern does not map; group it", "pattern"
                )
        return atom

    def _counts(self) -> tuple[int, int | None]:
        found = _BRACES.match(self.source, self.position)
        if found:
            self.position = found.end()
            low = int(found.group(1))
            return low, low if found.group(2) is None else int(found.group(3)) if found.group(3) else None
        char = self.source[self.position]
        self.position += 1
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
