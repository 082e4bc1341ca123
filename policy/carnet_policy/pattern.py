"""`pattern`: whole-value match on a linear-time engine.

The engine is jsonschema-rs' `RegexOptions` (Rust regex): no look-around, no back-reference, time linear in the value.
It reads patterns the ECMA way and rewrites `.` even under the flag `s`, which would let a line break slip past a
written deny; so the pattern is scanned here first, and `.` under `s` becomes `[\\s\\S]`. What engines read differently
(class set operations, verbose mode, large repetitions that RE2 refuses) is refused instead of guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["MAX_PATTERN", "MAX_REPEAT", "BadPattern", "Pattern", "compile_pattern", "scan"]

MAX_PATTERN = 4096
MAX_REPEAT = 1000
MAX_PROGRAM = 1 << 22  # bytes of a compiled pattern: a ceiling may come from outside, so compiling is bounded too

_GROUP = re.compile(r"\(\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|(?P<on>[a-zA-Z]*)(?:-(?P<off>[a-zA-Z]+))?(?P<end>[:)]))")
_BRACES = re.compile(r"\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}")
_CLASS = re.compile(r"\[\^?(?:\\.|[^\]\\])+\]", re.DOTALL)
_NAMED = re.compile(r"\\[pPxu]\{[A-Za-z0-9_=]{1,64}\}")
_FLAGS = frozenset("ims")


class BadPattern(ValueError):
    """The pattern must not be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """`matches` takes a string; it raises UnicodeEncodeError for one with a lone surrogate. `folds` = it ignores case
    somewhere, so it also takes the two letters outside ASCII that fold into it: long s and the Kelvin sign."""

    matches: Callable[[str], bool]
    dot_stops: bool  # some `.` does not match a line break
    folds: bool

    def judge(self, value: str) -> bool | None:
        """Whether the whole value matches; None for what can not be judged: a lone surrogate, a letter that only case
        folding makes an ASCII one."""
        if self.folds and ("\u017f" in value or "\u212a" in value):
            return None
        try:
            return self.matches(value)
        except UnicodeEncodeError:
            return None


def compile_pattern(source: str) -> Pattern:
    """A matcher of the whole value. Errors: BadPattern."""
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=MAX_PROGRAM)
    rewritten, dot_stops, folds = scan(source)
    # Alone first: "a)|(b" is broken, yet would be whole again between our brackets.
    for text in (rewritten, rf"\A(?:{rewritten})\z"):
        try:
            found = jsonschema_rs.Draft202012Validator({"pattern": text}, pattern_options=options, offline=True)
        except (jsonschema_rs.ValidationError, ValueError):
            raise BadPattern(
                "the regex does not compile on the linear engine, or is too large; use max_length for long repetitions"
            ) from None
    return Pattern(found.is_valid, dot_stops, folds)


def scan(source: str) -> tuple[str, bool, bool]:
    """The pattern as the engine must read it, whether a `.` in it stops at a line break, and whether it ignores case
    anywhere. Errors: BadPattern."""
    if len(source) > MAX_PATTERN:
        raise BadPattern(f"a pattern has at most {MAX_PATTERN} characters")
    walk = _Walk(source)
    while walk.position < len(source):
        walk.step()
    return "".join(walk.out), walk.dot_stops, walk.folds


class _Walk:
    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0
        self.out: list[str] = []
        self.dot_stops = False
        self.folds = False
        self._dotall = False
        self._atom = 1  # how often the atom just read is repeated, inner repetitions multiplied
        self._most = 1  # the largest such product in the open group
        self._open: list[tuple[bool, int]] = []

    def step(self) -> None:
        char = self.source[self.position]
        if char == "\\":
            named = _NAMED.match(self.source, self.position)
            self._emit(named.group() if named else self.source[self.position : self.position + 2])
        elif char == "[":
            self._class()
        elif char == "(":
            self._group()
        elif char == ")":
            self._close()
        elif char == "{":
            self._repeat()
        elif char == ".":
            self.dot_stops |= not self._dotall
            self._emit(r"[\s\S]" if self._dotall else ".", 1)
        elif char in "*+?":
            self._keep(char)
        else:
            self._emit(char)

    def _emit(self, text: str, width: int | None = None) -> None:
        self._keep(text, width)
        self._atom = 1

    def _keep(self, text: str, width: int | None = None) -> None:
        self.out.append(text)
        self.position += len(text) if width is None else width

    def _class(self) -> None:
        found = _CLASS.match(self.source, self.position)
        body = found.group() if found else ""
        inner = re.sub(r"\\.", "", body[1:-1], flags=re.DOTALL)
        if body in ("", "[^]") or "[" in inner or "&&" in inner or "~~" in inner or "--" in inner:
            raise BadPattern("a character class must not be empty, nested or hold && -- ~~; escape those characters")
        self._emit(body)

    def _group(self) -> None:
        if not self.source.startswith("(?", self.position):
            self._push("(")
            return
        found = _GROUP.match(self.source, self.position)
        if not found:
            raise BadPattern("look-around, comments and conditions in a pattern are not supported; write it without")
        on, off, end = found.group("on") or "", found.group("off") or "", found.group("end")
        if not _FLAGS.issuperset(on + off) or set(on) & set(off):
            raise BadPattern("only the flags i, m and s are supported in a pattern")
        self.folds |= "i" in on
        dotall = "s" in on or (self._dotall and "s" not in off)
        if end == ")":
            self._keep(found.group())
            self._dotall = dotall
        else:
            self._push(found.group())
            self._dotall = dotall if end == ":" else self._dotall

    def _push(self, text: str) -> None:
        self._open.append((self._dotall, self._most))
        self._most = 1
        self._keep(text)

    def _close(self) -> None:
        if not self._open:
            raise BadPattern("the regex does not compile: a ) without its (")
        inner = self._most
        self._dotall, outer = self._open.pop()
        self._keep(")")
        self._atom = inner
        self._most = max(outer, inner)

    def _repeat(self) -> None:
        found = _BRACES.match(self.source, self.position)
        if not found:
            raise BadPattern("a { that is no repetition like {2,5}; escape it")
        times = max(int(found.group(1)), int(found.group(2) or 0))
        self._atom *= max(times, 1)
        if self._atom > MAX_REPEAT:
            raise BadPattern(f"a repetition in a pattern goes to at most {MAX_REPEAT}, nested ones multiplied")
        self._most = max(self._most, self._atom)
        self._keep(found.group())
