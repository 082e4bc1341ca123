"""Whether a constraint and a tool's schema have a value in common. "Not certain" counts as yes."""

from __future__ import annotations

from collections.abc import Iterator

from carnet_policy.constraint import Constraint, same, type_of
from carnet_policy.decision import Effect
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.reading import shown
from carnet_policy.tooldefs import Shape

__all__ = ["impossible", "strangers"]


def impossible(constraint: Constraint, shape: Shape, effect: Effect) -> tuple[str, str] | None:
    """The word of the constraint that no value of the schema fulfils, and why; None when one may."""
    types = ", ".join(sorted(shape.types - ({"integer"} if "number" in shape.types else set()))) or "nothing"
    if not _accepted(constraint) & shape.types:
        return "type", f"the rule wants {constraint.type or 'other values'}, and the tool takes {types}"
    if constraint.enum is not None:
        if not any(_takes(shape, member) for member in constraint.enum):
            return "enum", f"the tool takes none of the listed values{_known(shape)}"
    elif shape.enum is not None:
        judge = compile_judge(constraint, Reading.CLOSED if effect is Effect.ALLOW else Reading.MOST)
        if all(judge(member) is False or (effect is Effect.ALLOW and not judge(member)) for member in shape.enum):
            return "pattern", f"none of the values that the tool takes fits{_known(shape)}"
    return _bounds(constraint, shape)


def strangers(constraint: Constraint, shape: Shape) -> Iterator[str]:
    """Listed values that the tool never takes, each in a sentence."""
    for member in constraint.enum or ():
        if not _takes(shape, member):
            yield f"the tool never takes {shown(member)}{_known(shape)}; correct or remove it"


def _accepted(constraint: Constraint) -> frozenset[str]:
    if constraint.enum is not None:
        kinds = set(map(type_of, constraint.enum))
        return frozenset(kinds | ({"integer"} if "number" in kinds else set()))
    if constraint.type is None:
        return frozenset(("string", "number", "integer", "boolean", "array", "object", "null"))
    return frozenset(("number", "integer")) if constraint.type == "number" else frozenset((constraint.type,))


def _takes(shape: Shape, member: object) -> bool:
    kind = type_of(member)
    whole = type(member) is float and member.is_integer()  # 1.0 is an integer to a schema
    if kind not in shape.types and not (whole and "integer" in shape.types):
        return False
    if isinstance(member, int | float) and type(member) is not bool:
        below = shape.minimum is not None and member < shape.minimum
        if below or (shape.maximum is not None and member > shape.maximum):
            return False
    return shape.enum is None or any(same(member, wanted) or member == wanted for wanted in shape.enum)


def _bounds(constraint: Constraint, shape: Shape) -> tuple[str, str] | None:
    c, s = constraint, shape
    lows = (
        ("min", c.min, s.maximum),
        ("min_length", c.min_length, s.max_length),
        ("min_items", c.min_items, s.max_items),
    )
    for word, low, most in lows:
        if low is not None and most is not None and low > most:
            return word, f"the rule's {word} is {low}, and the tool takes at most {most}"
    highs = (
        ("max", c.max, s.minimum),
        ("max_length", c.max_length, s.min_length),
        ("max_items", c.max_items, s.min_items),
    )
    for word, high, least in highs:
        if high is not None and least is not None and high < least:
            return word, f"the rule's {word} is {high}, and the tool takes at least {least}"
    return None


def _known(shape: Shape) -> str:
    if not shape.enum:
        return ""
    return f"; it takes {', '.join(shown(member) for member in shape.enum[:8])}"
