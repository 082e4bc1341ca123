"""A policy as a Rego module (`import rego.v1`): `data.carnet.policy.decision` of an input made by `facts_of`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from carnet_policy.export.clauses import Clause, Counter, Say, Tools, clauses_of
from carnet_policy.export.heading import heading
from carnet_policy.export.judgement import KINDS, Target
from carnet_policy.export.rego_regex import check_rego_text, rego_regex
from carnet_policy.export.terms import (
    NO,
    All,
    And,
    Any,
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

__all__ = ["to_rego"]

TARGET = Target(rego_regex, check_rego_text, None)
_START = """\
package carnet.policy

import rego.v1

default decision := "deny"

decision := "allow" if {
	permit
	not hold
	not forbid
}

decision := "require_approval" if {
	permit
	hold
	not forbid
}

decision := "require_approval" if {
	approve
	not permit
	not forbid
}

default permit := false

default approve := false

default forbid := false

default hold := false
"""
_END = """
at_most(v, units) if v.units < units

at_most(v, units) if {
	v.units == units
	v.more == false
}

beyond(v, units) if v.units > units

beyond(v, units) if {
	v.units == units
	v.more == true
}

below(path, folders) if {
	some folder in folders
	startswith(path, folder)
}

named(v, names) if {
	every name in v.names {
		name in names
	}
}

usable(name) if {
	input.history[name].unreadable == false
	is_number(input.history[name].units)
	is_boolean(input.history[name].young)
}
"""


def to_rego(policy: Policy) -> str | tuple[Unmapped, ...]:
    """The text of the module, or all that keeps the policy from being one."""
    clauses, unmapped = clauses_of(policy, TARGET)
    if unmapped:
        return unmapped
    printer = _Printer()
    rules = [printer.clause(clause) for clause in clauses]
    return "\n".join([*(f"# {line}".rstrip() for line in heading(policy)), _START, *rules, *printer.functions, _END])


class _Printer:
    """Alternatives become functions of one value, each written once."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self._names: dict[Term, str] = {}

    def clause(self, clause: Clause) -> str:
        note = f"# {clause.name} ({clause.place})"
        if clause.reason is not None:
            note += f": {json.dumps(clause.reason)}"
        lines = [*_tools(clause.tools), *(["not input.pinned == true"] if clause.unpinned else [])]
        if clause.counter is not None:
            lines.append(_counter(clause.counter))
        if not clause.unless:
            lines += self._lines(clause.term, "input.arguments")
        elif clause.term != NO:
            lines.append(f"not {self._call(clause.term)}(input.arguments)")
        return f"{note}\n{_rule(_SETS[clause.say], lines)}"

    def _call(self, term: Term) -> str:
        """The name of a function that tells whether a value fulfils the term."""
        if term not in self._names:
            name = self._names[term] = f"is_{len(self._names)}"
            branches = term.parts if isinstance(term, Or) else (term,)
            bodies = [_rule(f"{name}(v)", self._body(branch)) for branch in branches]
            self.functions.append("\n".join(bodies) if bodies else _rule(f"{name}(v)", ["v.kind == false"]))
        return self._names[term]

    def _body(self, term: Term) -> list[str]:
        if isinstance(term, Any):
            return ["some item in v.items", f"{self._call(term.term)}(item)"]
        return self._lines(term, "v")

    def _lines(self, term: Term, v: str) -> list[str]:
        match term:
            case And(parts):
                return [line for part in parts for line in self._lines(part, v)]
            case Or() | Any():
                return [f"{self._call(term)}({v})"]
            case Member(name, inner):
                return self._lines(inner, f"{v}.members[{_quoted(name)}]")
            case All(inner):
                return [f"every item in {v}.items {{\n\t\t{self._call(inner)}(item)\n\t}}"]
            case Missing() | NamesWithin() | KindIn() | Truth() | Length():
                return [_shape(term, v)]
            case Below() | Over() | Equal():
                return _number(term, v)
        return _text(term, v)


_SETS = {Say.PERMIT: "permit", Say.APPROVE: "approve", Say.FORBID: "forbid", Say.HOLD: "hold"}


def _shape(term: Missing | NamesWithin | KindIn | Truth | Length, v: str) -> str:
    match term:
        case Missing(name):
            return f"not {_quoted(name)} in {v}.names"
        case NamesWithin(names, inside):
            return f"{'' if inside else 'not '}named({v}, {_list(names)})"
        case KindIn(kinds):
            if len(kinds) == len(KINDS) - 1 and "nonfinite" not in kinds:
                return f'{v}.kind != "nonfinite"'
            return f"{v}.kind == {_quoted(kinds[0])}" if len(kinds) == 1 else f"{v}.kind in {_list(kinds)}"
        case Truth(value):
            return f"{v}.truth == {'true' if value else 'false'}"
    return f"{v}.length {term.sign} {term.count}"


def _number(term: Below | Over | Equal, v: str) -> list[str]:
    if isinstance(term, Equal):
        return [f"{v}.units == {term.units}", f"{v}.more == false"]
    if isinstance(term, Below):
        return [f"at_most({v}, {term.units})" if term.also else f"{v}.units < {term.units}"]
    return [f"{v}.units >= {term.units}" if term.also else f"beyond({v}, {term.units})"]


def _text(term: TextIn | Matches | FoldFree | Within | Host, v: str) -> list[str]:
    match term:
        case TextIn(words, inside):
            return [f"{'' if inside else 'not '}{v}.text in {_list(words)}"]
        case Matches(regex, inside):
            found = f"regex.match({_quoted(rego_regex(regex))}, {v}.text)"
            return [found] if inside else [f"is_string({v}.text)", f"not {found}"]
        case FoldFree():
            return [f"is_string({v}.text)", *(f"not contains({v}.text, {_quoted(x)})" for x in ("\u017f", "\u212a"))]
        case Within(folders, inside):
            return [f"is_string({v}.path)", f"{'' if inside else 'not '}below({v}.path, {_list(folders)})"]
    return [f"is_string({v}.host)", f"{'' if term.inside else 'not '}{v}.host in {_list(term.hosts)}"]


def _tools(tools: Tools) -> list[str]:
    if tools.only is not None:
        return [f"input.tool == {_quoted(tools.only)}"]
    return [f"not input.tool in {_list(tools.but)}"] if tools.but else ["is_string(input.tool)"]


def _counter(counter: Counter) -> str:
    name = _quoted(counter.name)
    if counter.test == "unusable":
        return f"not usable({name})"
    past = f"input.history[{name}]"
    return f"beyond({past}, {counter.units})" if counter.test == "over" else f"{past}.young == true"


def _rule(head: str, lines: Sequence[str]) -> str:
    return f"{head} if {{\n" + "".join(f"\t{line}\n" for line in lines) + "}\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(_quoted, words))}]"
