"""A call as exported policies read it: plain JSON values with all that other engines can not tell by themselves.

They do not tell 1 from 1.0, compare large numbers inexactly, count bytes for letters and read paths and URLs loosely.
So each value comes with its kind and its measures:

- `kind`: string, integer, number, boolean, null, array, object; `nonfinite` for NaN and infinities;
  `other` for what is no JSON value.
- numbers: `units`, ten-thousandths rounded down and held within 2^53 - 1, and `more`, whether something was cut off.
- strings: `length` in code points, `text` unless it holds a lone surrogate, `path` (with a "/" at the end) and `host`
  where the string is an absolute path or an https URL that can be judged.
- arrays: `length`, `items`; objects: `names`, `members`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from carnet_policy.constraint import type_of
from carnet_policy.decision import Call
from carnet_policy.export.counters import counters_of
from carnet_policy.export.numbers import number_facts
from carnet_policy.folds import Ledger
from carnet_policy.places import host_of, segments_of
from carnet_policy.policy import Policy
from carnet_policy.reading import is_number

__all__ = ["facts_of", "is_clean", "plain_name"]

MOST_DEPTH = 9  # deeper than any constraint reaches
SPECIAL = ("__extn", "__entity", "__expr")  # Cedar's JSON reads these keys as something else


def facts_of(policy: Policy, call: Call, ledger: Ledger | None = None) -> dict[str, Any]:
    """What an exported policy is asked about one call: the Rego input, and the context of a Cedar request."""
    args = dict(call.args)
    return {
        "tool": _encodable(call.tool),
        "pinned": call.pinned is True,
        "arguments": _value(args, 0),
        "history": dict(counters_of(policy, call, ledger)),
    }


def is_clean(text: str) -> bool:
    """Whether it can be written as UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def plain_name(name: str) -> bool:
    """Whether an argument of this name can be handed over as a member."""
    return is_clean(name) and "\0" not in name and name not in SPECIAL


def _encodable(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" or char == "\0" else char for char in text)


def _value(value: object, depth: int) -> dict[str, Any]:
    kind = type_of(value)
    facts: dict[str, Any] = {"kind": kind or "other"}
    if isinstance(value, bool):
        facts["truth"] = value
    elif isinstance(value, int | float):
        facts |= number_facts(value) if is_number(value) else {"kind": "nonfinite"}
    elif isinstance(value, str):
        facts |= {"length": len(value), **dict(_texts(value))}
    elif isinstance(value, list) and kind:
        facts |= {"length": len(value), "items": []}
        if depth <= MOST_DEPTH:
            facts["items"] = [_value(inner, depth + 1) for inner in value]
    elif isinstance(value, dict) and kind:
        facts |= {"names": sorted({_name(name) for name in value}), "members": {}}
        if depth <= MOST_DEPTH:
            facts["members"] = _members(value, depth)
    return facts


def _members(value: Mapping[Any, object], depth: int) -> dict[str, Any]:
    return {name: _value(inner, depth + 1) for name, inner in value.items() if type(name) is str and plain_name(name)}


def _name(name: object) -> str:
    """A name as it is, or one that no policy can name."""
    return name if type(name) is str and plain_name(name) else "\ufffd"


def _texts(value: str) -> Iterator[tuple[str, str]]:
    if is_clean(value):
        yield "text", value
    parts = segments_of(value)
    if parts is not None:
        yield "path", "".join(f"/{_encodable(part)}" for part in parts) + "/"
    host = host_of(value)
    if host is not None:
        yield "host", host
