"""Distinct business objects (resources) that a call touches, read from the argument that the catalog names."""

from collections.abc import Container, Mapping
from typing import Any

from carnet.reasons import Reason, Refusal

__all__ = ["MAX_ID", "exceeds", "read_resources"]

MAX_ID = 256  # characters of one id
_QUOTED = '"'


def read_resources(args: Mapping[str, Any], resource_arg: str | None) -> tuple[str, ...] | Refusal:
    """The distinct ids in order of appearance; () for a tool without a `resource_arg`.

    An id is a non-empty string or an integer; a list counts each element. 1 and "1" are different ids. An empty list is
    refused, because tools take "none named" for "all of them".
    """
    if resource_arg is None:
        return ()
    if resource_arg not in args:
        return _unreadable(resource_arg, "is missing")
    value = args[resource_arg]
    items = value if isinstance(value, list | tuple) else (value,)
    if not items:
        return _unreadable(resource_arg, "names no resource")
    found: dict[str, None] = {}
    for item in items:
        text = _id(item)
        if text is None:
            return _unreadable(resource_arg, "holds something that is no id (a non-empty string or an integer)")
        found[text] = None
    return tuple(found)


def exceeds(limit: int | None, seen: Container[str], count: int, ids: tuple[str, ...]) -> Refusal | None:
    """Whether touching `ids` too goes beyond the limit. seen: ids touched so far, count: how many they are. None as
    limit: no bound (a run's root)."""
    if limit is None:
        return None
    total = count + sum(1 for item in ids if item not in seen)
    if total <= limit:
        return None
    return Refusal(Reason.RESOURCE_LIMIT, f"The task stated {limit} resources; with this call it would touch {total}.")


def _id(item: object) -> str | None:
    if type(item) is int:
        return str(item) if abs(item) < 2**53 else None
    if type(item) is not str or not 0 < len(item) <= MAX_ID:
        return None
    # a string that could be read as an integer, or as such a quotation, is quoted: two ids never share a text
    return f'"{item}"' if item.lstrip("-").isdecimal() or item.startswith(_QUOTED) else item


def _unreadable(name: str, why: str) -> Refusal:
    return Refusal(Reason.RESOURCE_UNREADABLE, f"The argument {name}, which names the resource, {why}.")
