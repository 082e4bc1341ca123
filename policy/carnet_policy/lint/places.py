"""Arguments that a shell, a file system or a network will read: recognised by name, judged by what bounds them."""

from __future__ import annotations

from collections.abc import Iterator

from carnet_policy.constraint import type_of
from carnet_policy.decision import Effect
from carnet_policy.lint import codes
from carnet_policy.lint.atoms import Atom, atoms_of
from carnet_policy.lint.fields import Field, fields_of
from carnet_policy.lint.finding import Code, Finding, Severity
from carnet_policy.lint.subject import Subject

__all__ = ["sensitive"]

SHELL = {"command", "commands", "cmd", "cmdline", "shell", "script", "bash"}
QUERIES = {"sql"}
PATHS = {
    *("path", "paths", "file", "files", "filename", "filepath", "pathname", "dir", "directory", "folder", "cwd"),
    *("workdir", "outfile", "infile"),
}
URLS = {"url", "urls", "uri", "href", "endpoint", "webhook"}
_META = frozenset(";|&$`\n")


def sensitive(subject: Subject) -> Iterator[Finding]:
    for found in subject.policy.tools.values():
        for rule in found.rules:
            if rule.effect is not Effect.DENY:
                for field in fields_of(rule):
                    if _is_open(field):
                        yield from _judge(field)


def _is_open(field: Field) -> bool:
    """Whether it can hold a text that is not one of a list; a list is judged by its elements where they are bounded."""
    constraint = field.constraint
    if constraint.enum is not None:
        return any(type_of(member) in ("array", "object") for member in constraint.enum)
    return constraint.type in (None, "string") or (constraint.type == "array" and constraint.items is None)


def _judge(field: Field) -> Iterator[Finding]:
    last = field.words[-1] if field.words else ""
    constraint = field.constraint
    atoms = None if constraint.pattern is None else atoms_of(constraint.pattern)
    if last in SHELL | QUERIES:
        yield from _shell(field, atoms, Severity.ERROR if last in SHELL else Severity.WARNING)
    elif last in PATHS and constraint.path_within is None and (atoms is None or _wanders(atoms)):
        say = f"{field.label} looks like a path and can name any file that it likes"
        yield _told(field, codes.PATH, f"{say}; add path_within with the folders that are meant", Severity.WARNING)
    elif last in URLS and constraint.url_host is None and (atoms is None or not _fixed_host(atoms)):
        say = f"{field.label} looks like a URL and can name hosts that nobody meant"
        yield _told(field, codes.URL, f"{say}; add url_host with the exact hosts", Severity.WARNING)


def _shell(field: Field, atoms: list[Atom] | None, usual: Severity) -> Iterator[Finding]:
    if atoms is None:
        say = f"{field.label} looks like a command and nothing bounds its text"
    elif any(atom.repeated and atom.chars & _META for atom in atoms):
        say = f"{field.label} looks like a command and its pattern bounds only a part of it: ; | & $( get through"
    else:
        return
    fix = "list the commands with enum, or name every character that is allowed"
    yield _told(field, codes.SHELL, f"{say}; {fix}", usual)


def _told(field: Field, code: Code, message: str, usual: Severity) -> Finding:
    """A person sees what an approval rule lets through, so there it is one step milder."""
    milder = {Severity.ERROR: Severity.WARNING, Severity.WARNING: Severity.NOTE}[usual]
    severity = usual if field.rule.effect is Effect.ALLOW else milder
    return field.finding(code, message, *(("pattern",) if field.constraint.pattern else ()), severity=severity)


def _wanders(atoms: list[Atom]) -> bool:
    """Whether a text of these atoms can climb with `..`, or begin at the root without the pattern saying where."""
    dots = ["." in atom.chars for atom in atoms]
    if any(dot and (atom.repeated or after) for atom, dot, after in zip(atoms, dots, [*dots[1:], False], strict=True)):
        return True
    return bool(atoms) and len(atoms[0].chars) > 1 and bool(atoms[0].chars & {"/", "\\"})


def _fixed_host(atoms: list[Atom]) -> bool:
    """Whether scheme and host are literal up to the slash behind them, and so can be nothing else."""
    text = ""
    for atom in atoms:
        if len(atom.chars) != 1 or atom.repeated:
            break
        text += next(iter(atom.chars))
    scheme, mark, rest = text.partition("://")
    return bool(scheme and mark and rest.find("/") > 0)
