"""Ceilings: bounds on the arguments of one tool, in the policy's grammar. A ceiling fails closed: an argument that it
names must be there (unless `required: false`) and must match; arguments that it does not name are not bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from carnet_policy.constraint import Constraint
from carnet_policy.errors import PolicyError
from carnet_policy.grammar import read_constraints
from carnet_policy.judging import Judge, Reading, compile_judge
from carnet_policy.marked import Marked
from carnet_policy.reading import Part

__all__ = ["Compiled", "compile_constraints", "satisfies"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Ready to judge; made by `compile_constraints` only."""

    rules: Mapping[str, Constraint]
    judges: tuple[tuple[str, Judge, bool], ...] = field(repr=False)


def compile_constraints(mapping: Mapping[str, Mapping[str, object]], where: str) -> Compiled:
    """`{"amount": {"max": 20}}` ready to judge; `where` names it in errors. Errors: PolicyError."""
    value = {name: dict(rule) if isinstance(rule, Mapping) else rule for name, rule in mapping.items()}
    if not all(type(name) is str for name in value):
        raise PolicyError("the name of an argument must be a string", where)
    rules = read_constraints(Part(Marked(value, where), value))
    judges = [(name, compile_judge(rule, Reading.EVERY), rule.required is False) for name, rule in rules.items()]
    return Compiled(rules, tuple(judges))


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
