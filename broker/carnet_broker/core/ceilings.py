"""Ceilings of a delegation: `{tool: {"args": {argument: constraints}, "max_calls": n}}` in the policy's grammar.

A child's ceiling is every layer above it intersected: the parent's, the registered ones of parent and target, the
requested one. What is left out is inherited. What cannot be compared is refused, never guessed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from carnet.reasons import Reason, Refusal
from carnet_policy import PolicyError, compile_constraints, intersect

__all__ = ["MAX_CALLS", "combine", "parse_ceilings", "pins"]

MAX_CALLS = 100_000  # a larger number bounds nothing: a run holds fewer calls
_MEMBERS = frozenset({"args", "max_calls"})
Ceilings = Mapping[str, Mapping[str, Any]]


def parse_ceilings(value: object) -> dict[str, dict[str, Any]] | Refusal:
    """Check the form of ceilings that came from outside (parsed JSON or YAML) and return them as plain mappings."""
    if not isinstance(value, Mapping):
        return Refusal(Reason.CEILING_INVALID, "Ceilings must be an object of tools.")
    parsed: dict[str, dict[str, Any]] = {}
    for tool, entry in value.items():
        problem = _problem(tool, entry)
        if problem is not None:
            return Refusal(Reason.CEILING_INVALID, problem)
        parsed[str(tool)] = dict(entry)
    return parsed


def combine(layers: Iterable[Ceilings], tools: Iterable[str]) -> dict[str, dict[str, Any]] | Refusal:
    """All layers intersected, for these tools only; a tool that no layer bounds has no entry."""
    above = list(layers)
    combined: dict[str, dict[str, Any]] = {}
    for tool in sorted(tools):
        entry = _tool_entry(tool, [layer[tool] for layer in above if tool in layer])
        if isinstance(entry, Refusal):
            return entry
        if entry:
            combined[tool] = entry
    return combined


def _tool_entry(tool: str, entries: list[Mapping[str, Any]]) -> dict[str, Any] | Refusal:
    args: dict[str, Any] = {}
    for entry in entries:
        try:
            args = intersect(args, entry.get("args", {}))
        except PolicyError as error:
            return Refusal(
                Reason.CEILING_INVALID, f"The ceiling of {tool} cannot be combined with the one above it: {error}."
            )
    bounds = [entry["max_calls"] for entry in entries if "max_calls" in entry]
    result: dict[str, Any] = {"args": args} if args else {}
    if bounds:
        result["max_calls"] = min(bounds)
    return result


def _problem(tool: object, entry: object) -> str | None:
    if type(tool) is not str:
        return "The name of a tool must be a string."
    if not isinstance(entry, Mapping) or not entry or not entry.keys() <= _MEMBERS:
        return f"The ceiling of {tool[:128]!r} must be an object with args, max_calls or both."
    if "max_calls" in entry:
        bound = entry["max_calls"]
        if type(bound) is not int or not 0 <= bound <= MAX_CALLS:
            return f"max_calls of {tool[:128]!r} must be an integer from 0 to {MAX_CALLS}."
    if "args" not in entry:
        return None
    if not isinstance(entry["args"], Mapping) or not all(isinstance(rule, Mapping) for rule in entry["args"].values()):
        return f"args of {tool[:128]!r} must be an object of arguments, each with its constraints."
    try:
        compile_constraints(entry["args"], f"ceiling of {tool[:128]}")
    except PolicyError as error:
        return f"{error}."
    return None


def pins(ceilings: Ceilings, tool: str) -> bool:
    """Whether an approved envelope pins this tool: with a bound on its arguments and on the number of its calls. Only
    then does the approval of a delegation stand for single irreversible calls too."""
    entry = ceilings.get(tool, {})
    return bool(entry.get("args")) and "max_calls" in entry
