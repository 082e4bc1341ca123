"""History rules: bounds that outlive one call, over a run or over what a client did within a window."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from enum import StrEnum

from carnet_policy.decision import Effect
from carnet_policy.reading import Part, is_number

__all__ = ["UNREADABLE", "HistoryRule", "Kind", "Over", "Share", "Unreadable", "add", "read_history", "share_of"]

KEYS = ("match", "max", "sum", "distinct", "over", "window", "decision", "reason")
MAX_WINDOW = 366 * 86400
MAX_BITS = 4096

# Wide enough that adding finite floats and integers of MAX_BITS is exact; if it ever were not, it raises.
_EXACT = Context(prec=4000, Emax=999999, Emin=-999999, traps=[Inexact, InvalidOperation, Overflow])


class Over(StrEnum):
    """Whose calls a rule counts: of the whole run, or of the client in all its runs."""

    RUN = "run"
    CLIENT = "client"


class Kind(StrEnum):
    """What of the calls is bounded by `max`."""

    COUNT = "count"
    SUM = "sum"
    DISTINCT = "distinct"


class Unreadable:
    """A call whose share can not be told: for a sum the argument is missing, of a wrong type or below
    zero; for a set it is no JSON value."""


UNREADABLE = Unreadable()
Share = Decimal | tuple[object, ...] | Unreadable | None


@dataclass(frozen=True, slots=True)
class HistoryRule:
    """`id` is stable over edits of other rules and of its own reason. `tool` None = every irreversible tool."""

    index: int
    id: str
    kind: Kind
    arg: str | None
    max: Decimal | int  # a Decimal for sums
    over: Over
    window: int
    tool: str | None
    effect: Effect
    reason: str | None

    @property
    def name(self) -> str:
        """What decisions call it."""
        return f"history[{self.index}]"


def add(one: Decimal, other: Decimal) -> Decimal:
    """The exact sum; raises decimal.Inexact instead of rounding."""
    return _EXACT.add(one, other)


def share_of(rule: HistoryRule, args: Mapping[str, object]) -> Share:
    """What one call with these arguments adds to the rule's count (None), sum (a Decimal) or set (keys of values)."""
    if rule.arg is None:
        return None
    value = args.get(rule.arg)
    if rule.kind is Kind.SUM:
        return _amount(value)
    if rule.arg not in args:
        return (("absent",),)
    try:
        # A list counts each element, else ten ids in one call would be one.
        return tuple({_key(inner): None for inner in value}) if type(value) is list else (_key(value),)
    except (TypeError, RecursionError):
        return UNREADABLE  # no JSON value, or nested without end


def _amount(value: object) -> Decimal | Unreadable:
    if not is_number(value) or value < 0:  # type: ignore[operator]
        return UNREADABLE
    if type(value) is int:
        return Decimal(value) if value.bit_length() <= MAX_BITS else UNREADABLE
    return Decimal(repr(value))


def _key(value: object) -> object:
    if type(value) is str:
        return value
    if type(value) is dict:
        return ("object", *sorted((name, _key(inner)) for name, inner in value.items()))
    if type(value) is list:
        return ("array", *map(_key, value))
    if value is not None and type(value) not in (int, float, bool):
        raise TypeError(f"a {type(value).__name__} is no JSON value")
    return (type(value).__name__, repr(value) if type(value) is float else value)


def read_history(parts: Iterable[Part], unsafe: Iterable[str]) -> tuple[HistoryRule, ...]:
    """The rules in file order. `unsafe` describes which tools count as irreversible, for the ids."""
    rules: list[HistoryRule] = []
    seen: dict[str, str] = {}
    marker = sorted(unsafe)
    for index, part in enumerate(parts):
        part.name = f"history[{index}]"
        rule = _read(index, part, marker)
        if rule.id in seen:
            raise part.error(f"{rule.name} says the same as {seen[rule.id]}; keep one of the two")
        seen[rule.id] = rule.name
        rules.append(rule)
    return tuple(rules)


def _read(index: int, part: Part, unsafe: list[str]) -> HistoryRule:
    given = part.mapping(KEYS)
    for key in ("match", "max", "decision"):
        if key not in given:
            raise part.error(f"{part.name} has no {key}; add it")
    kind, arg = _kind(part, given)
    over = Over(given["over"].word_of([str(word) for word in Over])) if "over" in given else Over.RUN
    if (over is Over.CLIENT) != ("window" in given):
        raise part.error(f"{part.name}: over: client needs a window in seconds, and only over: client takes one")
    limit = given["max"].number() if kind is Kind.SUM else given["max"].integer(0, 1 << 53)
    if limit < 0:
        raise given["max"].error(f"{part.name}.max must not be below 0")
    tool = _match(given["match"])
    return HistoryRule(
        index=index,
        id=_id(part.value, unsafe if tool is None and arg is not None else None),
        kind=kind,
        arg=arg,
        max=Decimal(repr(limit)) if kind is Kind.SUM else int(limit),
        over=over,
        window=given["window"].integer(1, MAX_WINDOW) if "window" in given else 0,
        tool=tool,
        effect=Effect(given["decision"].word_of((Effect.DENY.value, Effect.REQUIRE_APPROVAL.value))),
        reason=given["reason"].text() if "reason" in given else None,
    )


def _kind(part: Part, given: Mapping[str, Part]) -> tuple[Kind, str | None]:
    if "sum" in given and "distinct" in given:
        raise part.error(f"{part.name} has both sum and distinct; write two rules")
    for kind in (Kind.SUM, Kind.DISTINCT):
        if kind.value in given:
            return kind, given[kind.value].text(128)
    return Kind.COUNT, None


def _match(part: Part) -> str | None:
    if part.value == "irreversible":
        return None
    if type(part.value) is not dict or list(part.value) != ["tool"]:
        raise part.error(f"{part.name} must be irreversible or {{tool: NAME}}, not {part.value!r}")
    return part.mapping(("tool",))["tool"].tool()


def _id(content: object, unsafe: list[str] | None) -> str:
    # A past call keeps only the arguments that some rule of its time named. So a rule over an argument of "every
    # irreversible tool" is a new rule when other tools become irreversible.
    told = {key: value for key, value in content.items() if key != "reason"} if isinstance(content, dict) else content
    text = json.dumps([told, unsafe], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"carnet-history-1\0" + text.encode()).hexdigest()
