"""`intersect`: the constraints that admit what both sides admit; nothing is guessed where two can not be merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from carnet_policy.ceilings import compile_constraints, plain_of
from carnet_policy.constraint import same
from carnet_policy.errors import PolicyError
from carnet_policy.places import is_within, segments_of

__all__ = ["intersect"]

Raw = Mapping[str, Mapping[str, object]]
_WHERE = "ceiling"


def intersect(parent: Raw | None, child: Raw | None) -> dict[str, dict[str, Any]]:
    """The parent's constraints and the child's together; None = states nothing, so the other side holds.

    Errors: PolicyError when a side does not compile, when two patterns differ, or when nothing is left.
    """
    one, other = (plain_of(side or {}, _WHERE) for side in (parent, child))
    for side in (one, other):
        compile_constraints(side, _WHERE)
    merged = _merge_all(one, other, "")
    compile_constraints(merged, _WHERE)
    return merged


def _merge_all(parent: Mapping[str, Any], child: Mapping[str, Any], where: str) -> dict[str, dict[str, Any]]:
    merged: dict[str, dict[str, Any]] = {}
    for name in [*parent, *(name for name in child if name not in parent)]:
        if name in parent and name in child:
            merged[name] = _merge(parent[name], child[name], f"{where}{name}")
        else:
            merged[name] = dict(parent[name] if name in parent else child[name])
    return merged


def _merge(parent: Mapping[str, Any], child: Mapping[str, Any], where: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for word in [*parent, *(word for word in child if word not in parent)]:
        if word in parent and word in child:
            merged[word] = _both(word, parent[word], child[word], where)
        else:
            merged[word] = parent[word] if word in parent else child[word]
    if merged.get("required") is False and not ("required" in parent and "required" in child):
        del merged["required"]  # the side that is silent wants the argument to be there
    return merged


def _both(word: str, one: Any, other: Any, where: str) -> Any:
    if word == "items":
        return _merge(one, other, f"{where}[]")
    if word == "properties":
        return _merge_all(one, other, f"{where}.")
    if word in ("min", "min_length", "min_items", "required"):
        return max(one, other)
    if word in ("max", "max_length", "max_items"):
        return min(one, other)
    found = _COMMON[word](one, other)
    if not found:
        raise PolicyError(f"{where}: nothing certain is left of the two {word}; use the parent's {word}", _WHERE)
    return found[0]


def _types(one: Any, other: Any) -> list[Any]:
    return [one] if one == other else ["integer"] if {one, other} == {"integer", "number"} else []


def _equal(one: Any, other: Any) -> list[Any]:
    return [one] if same(one, other) else []


def _members(one: Any, other: Any) -> list[Any]:
    common = [member for member in other if any(same(member, wanted) for wanted in one)]
    return [common] if common else []


def _hosts(one: Any, other: Any) -> list[Any]:
    common = sorted(set(_listed(one)) & set(_listed(other)))
    return [common] if common else []


def _roots(one: Any, other: Any) -> list[Any]:
    pairs = [(segments_of(mine) or (), segments_of(theirs) or ()) for mine in _listed(one) for theirs in _listed(other)]
    deeper = {max(pair, key=len) for pair in pairs if is_within(*pair) or is_within(*reversed(pair))}
    return [["/" + "/".join(root) for root in sorted(deeper)]] if deeper else []


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


_COMMON: dict[str, Callable[[Any, Any], list[Any]]] = {
    "type": _types,
    "enum": _members,
    "const": _equal,
    "pattern": _equal,
    "path_within": _roots,
    "url_host": _hosts,
}
