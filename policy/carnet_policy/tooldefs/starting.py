"""A strict policy to start from: a person decides every call, and everything counts as irreversible until somebody
who knows the tools says otherwise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from carnet_policy.ceilings import compile_constraints
from carnet_policy.errors import PolicyError
from carnet_policy.tooldefs.definition import ToolDefinition, ToolDefinitions
from carnet_policy.tooldefs.shape import TYPES, Shape

__all__ = ["starting_policy"]

MAX_NESTING = 4
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS = {"true", "false", "null"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
_HEAD = """\
# A start, made from tool definitions. Nothing runs without a person yet.
# 1. Look at every effect in the catalog: read, write or irreversible. What a server says of itself is a hint only.
# 2. Bound the arguments: path_within, url_host, pattern, min and max.
# 3. Turn require_approval into allow where the bounds are enough, and check again.
id: {id}
version: 1
defaults: {{decision: deny}}
catalog:
"""
_TAIL = """\
history:
  - {match: irreversible, max: 1, decision: deny, reason: "second irreversible action in this run"}
  - {match: irreversible, max: 10, over: client, window: 86400, decision: deny, reason: "daily bound of this client"}
approvals: {timeout: 120, on_denial: revoke}
"""


def starting_policy(definitions: ToolDefinitions, id: str) -> str:
    """The text of a policy that names every defined tool. Errors: PolicyError when there is none."""
    if not definitions.tools:
        raise PolicyError("the tool definitions name no tool, so there is nothing to write a policy for")
    tools = [definitions.tools[name] for name in sorted(definitions.tools)]
    lines = [_HEAD.format(id=id)]
    for tool in tools:
        hint = f"  # the server says: {tool.hint}" if tool.hint else ""
        lines.append(f"  {_key(tool.name)}: {{effect: irreversible}}{hint}\n")
    lines.append("tools:\n")
    for tool in tools:
        lines += _rules(tool)
    return "".join([*lines, _TAIL])


def _rules(tool: ToolDefinition) -> Iterable[str]:
    yield f"  {_key(tool.name)}:\n    - decision: require_approval\n"
    shape = tool.shape
    if shape is None or not shape.properties:
        return
    yield "      args:\n"
    for name, inner in shape.properties.items():
        constraint = _usable(name, _constraint(inner, name in shape.required, 0))
        yield f"        {_key(name)}: {_flow(constraint)}\n"


def _usable(name: str, constraint: dict[str, object]) -> dict[str, object]:
    """The constraint, or what of it loads: a schema may be fulfilled by nothing, or hold a regex of another kind."""
    milder = {word: value for word, value in constraint.items() if word in ("type", "required")}
    presence = {word: value for word, value in constraint.items() if word == "required"}
    for candidate in (constraint, {w: v for w, v in constraint.items() if w != "pattern"}, milder):
        try:
            compile_constraints({name: candidate}, name)
        except PolicyError:
            continue
        return candidate
    return presence


def _constraint(shape: Shape, required: bool, depth: int) -> dict[str, object]:
    found: dict[str, object] = {} if required else {"required": False}
    kind = _kind(shape)
    if kind is not None:
        found["type"] = kind
    if shape.enum:
        return {**found, "enum": list(shape.enum)}
    if kind == "string":
        found |= _told(min_length=shape.min_length, max_length=shape.max_length, pattern=_whole(shape.pattern))
    elif kind in ("number", "integer"):
        found |= _told(min=shape.minimum, max=shape.maximum)
    elif kind == "array":
        found |= _told(min_items=shape.min_items, max_items=shape.max_items)
        if shape.items is not None and depth < MAX_NESTING:
            found["items"] = _constraint(shape.items, True, depth + 1)
    elif kind == "object" and shape.properties and depth < MAX_NESTING:
        found["properties"] = {
            name: _constraint(inner, name in shape.required, depth + 1) for name, inner in shape.properties.items()
        }
    return found


def _kind(shape: Shape) -> str | None:
    """The one type, if there is one: a policy's constraint has no unions."""
    types = shape.types - {"integer"} if "number" in shape.types else shape.types
    return next(iter(types)) if len(types) == 1 and shape.types != TYPES else None


def _told(**values: object) -> dict[str, object]:
    return {word: value for word, value in values.items() if value is not None}


def _whole(pattern: str | None) -> str | None:
    """JSON Schema searches and a policy matches the whole value, so only anchored patterns mean the same."""
    anchored = pattern is not None and pattern.startswith("^") and pattern.endswith("$") and "|" not in pattern
    return pattern if anchored else None


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else _quoted(name)


def _quoted(text: str) -> str:
    found = json.dumps(text, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda char: f"\\u{ord(char.group()):04x}", found)


def _entry(name: str, value: object) -> str:
    return _key(value) if name == "type" and isinstance(value, str) else _flow(value)


def _flow(value: object) -> str:
    """JSON, which is YAML too; keys unquoted where that is the same."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(name))}: {_entry(str(name), inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)
