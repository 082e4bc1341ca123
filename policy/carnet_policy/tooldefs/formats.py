"""The documents that hold tool definitions: an answer to MCP `tools/list`, and the tools of a request to OpenAI (chat
and responses) or Anthropic."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

from carnet_policy.constraint import same
from carnet_policy.errors import PolicyError
from carnet_policy.tooldefs.definition import ToolDefinition, ToolDefinitions
from carnet_policy.tooldefs.schemas import Reader

__all__ = ["read_definitions"]

MAX_BYTES = 8 << 20
MAX_TOOLS = 10_000
MAX_DEPTH = 128
_TOOL = re.compile(r"[\x21\x23-\x5B\x5D-\x7E]{1,128}")
_SCHEMAS = ("inputSchema", "input_schema", "parameters")


def read_definitions(texts: Sequence[tuple[str, str]]) -> ToolDefinitions:
    """The tools of (name, text) pairs together. Errors: PolicyError for what is no JSON, holds no tools, or defines a
    tool twice in different ways."""
    tools: dict[str, ToolDefinition] = {}
    schemas: dict[str, object] = {}
    problems: list[tuple[str, str]] = []
    for file, text in texts:
        for entry in _entries(_parse(text, file), file, problems):
            found, schema = _read(entry, file, problems)
            if found is None:
                continue
            if found.name in tools and not same(schemas[found.name], schema):
                raise PolicyError(f"{found.name} is defined twice, in different ways; keep one of the two", file)
            tools[found.name], schemas[found.name] = found, schema
            if len(tools) > MAX_TOOLS:
                raise PolicyError(f"more than {MAX_TOOLS} tools; check fewer at a time", file)
    return ToolDefinitions(tools, tuple(problems))


def _parse(text: str, file: str) -> object:
    if len(text) > MAX_BYTES:
        raise PolicyError(f"the file has more than {MAX_BYTES} characters; split it", file)
    try:
        return _shallow(json.loads(text, object_pairs_hook=_once, parse_constant=_refuse))
    except json.JSONDecodeError as error:
        raise PolicyError(f"this is not JSON: {error.msg}", file, error.lineno, error.colno) from None
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"this JSON can not be used: {str(error)[:120] or 'it is nested too deep'}", file) from None


def _shallow(document: object) -> object:
    """The document itself, if every walk through it will come to an end."""
    level = [document]
    for _ in range(MAX_DEPTH):
        inner = [part for part in level if isinstance(part, dict | list)]
        level = [value for part in inner for value in (part.values() if isinstance(part, dict) else part)]
        if not level:
            return document
    raise ValueError(f"it is nested more than {MAX_DEPTH} deep")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for index, (name, _) in enumerate(pairs) if name in dict(pairs[:index]))
        raise ValueError(f"the key {twice[:80]!r} stands twice in one object")
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _entries(document: object, file: str, problems: list[tuple[str, str]]) -> Iterable[Mapping[str, object]]:
    if isinstance(document, Mapping):
        inner = document.get("result", document)
        inner = inner if isinstance(inner, Mapping) else document
        if inner.get("nextCursor"):
            problems.append((file, "the list goes on behind nextCursor, so tools are missing; fetch all its pages"))
        document = inner.get(
            "tools", inner.get("functions", [inner] if "name" in inner or "function" in inner else None)
        )
    if not isinstance(document, list):
        raise PolicyError("no tools are in here; give the answer to tools/list, or a list of tool definitions", file)
    for entry in document:
        if not isinstance(entry, Mapping):
            raise PolicyError("an entry of the list is no tool definition; each must be an object", file)
        yield entry


def _read(
    entry: Mapping[str, object], file: str, problems: list[tuple[str, str]]
) -> tuple[ToolDefinition | None, object]:
    inner = entry.get("function")
    tool = inner if isinstance(inner, Mapping) else entry
    name = tool.get("name")
    if not isinstance(name, str):
        if isinstance(entry.get("type"), str):
            problems.append((file, f"a tool of type {entry['type']!r} has no name: its provider runs it, no guard can"))
            return None, None
        raise PolicyError("a tool definition has no name", file)
    if not _TOOL.fullmatch(name):
        problems.append((file, f"{name[:80]!r} can not be a tool's name here: 1 to 128 printable ASCII without space"))
        return None, None
    schema = next((tool[word] for word in _SCHEMAS if tool.get(word) is not None), None)
    if schema is None:
        return ToolDefinition(name, file, None, _hint(tool), ("it has no input schema",)), None
    if not isinstance(schema, Mapping):
        raise PolicyError(f"the input schema of {name} is no object", file)
    reader = Reader(schema)
    shape = reader.shape()
    return ToolDefinition(name, file, shape, _hint(tool), tuple(reader.problems)), schema


def _hint(tool: Mapping[str, object]) -> str | None:
    told = tool.get("annotations")
    if not isinstance(told, Mapping):
        return None
    if told.get("readOnlyHint") is True:
        return "read"
    return "irreversible" if told.get("destructiveHint") is True else None
