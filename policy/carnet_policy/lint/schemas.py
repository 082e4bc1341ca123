"""The policy against the tools' own schemas: names that do not exist, and values that can never be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from carnet_policy.constraint import Constraint
from carnet_policy.decision import Effect
from carnet_policy.history import Kind
from carnet_policy.lint import codes
from carnet_policy.lint.fields import Field
from carnet_policy.lint.finding import Code, Finding, Severity
from carnet_policy.lint.impossible import impossible, strangers
from carnet_policy.lint.registry import nearest
from carnet_policy.lint.subject import Step, Subject, judged
from carnet_policy.rule import Rule
from carnet_policy.tooldefs import Shape, ToolDefinition

__all__ = ["against_schemas"]

Definitions = Mapping[str, ToolDefinition]


def against_schemas(subject: Subject) -> Iterator[Finding]:
    if subject.tools is None:
        return
    for tool, found in subject.policy.tools.items():
        definition = subject.tools.get(tool)
        if definition is None:
            message = f"{tool} is not among the tool definitions{nearest(tool, subject.tools)}"
            fix = "correct the name, or give its definition"
            yield _told(subject, codes.NOT_DEFINED, f"{message}; {fix}", "tools", tool)
        elif definition.shape is not None:
            for rule in found.rules:
                yield from _members(rule, rule.args, definition.shape, ("args",), "")
    yield from _definitions(subject, subject.tools)
    yield from _counted(subject, subject.tools)


def _definitions(subject: Subject, tools: Definitions) -> Iterator[Finding]:
    for tool, definition in tools.items():
        if tool not in subject.policy.tools:
            say = f"{tool} is defined and no rule names it, so the default {subject.policy.default} answers"
            yield _told(subject, codes.NOT_NAMED, f"{say}; add rules for it", "tools")
        for problem in definition.problems:
            say = f"the definition of {tool} in {definition.file} is checked in part only: {problem}"
            yield _told(subject, codes.NOT_CHECKED, f"{say}; look at its arguments yourself", "tools", tool)


def _members(
    rule: Rule, named: Mapping[str, Constraint], shape: Shape, path: tuple[Step, ...], before: str
) -> Iterator[Finding]:
    """The named arguments of a call, or members of an object in it."""
    for name, constraint in named.items():
        field = Field(rule, (*path, name), f"{before}{name}", name, constraint)
        inner = shape.properties.get(name)
        if inner is not None:
            yield from _value(field, inner)
        elif shape.named:
            around = before[:-1] or rule.name.rpartition("[")[0]
            known = nearest(name, shape.properties) or f", known are {', '.join(sorted(shape.properties)) or 'none'}"
            severity = Severity.WARNING if shape.open else None
            message = f"{around} has no argument {name}{known}; correct the name"
            yield field.finding(codes.UNKNOWN_ARGUMENT, message, severity=severity)
    if rule.effect is Effect.ALLOW and not (rule.extra_args and not before):
        for name in sorted(shape.required - named.keys()):
            say = (
                f"{rule.name} never matches: every call has {before}{name}, and an allow must name what it lets through"
            )
            yield judged(codes.MISSING_ARGUMENT, rule, path, f"{say}; add {before}{name}")


def _value(field: Field, shape: Shape) -> Iterator[Finding]:
    why = impossible(field.constraint, shape, field.rule.effect)
    if why is not None:
        word, sentence = why
        yield field.finding(codes.NEVER_MATCHES, f"{field.label} can never match: {sentence}", word)
        return
    for sentence in strangers(field.constraint, shape):
        yield field.finding(codes.NEVER_MATCHES, f"{field.label}: {sentence}", "enum", severity=Severity.WARNING)
    constraint = field.constraint
    if constraint.items is not None and shape.items is not None:
        element = Field(field.rule, (*field.path, "items"), f"{field.label}[]", field.name, constraint.items)
        yield from _value(element, shape.items)
    if constraint.properties is not None:
        path = (*field.path, "properties")
        yield from _members(field.rule, constraint.properties, shape, path, f"{field.label}.")


def _counted(subject: Subject, tools: Definitions) -> Iterator[Finding]:
    """What history rules and the catalog name of a tool's arguments."""
    for rule in subject.policy.history:
        shape = _shape(tools, rule.tool)
        if rule.arg is None or shape is None:
            continue
        place = subject.of_history(rule, rule.kind.value)
        inner = shape.properties.get(rule.arg)
        if inner is None and shape.named and not shape.open:
            message = f"{rule.name}: {_no_argument(str(rule.tool), rule.arg, shape)}"
            yield Finding(codes.UNKNOWN_ARGUMENT, codes.UNKNOWN_ARGUMENT.severity, message, *place, rule.name)
        elif inner is not None and rule.kind is Kind.SUM and not inner.types & {"number", "integer"}:
            message = (
                f"{rule.name}: {rule.arg} of {rule.tool} is no number, so it can not be added up; count or distinct"
            )
            yield Finding(codes.NEVER_MATCHES, codes.NEVER_MATCHES.severity, message, *place, rule.name)
    for tool, facts in (subject.policy.catalog or {}).items():
        shape, name = _shape(tools, tool), facts.resource_arg
        if shape is not None and name is not None and name not in shape.properties and shape.named and not shape.open:
            message = f"resource_arg: {_no_argument(tool, name, shape)}"
            yield _told(subject, codes.UNKNOWN_ARGUMENT, message, "catalog", tool, "resource_arg")


def _shape(tools: Definitions, tool: str | None) -> Shape | None:
    definition = None if tool is None else tools.get(tool)
    return None if definition is None else definition.shape


def _no_argument(tool: str, name: str, shape: Shape) -> str:
    return f"{tool} has no argument {name}{nearest(name, shape.properties)}; correct the name"


def _told(subject: Subject, code: Code, message: str, *path: Step) -> Finding:
    return Finding(code, code.severity, message, *subject.find(*path))
