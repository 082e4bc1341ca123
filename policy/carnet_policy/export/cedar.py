"""A policy as Cedar text. A call is asked as action `call`, and if that is denied as `call_with_approval`; the second
one allowed means that a person decides. The context is what `facts_of` tells, the resource the tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as Anything

from carnet_policy.export.clauses import Clause, Counter, Say, Tools, clauses_of
from carnet_policy.export.heading import heading
from carnet_policy.export.judgement import KINDS, Target
from carnet_policy.export.likes import Like, likes_of, likes_of_text
from carnet_policy.export.terms import (
    NO,
    YES,
    And,
    Below,
    Equal,
    FoldFree,
    Host,
    KindIn,
    Length,
    Matches,
    Member,
    Missing,
    NamesWithin,
    Or,
    Over,
    Term,
    TextIn,
    Truth,
    Within,
)  # fmt: skip
from carnet_policy.export.unmapped import Unmapped
from carnet_policy.policy import Policy

__all__ = ["ACTIONS", "cedar_request", "to_cedar"]

ACTIONS = ("call", "call_with_approval")
TARGET = Target(likes_of, likes_of_text, "the elements of a list can not be judged in Cedar, which has no loops")
_SCOPES = {
    Say.PERMIT: 'permit (principal, action in [Action::"call", Action::"call_with_approval"], resource',
    Say.APPROVE: 'permit (principal, action == Action::"call_with_approval", resource',
    Say.FORBID: "forbid (principal, action, resource",
    Say.HOLD: 'forbid (principal, action == Action::"call", resource',
}


def to_cedar(policy: Policy) -> str | tuple[Unmapped, ...]:
    """The text of the policies, or all that keeps this policy from being exported."""
    clauses, unmapped = clauses_of(policy, TARGET)
    if unmapped:
        return unmapped
    top = [
        *heading(policy),
        "Ask action call first, then call_with_approval; a request with errors in its diagnostics is a deny.",
        "",
    ]
    return "\n".join([*(f"// {line}".rstrip() for line in top), *map(_clause, clauses)])


def cedar_request(facts: Mapping[str, Anything], action: str, agent: str = "agent") -> dict[str, Anything]:
    """The request about a call, from what `facts_of` tells; `action` is one of ACTIONS."""
    return {
        "principal": {"type": "Agent", "id": agent},
        "action": {"type": "Action", "id": action},
        "resource": {"type": "Tool", "id": facts["tool"]},
        "context": {name: value for name, value in facts.items() if name != "tool"},
    }


def _clause(clause: Clause) -> str:
    test = f" {clause.counter.test}" if clause.counter is not None else ""
    lines = [f"// {clause.place}", f"@id({_quoted(f'{clause.name} {clause.say.value}{test}')})"]
    if clause.reason is not None:
        lines.append(f"@reason({_quoted(clause.reason)})")
    only = clause.tools.only
    lines.append(f"{_SCOPES[clause.say]}{'' if only is None else f' == Tool::{_quoted(only)}'})")
    lines += _tools(clause.tools)
    if clause.unpinned:
        lines.append("unless { context.pinned }")
    if clause.counter is not None:
        lines.append(_counter(clause.counter))
    if clause.term not in (YES, NO):
        lines.append(f"{'unless' if clause.unless else 'when'} {{ {_term(clause.term, 'context.arguments')} }}")
    elif clause.term == NO and not clause.unless:
        lines.append("when { false }")
    return "\n".join(lines) + ";\n"


def _tools(tools: Tools) -> list[str]:
    if not tools.but:
        return []
    return [f"unless {{ [{', '.join(f'Tool::{_quoted(tool)}' for tool in tools.but)}].contains(resource) }}"]


def _counter(counter: Counter) -> str:
    name = _quoted(counter.name)
    past = f"context.history[{name}]"
    if counter.test == "unusable":
        return f"unless {{ context.history has {name} && !{past}.unreadable }}"
    test = _number(Over(counter.units, False), past) if counter.test == "over" else f"{past}.young"
    return f"when {{ context.history has {name} && {test} }}"


def _term(term: Term, v: str) -> str:
    match term:
        case And(parts):
            return " && ".join(_term(part, v) for part in parts) or "true"
        case Or(parts):
            return f"({' || '.join(_term(part, v) for part in parts) or 'false'})"
        case Member(name, inner):
            return f"{v}.members has {_quoted(name)} && {_term(inner, f'{v}.members[{_quoted(name)}]')}"
        case Missing() | NamesWithin() | KindIn() | Truth() | Length():
            return _shape(term, v)
        case Below() | Over() | Equal():
            return _number(term, v)
        case TextIn() | Matches() | FoldFree() | Within() | Host():
            return _text(term, v)
    raise TypeError(f"{type(term).__name__} has no form in Cedar")


def _shape(term: Missing | NamesWithin | KindIn | Truth | Length, v: str) -> str:
    match term:
        case Missing(name):
            return f"!({v}.members has {_quoted(name)})"
        case NamesWithin(names, inside):
            return f"{'' if inside else '!'}{_list(names)}.containsAll({v}.names)"
        case KindIn(kinds):
            if len(kinds) == len(KINDS) - 1 and "nonfinite" not in kinds:
                return f'{v}.kind != "nonfinite"'
            return f"{v}.kind == {_quoted(kinds[0])}" if len(kinds) == 1 else f"{_list(kinds)}.contains({v}.kind)"
        case Truth(value):
            return f"{v}.truth" if value else f"!{v}.truth"
    return f"{v}.length {term.sign} {term.count}"


def _number(term: Below | Over | Equal, v: str) -> str:
    if isinstance(term, Equal):
        return f"{v}.units == {term.units} && !{v}.more"
    if isinstance(term, Below):
        return (
            f"({v}.units < {term.units} || {v}.units == {term.units} && !{v}.more)"
            if term.also
            else (f"{v}.units < {term.units}")
        )
    return (
        f"{v}.units >= {term.units}"
        if term.also
        else (f"({v}.units > {term.units} || {v}.units == {term.units} && {v}.more)")
    )


def _text(term: TextIn | Matches | FoldFree | Within | Host, v: str) -> str:
    match term:
        case TextIn(words, inside):
            return f"{'' if inside else '!'}({v} has text && {_list(words)}.contains({v}.text))"
        case Matches(regex, inside):
            likes = " || ".join(f"{v}.text like {_like(like)}" for like in likes_of(regex)) or "false"
            return f"{v} has text && {'' if inside else '!'}({likes})"
        case FoldFree():
            return f'{v} has text && !({v}.text like "*\\u{{17f}}*" || {v}.text like "*\\u{{212a}}*")'
        case Within(folders, inside):
            likes = " || ".join(f"{v}.path like {_like((*folder, None))}" for folder in folders)
            return f"{v} has path && {'' if inside else '!'}({likes})"
    return f"{v} has host && {'' if term.inside else '!'}{_list(term.hosts)}.contains({v}.host)"


def _like(like: Like) -> str:
    return '"' + "".join("*" if step is None else r"\*" if step == "*" else _char(step) for step in like) + '"'


def _quoted(text: str) -> str:
    return '"' + "".join(map(_char, text)) + '"'


def _char(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, words))}]"
