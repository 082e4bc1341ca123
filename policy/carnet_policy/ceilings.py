"""Ceilings: bounds on the arguments of one tool, in the policy's grammar. A ceiling fails closed: an argument that it
names must be there (unless `required: false`) and must match; arguments that it does not name are not bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from carnet_policy.constraint import Constraint
from carnet_policy.errors import PolicyError
from carnet_policy.grammar import read_constraints
from carnet_policy.judging import Judge, Reading, compile_judge
from carnet_policy.marked import Marked
from carnet_policy.reading import Part

__all__ = ["Compiled", "compile_constraints", "plain_of", "satisfies"]


MAX_PARTS = 1024
MAX_PATTERNS = 16  # compiling one takes up to some hundredths of a second
MAX_DEPTH = 24
MAX_BITS = 1024


@dataclass(frozen=True, slots=True)
class Compiled:
    """Ready to judge; made by `compile_constraints` only."""

    rules: Mapping[str, Constraint]
    judges: tuple[tuple[str, Judge, bool], ...] = field(repr=False)


def compile_constraints(mapping: Mapping[str, Mapping[str, object]], where: str) -> Compiled:
    """`{"amount": {"max": 20}}` ready to judge; `where` names it in errors. Errors: PolicyError."""
    value = plain_of(mapping, where)
    rules = read_constraints(Part(Marked(value, where), value))
    judges = [(name, compile_judge(rule, Reading.EVERY), rule.required is False) for name, rule in rules.items()]
    return Compiled(rules, tuple(judges))


def plain_of(mapping: object, where: str) -> dict[str, Any]:
    """A deep copy as plain dicts. A ceiling may come from outside, so its size and depth are bounded.

    Errors: PolicyError for anything else than JSON values, and beyond the caps.
    """
    if not isinstance(mapping, Mapping):
        raise PolicyError("constraints must be a mapping of arguments", where)
    left, patterns = MAX_PARTS, MAX_PATTERNS

    def copied(value: object, depth: int) -> object:
        nonlocal left, patterns
        left -= 1
        if left < 0 or depth > MAX_DEPTH:
            raise PolicyError(f"has more than {MAX_PARTS} parts or is nested more than {MAX_DEPTH} deep", where)
        if isinstance(value, Mapping):
            patterns -= type(value.get("pattern")) is str
            if patterns < 0:
                raise PolicyError(f"has more than {MAX_PATTERNS} patterns; use enum or fewer of them", where)
            return {name: copied(inner, depth + 1) for name, inner in _named(value, where)}
        if type(value) is list:
            return [copied(inner, depth + 1) for inner in value]
        if value is not None and type(value) not in (str, int, float, bool):
            raise PolicyError(f"a {type(value).__name__} is no JSON value", where)
        if type(value) is int and value.bit_length() > MAX_BITS:
            raise PolicyError(f"a number has more than {MAX_BITS} bits", where)
        return value

    return {name: copied(inner, 1) for name, inner in _named(mapping, where)}


def _named(mapping: Mapping[Any, object], where: str) -> Iterable[tuple[str, object]]:
    if not all(type(name) is str for name in mapping):
        raise PolicyError("a key is no string; only strings name arguments and constraints", where)
    return mapping.items()


def satisfies(constraints: Compiled, args: Mapping[str, object]) -> bool:
    """Whether every bounded argument is within its bounds. Never raises: what can not be judged is outside."""
    try:
        for name, judge, optional in constraints.judges:
            if name not in args:
                if not optional:
                    return False
            elif judge(args[name]) is not True:
                return False
    except Exception:  # noqa: BLE001 - a value that breaks the judging (say, nested too deep) is refused, not raised
        return False
    return True
