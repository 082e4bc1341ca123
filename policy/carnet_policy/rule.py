"""One rule of a tool: when it matches and what it then says.

An allow matches closed: an argument that it does not name means no match, unless `extra_args: true`. Deny and
require_approval match open, so that an extra argument can not dodge them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from carnet_policy.constraint import Constraint
from carnet_policy.decision import Effect
from carnet_policy.grammar import read_constraints
from carnet_policy.judging import Judge, Reading, compile_judge
from carnet_policy.reading import Part, shown

__all__ = ["Rule", "read_rules"]

KEYS = ("decision", "args", "reason", "extra_args", "data_class")
Fields = tuple[tuple[str, Judge, bool], ...]
_READINGS = {Effect.ALLOW: Reading.CLOSED, Effect.DENY: Reading.SOME, Effect.REQUIRE_APPROVAL: Reading.MOST}


@dataclass(frozen=True, slots=True)
class Rule:
    """`name` is what decisions call it (`refund[1]`). `fields`: name, judge, whether the argument may be absent.
    `matches` says of arguments True, False, or None where none of them says no but one can not be judged."""

    name: str
    effect: Effect
    args: Mapping[str, Constraint]
    reason: str | None
    extra_args: bool
    data_class: frozenset[str]
    part: Part = field(repr=False, compare=False)
    fields: Fields = field(repr=False, compare=False)
    matches: Callable[[Mapping[str, object]], bool | None] = field(repr=False, compare=False)

    def doubt(self, args: Mapping[str, object]) -> str:
        """Which argument kept `matches` from an answer; empty when none did."""
        doubtful = (name for name, judge, _ in self.fields if name in args and judge(args[name]) is None)
        return next((f"argument {name} can not be judged" for name in doubtful), "")

    def mismatch(self, args: Mapping[str, object]) -> str:
        """Why it does not match, in words; values are never shown."""
        for name, judge, optional in self.fields:
            if name not in args:
                if not optional:
                    return f"argument {name} is missing"
            elif judge(args[name]) is not True:
                return f"argument {name} does not match"
        extra = sorted(set(args) - {name for name, _, _ in self.fields})
        return f"unexpected argument {shown(extra[0])[1:-1]} is not named by the rule" if extra else "it does not match"


def read_rules(tool: str, part: Part) -> list[Rule]:
    """The rules of one tool in file order. Errors: PolicyError, also for an allow that a missing argument would let
    past a deny."""
    rules = [_read(f"{tool}[{index}]", entry) for index, entry in enumerate(part.sequence())]
    for allow in rules:
        for deny in rules:
            if allow.effect is Effect.ALLOW and deny.effect is Effect.DENY:
                _check_dodge(allow, deny)
    return rules


def _read(name: str, part: Part) -> Rule:
    part.name = name
    given = part.mapping(KEYS)
    if "decision" not in given:
        raise part.error(f"{name} has no decision; say allow, deny or require_approval")
    effect = Effect(given["decision"].word_of([str(word) for word in Effect]))
    if "extra_args" in given and effect is not Effect.ALLOW:
        raise given["extra_args"].error(
            f"extra_args is for allow rules; {effect} rules match any further argument anyway"
        )
    args = read_constraints(given["args"]) if "args" in given else {}
    reading = _READINGS[effect]
    fields = tuple((arg, compile_judge(rule, reading), rule.required is False) for arg, rule in args.items())
    extra_args = "extra_args" in given and given["extra_args"].boolean()
    return Rule(
        name=name,
        effect=effect,
        args=args,
        reason=given["reason"].text() if "reason" in given else None,
        extra_args=extra_args,
        data_class=given["data_class"].words() if "data_class" in given else frozenset(),
        part=part,
        fields=fields,
        matches=_matcher(fields, closed=effect is Effect.ALLOW and not extra_args),
    )


def _matcher(fields: Fields, *, closed: bool) -> Callable[[Mapping[str, object]], bool | None]:
    """closed: an argument that no field names means no match."""

    def matches(args: Mapping[str, object]) -> bool | None:
        doubt, named = False, 0
        for name, judge, optional in fields:
            if name in args:
                answer = judge(args[name])
                if answer is False:
                    return False
                doubt = doubt or answer is None
                named += 1
            elif not optional:
                return False
        if closed and named != len(args):
            return False
        return None if doubt else True

    return matches


def _check_dodge(allow: Rule, deny: Rule) -> None:
    # A tool may fill a missing argument with a default that the deny would have caught.
    for path in _needed(deny.args):
        if not _present(allow.args, path):
            arg = ".".join(path)
            raise allow.part.error(
                f"{allow.name} can allow a call without {arg}, which {deny.name} denies on; "
                f"name {arg} in the args of {allow.name}"
            )


def _needed(args: Mapping[str, Constraint], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, rule in args.items():
        if rule.required is not False:
            found.append((*before, name))
        found += _needed(rule.properties or {}, (*before, name))
    return found


def _present(args: Mapping[str, Constraint], path: tuple[str, ...]) -> bool:
    rule = args.get(path[0])
    if rule is None or rule.required is False:
        return False
    return len(path) == 1 or _present(rule.properties or {}, path[1:])
