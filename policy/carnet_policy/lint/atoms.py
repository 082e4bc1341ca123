"""A pattern taken apart into what each of its positions admits; enough to warn by, never to decide by.

Groups and alternatives are laid out one after the other, so the order is that of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ANY", "Atom", "alternatives", "atoms_of"]

PROBES = "".join(map(chr, range(128))) + "\u00e9\u4e00"
ANY = frozenset(PROBES)
_LETTERS = frozenset(char for char in PROBES if char.isalpha())
_FLAGS = re.compile(r"\(\?(?P<flags>[a-z-]*)\)")
_HEAD = re.compile(r"\(\?(?:P?<[^>]*>|(?P<flags>[a-zA-Z-]*):)|\(")
_CLASS = re.compile(r"\[\^?(?:\\.|[^\]\\])+\]", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:[pP]\{[^}]*\}|u\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]+\}|.)", re.DOTALL
)
_PROPERTY = re.compile(r"\\[pP]\{[^}]*\}")
_QUANTIFIER = re.compile(r"(?:(?P<one>[*+?])|\{(?P<low>[0-9]+)(?P<comma>,(?P<high>[0-9]*))?\})[?+]?")


@dataclass(frozen=True, slots=True)
class Atom:
    """`text` as written; `chars` = which of the probes (all ASCII and two others) it admits; `most` = how often it may
    stand, None = without end."""

    text: str
    chars: frozenset[str]
    most: int | None = 1

    @property
    def repeated(self) -> bool:
        return self.most is None or self.most > 1


def atoms_of(pattern: str) -> list[Atom]:
    """The atoms of a pattern that compiles."""
    dotall = any("s" in found["flags"].partition("-")[0] for found in _FLAGS.finditer(pattern))
    return list(_Layout(pattern, dotall).read())


def alternatives(pattern: str) -> list[str]:
    """The alternatives on the outermost level, leading flags removed."""
    text = _FLAGS.sub("", pattern, 1) if _FLAGS.match(pattern) else pattern
    parts, depth, begin, position = [], 0, 0, 0
    while position < len(text):
        token = _token(text, position)
        depth += token.startswith("(") - (token == ")")
        if token == "|" and depth == 0:
            parts.append(text[begin:position])
            begin = position + 1
        position += len(token)
    return [*parts, text[begin:]]


def _token(text: str, position: int) -> str:
    char = text[position]
    if char == "\\":
        found = _ESCAPE.match(text, position)
    elif char == "[":
        found = _CLASS.match(text, position)
    elif char == "(":
        found = _HEAD.match(text, position)
    else:
        found = None
    return found.group() if found else char


class _Layout:
    def __init__(self, pattern: str, dotall: bool) -> None:
        self.pattern = pattern
        self.dotall = dotall

    def read(self) -> Iterator[Atom]:
        found: list[Atom] = []
        opened: list[int] = []
        position = 0
        while position < len(self.pattern):
            flags = _FLAGS.match(self.pattern, position)
            token = flags.group() if flags else _token(self.pattern, position)
            position += len(token)
            first = len(found)
            if flags or token in ("|", "^", "$") or token in (r"\A", r"\z", r"\b", r"\B"):
                continue
            if token.startswith("("):
                opened.append(first)
                continue
            if token == ")":
                first = opened.pop() if opened else first
            else:
                found.append(Atom(token, self._chars(token)))
            quantifier = _QUANTIFIER.match(self.pattern, position)
            if quantifier is not None:
                position = quantifier.end()
                found[first:] = [Atom(a.text, a.chars, _times(a.most, quantifier)) for a in found[first:]]
        yield from found

    def _chars(self, token: str) -> frozenset[str]:
        if token == ".":
            return ANY if self.dotall else ANY - {"\n"}
        if len(token) == 1:
            return frozenset(token)
        letters = _LETTERS if _PROPERTY.search(token) else frozenset[str]()
        rest = _PROPERTY.sub("", token)
        if rest in ("", "[]", "[^]"):
            return letters if "[^" not in rest and not token.startswith((r"\P", r"[\P")) else ANY - letters
        try:
            chars = frozenset(re.findall(rest, PROBES, re.ASCII))
        except re.error:
            return ANY  # the engine reads it, Python does not: it may be anything
        return chars - letters if rest.startswith("[^") else chars | letters


def _times(most: int | None, quantifier: re.Match[str]) -> int | None:
    if quantifier["one"] == "?":
        return most
    if quantifier["one"] or (quantifier["comma"] and not quantifier["high"]) or most is None:
        return None
    return most * max(int(quantifier["high"] or quantifier["low"]), 1)
