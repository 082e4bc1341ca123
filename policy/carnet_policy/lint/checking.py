"""`check`: all that can be said about a policy before it comes into force. Pure: texts in, findings out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from carnet_policy.errors import PolicyError
from carnet_policy.lint import codes
from carnet_policy.lint.effects import counted, irreversible, unknown_classes, unknown_effects
from carnet_policy.lint.finding import Code, Finding
from carnet_policy.lint.patterns import patterns
from carnet_policy.lint.places import sensitive
from carnet_policy.lint.ranges import gaps, one_sided, overlaps
from carnet_policy.lint.reach import default_open, dodged, never_answering, unlooked
from carnet_policy.lint.registry import registered
from carnet_policy.lint.schemas import against_schemas
from carnet_policy.lint.subject import Subject
from carnet_policy.loader import loads
from carnet_policy.marked import Marked
from carnet_policy.strictyaml import load_yaml
from carnet_policy.tooldefs import ToolDefinitions

__all__ = ["check", "unreadable"]

Check = Callable[[Subject], Iterator[Finding]]
CHECKS: tuple[Check, ...] = (
    *(default_open, never_answering, dodged, unlooked),
    *(one_sided, gaps, overlaps),
    *(patterns, sensitive),
    *(irreversible, unknown_effects, counted, unknown_classes),
    *(registered, against_schemas),
)


def check(
    texts: Sequence[tuple[str, str]],
    definitions: ToolDefinitions | None = None,
    registered: frozenset[str] | None = None,
) -> tuple[Finding, ...]:
    """Findings about the one policy that these (name, text) pairs form, in the order of files and lines. `registered`
    are the tools of all hosts. Never raises for what stands in a text: what does not load is a finding."""
    documents, broken = _documents(texts)
    if broken:
        return tuple(broken)
    try:
        policy = loads(texts)
    except PolicyError as error:
        return (_refused(codes.NO_LOAD, error, texts),)
    tools = None if definitions is None else definitions.tools
    subject = Subject(policy, tuple(documents), tools, registered)
    found = [finding for one in CHECKS for finding in one(subject)]
    for file, problem in () if definitions is None else definitions.problems:
        found.append(Finding(codes.NOT_CHECKED, codes.NOT_CHECKED.severity, f"{file}: {problem}", *subject.find()))
    order = {name: number for number, (name, _) in enumerate(texts)}
    return tuple(sorted(found, key=lambda f: (order[f.file], f.line, f.column, f.code.id, f.message)))


def unreadable(file: str, problem: str) -> Finding:
    """The finding for a file whose text can not be had."""
    return Finding(codes.UNREADABLE, codes.UNREADABLE.severity, problem, file, 1, 1)


def _documents(texts: Sequence[tuple[str, str]]) -> tuple[list[Marked], list[Finding]]:
    documents, broken = [], []
    for name, text in texts:
        try:
            documents.append(load_yaml(text, name))
        except PolicyError as error:
            broken.append(_refused(codes.UNREADABLE, error, texts))
    return documents, broken


def _refused(code: Code, error: PolicyError, texts: Sequence[tuple[str, str]]) -> Finding:
    file = error.file or (texts[0][0] if texts else "")
    return Finding(code, code.severity, error.message, file, max(error.line, 1), max(error.column, 1))
