"""Patterns: they match whole values, which is not what a reader used to searching expects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from carnet_policy.decision import Effect
from carnet_policy.lint import codes
from carnet_policy.lint.atoms import Atom, alternatives, atoms_of
from carnet_policy.lint.fields import Field, fields_of
from carnet_policy.lint.finding import Finding, Severity
from carnet_policy.lint.subject import Subject

__all__ = ["is_wide", "patterns"]

WIDE = 85  # of the 95 printable ASCII characters
LONG = 1000
_PRINTABLE = frozenset(map(chr, range(0x20, 0x7F)))
_ANCHORED = re.compile(r"(?:\((?:\?(?:[a-z-]*:|P?<[^>]*>))?)*(?:\^|\\A)")
_SLIPPED_RANGE = re.compile(r"\[[^\]]*A-z")
_DOT = re.compile(r"[A-Za-z0-9-]\.(?=[a-z]{2,})(?![*+?{])|[A-Za-z0-9]\.(?=[A-Za-z0-9])(?![*+?{])")


def patterns(subject: Subject) -> Iterator[Finding]:
    for found in subject.policy.tools.values():
        for rule in found.rules:
            for field in fields_of(rule):
                if field.constraint.pattern is not None:
                    atoms = atoms_of(field.constraint.pattern)
                    yield from _unanchored(field, field.constraint.pattern, atoms)
                    yield from _wide(field, atoms)
                    yield from _risky(field, field.constraint.pattern)
                    yield from _dot_stops(field)


def is_wide(atom: Atom) -> bool:
    """Whether it stands for nearly any text: most characters, again and again."""
    return len(atom.chars & _PRINTABLE) >= WIDE and (atom.most is None or atom.most > LONG)


def _unanchored(field: Field, pattern: str, atoms: list[Atom]) -> Iterator[Finding]:
    parts = alternatives(pattern)
    begins, ends = [_begins(part) for part in parts], [_ends(part) for part in parts]
    if all(begins) and all(ends):
        return
    padded = bool(atoms) and is_wide(atoms[0]), bool(atoms) and is_wide(atoms[-1])
    deny = field.rule.effect is Effect.DENY
    if not any(begins) and not any(ends):
        if deny and any(padded):
            return  # whoever pads one end knows that the whole value is matched
        if not deny:
            say = f"the pattern of {field.label} has no ^ and $; it must match the whole value"
            yield field.finding(
                codes.UNANCHORED, f"{say}, so write ^ and $ to say so", "pattern", severity=Severity.NOTE
            )
            return
    say = f"the pattern of {field.label} reads like a search, but only a whole value matches"
    fix = "put (?s).* at the open ends to search" if deny else "write it for the whole value, between ^ and $"
    yield field.finding(codes.UNANCHORED, f"{say}; {fix}", "pattern")


def _begins(part: str) -> bool:
    return _ANCHORED.match(part) is not None


def _ends(part: str) -> bool:
    text = part.rstrip(")")
    if text.endswith(r"\z"):
        return True
    bare = text[:-1]
    return text.endswith("$") and (len(bare) - len(bare.rstrip("\\"))) % 2 == 0


def _wide(field: Field, atoms: list[Atom]) -> Iterator[Finding]:
    bound = field.constraint
    if field.rule.effect is Effect.DENY or bound.url_host or bound.path_within or bound.max_length is not None:
        return
    wide = next((atom for atom in atoms if is_wide(atom)), None)
    if wide is not None:
        say = f"the pattern of {field.label} admits nearly any text ({wide.text} without end)"
        severity = None if field.rule.effect is Effect.ALLOW else Severity.NOTE
        fix = "name the characters and bound the length, as in [A-Za-z0-9 _-]{1,80}"
        yield field.finding(codes.WIDE, f"{say}; {fix}", "pattern", severity=severity)


def _risky(field: Field, pattern: str) -> Iterator[Finding]:
    if _SLIPPED_RANGE.search(pattern):
        say = f"A-z in the pattern of {field.label} admits [ \\ ] ^ _ ` too; write A-Za-z"
        yield field.finding(codes.RISKY, say, "pattern")
    bare = re.sub(r"\\.|\[\^?(?:\\.|[^\]\\])+\]", "\0", pattern, flags=re.DOTALL)
    if _DOT.search(bare):
        say = f"a dot in the pattern of {field.label} matches any character; write \\. for a dot"
        yield field.finding(codes.RISKY, say, "pattern")


def _dot_stops(field: Field) -> Iterator[Finding]:
    compiled = field.constraint.compiled
    if field.rule.effect is Effect.DENY and compiled is not None and compiled.dot_stops:
        say = f". in the pattern of {field.label} stops at a line break, so a line break dodges the deny"
        yield field.finding(codes.DOT_STOPS, f"{say}; begin it with (?s)", "pattern")
