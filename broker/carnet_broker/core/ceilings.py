"""Ceilings of a delegation: `{tool: {"args": {argument: constraints}, "max_calls": n}}` in the policy's grammar.

A child's ceiling is every layer above it intersected: the parent's, the registered ones of parent and target, the
requested one. What is left out is inherited. What cannot be compared is refused, never guessed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from carnet.reasons import Reason, Refusal
from carnet_broker.core.rows import Envelope
from carnet_policy import Policy, PolicyError, compile_constraints, intersect

__all__ = ["MAX_CALLS", "combine", "parse_ceilings", "pinned", "unasked_tools"]

MAX_CALLS = 100_000  # a larger number bounds nothing: a run holds fewer calls
_MEMBERS = frozenset({"args", "max_calls"})
_LISTING = frozenset({"enum", "const"})  # these list whole values, members of objects included
# "at least so long" keeps nothing out, and `properties` leaves other members free
_BOUNDING = _LISTING | {"min", "max", "max_length", "pattern", "path_within", "url_host", "max_items"}
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


def pinned(envelope: Envelope, policy: Policy, tool: str) -> bool:
    """Whether the approval of this envelope stands for single irreversible calls of the tool too.

    Only where a person saw how often the tool may run and a bound on everything that a call can carry: `max_calls`, and
    for each argument of the policy's rules a ceiling that says more than its type. An argument that may be absent is
    not bounded, for the tool's own default would take its place.
    """
    entry, paths = envelope.ceilings.get(tool, {}), policy.rule_args(tool)
    if not envelope.approval_required or "max_calls" not in entry or not paths:
        return False
    return all(_bounded(entry.get("args", {}), path) for path in paths)


def unasked_tools(envelope: Envelope, policy: Policy) -> tuple[str, ...]:
    """The tools that can run under this envelope without a further question to a person."""
    return tuple(tool for tool in envelope.tools if policy.unasked(tool, pinned=pinned(envelope, policy, tool)))


def _bounded(args: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    rule = args.get(path[0])
    if rule is None or rule.get("required") is False:
        return False
    if rule.keys() & _LISTING or len(path) == 1:
        return _bounds(rule)
    return _bounded(rule.get("properties", {}), path[1:])


def _bounds(rule: Mapping[str, Any]) -> bool:
    return bool(rule.keys() & _BOUNDING) or ("items" in rule and _bounds(rule["items"]))
