"""Strings at the edge of a pattern: what matches barely, and what barely does not.

The pattern is read as a small tree of sequences, choices, repetitions and characters. A repetition is tried once below
and above its counts, a character class at both ends of its ranges and one beyond. Which of the strings match is not
known here; whoever uses them asks the engine. The shortest one that should match comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

__all__ = ["specimens"]

MOST = 64  # strings of one pattern
LONGEST = 2048
_BRACES = re.compile(r"\{(\d+)(,(\d*))?\}")
_GROUP = re.compile(r"\(\?(?:P?<\w+>|[a-zA-Z]*(?:-[a-zA-Z]+)?(?P<end>[:)]))")
_SETS = {"d": "059", "w": "aZ_0", "s": " \t", "D": "a-", "W": "-.", "S": "a-"}
_OUTSIDE = {"d": "a-", "w": "- ", "s": "a", "D": "0", "W": "a", "S": " "}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_ANY = "a0A-_ /.:@"


@dataclass(frozen=True, slots=True)
class _Tree:
    """Strings of one part of a pattern; the first is meant to match."""

    strings: tuple[str, ...]


def specimens(pattern: str) -> tuple[str, ...]:
    """At most MOST strings for a pattern that the engine accepts; empty where its syntax is beyond this reader."""
    try:
        reader = _Reader(pattern)
        found = reader.choice()
        if reader.position != len(pattern):
            return ()
    except (IndexError, ValueError, RecursionError):
        return ()
    first = found.strings[0] if found.strings else ""
    return _distinct([*found.strings, *_neighbours(first)], MOST)


def _neighbours(text: str) -> Iterator[str]:
    yield from (text + "\n", text[:-1], text[1:], f"x{text}", f"{text}x", text.swapcase(), f" {text}", f"{text} ")


class _Reader:
    """Recursive descent; groups nest only as deep as the engine lets a pattern nest."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0

    def choice(self) -> _Tree:
        branches = [self.sequence()]
        while self._take("|"):
            branches.append(self.sequence())
        firsts = [branch.strings[0] for branch in branches]
        return _Tree(_distinct([*firsts, *(text for branch in branches for text in branch.strings[1:])], MOST))

    def sequence(self) -> _Tree:
        parts: list[_Tree] = []
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            parts.append(self._repeated(self._atom()))
        return _joined(parts)

    def _take(self, text: str) -> bool:
        found = self.pattern.startswith(text, self.position)
        self.position += len(text) if found else 0
        return found

    def _atom(self) -> _Tree:
        char = self.pattern[self.position]
        if char == "(":
            return self._group()
        self.position += 1
        if char == "[":
            return _Tree(self._class())
        if char == "\\":
            inside, outside = self._escape()
            return _Tree((*inside, *outside) or ("",))
        if char in "^$":
            return _Tree(("",))
        return _Tree(tuple(_ANY) if char == "." else (char, *_beside(char)))

    def _group(self) -> _Tree:
        found = _GROUP.match(self.pattern, self.position)
        self.position = found.end() if found else self.position + 1
        if found and found.group("end") == ")":
            return _Tree(("",))
        inner = self.choice()
        if not self._take(")"):
            raise ValueError("a group that does not end")
        return inner

    def _escape(self) -> tuple[str, str]:
        """The characters that an escape may stand for, and some beside them."""
        char = self.pattern[self.position]
        self.position += 1
        if char in _SETS:
            return _SETS[char], _OUTSIDE[char]
        if char in "bBAzZG":
            return "", ""
        if char in "xu":
            return self._code(char), ""
        if char.isalnum() and char not in _CONTROLS:
            raise ValueError("an escape of another kind")
        return _CONTROLS.get(char, char), "".join(_beside(char))

    def _code(self, kind: str) -> str:
        if self._take("{"):
            end = self.pattern.index("}", self.position)
            text, after = self.pattern[self.position : end], end + 1
        else:
            after = self.position + (2 if kind == "x" else 4)
            text = self.pattern[self.position : after]
        self.position = after
        return chr(int(text, 16))

    def _class(self) -> tuple[str, ...]:
        negated = self._take("^")
        inside: list[str] = []
        outside: list[str] = []
        while not self._take("]"):
            low, beside = self._member()
            if len(low) == 1 and self.pattern[self.position] == "-" and self.pattern[self.position + 1] != "]":
                self.position += 1
                high, _ = self._member()
                inside += [low, high]
                outside += [*_beside(low), *_beside(high)]
            else:
                inside += low
                outside += beside
        if negated:
            return tuple(dict.fromkeys([*(char for char in _ANY if char not in inside), *inside]))
        return tuple(dict.fromkeys([*inside, *outside]))

    def _member(self) -> tuple[str, str]:
        char = self.pattern[self.position]
        self.position += 1
        return self._escape() if char == "\\" else (char, "".join(_beside(char)))

    def _repeated(self, atom: _Tree) -> _Tree:
        while self.position < len(self.pattern) and self.pattern[self.position] in "*+?{":
            low, high = self._counts()
            self._take("?")  # lazy or not, the whole must match
            atom = _times(atom, low, high)
        return atom

    def _counts(self) -> tuple[int, int | None]:
        if self._take("{"):
            self.position -= 1
            found = _BRACES.match(self.pattern, self.position)
            if not found:
                raise ValueError("no repetition")
            self.position = found.end()
            low = int(found.group(1))
            return low, low if found.group(2) is None else int(found.group(3)) if found.group(3) else None
        char = self.pattern[self.position]
        self.position += 1
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]


def _times(atom: _Tree, low: int, high: int | None) -> _Tree:
    first, others = atom.strings[0], atom.strings[1:]
    top = low + 3 if high is None else high
    counts = [low, low + 1 if high is None or low < high else low, top, top + 1, low - 1]
    strings = [first * count for count in counts if count >= 0 and len(first) * count <= LONGEST]
    strings += [other + first * (max(low, 1) - 1) for other in others if low <= LONGEST]
    return _Tree(_distinct(strings, MOST) or ("",))


def _joined(parts: list[_Tree]) -> _Tree:
    """The first string of every part; then each part's other strings, one part at a time."""
    firsts = [part.strings[0] for part in parts]
    strings = ["".join(firsts)]
    for index, part in enumerate(parts):
        before, after = "".join(firsts[:index]), "".join(firsts[index + 1 :])
        strings += [before + other + after for other in part.strings[1:]]
    return _Tree(_distinct(strings, MOST))


def _beside(char: str) -> Iterable[str]:
    """The characters next to one, and its other case."""
    near: list[str] = [char.swapcase()] if len(char.swapcase()) == 1 else []
    near += [chr(ord(char) - 1)] if ord(char) > 0x20 else []
    near += [chr(ord(char) + 1)] if ord(char) < 0x7E else []
    return [other for other in near if other != char]


def _distinct(
    texts: Iterable[str], most: int, keep: Callable[[str], bool] = lambda t: len(t) <= LONGEST
) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if keep(text)))[:most]
