"""The `agents` of carnet.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from carnet.reasons import Refusal
from carnet_broker.config.files import Sources, strict_json
from carnet_broker.config.names import name
from carnet_broker.core.ceilings import parse_ceilings
from carnet_broker.core.registry import Agent
from carnet_policy import PolicyError, Schema
from carnet_policy.reading import Part

__all__ = ["read_agents"]

KEYS = ("owner", "tools", "grants", "callable_agents", "handoff", "returns", "ceilings", "min_level")


def read_agents(part: Part, folder: Path, sources: Sources) -> dict[str, Agent]:
    """Agents by name. folder: what schema paths are relative to."""
    return {
        name(Part(entry.document, key, entry.path, "an agent")): _agent(key, entry, folder, sources)
        for key, entry in part.mapping().items()
    }


def _agent(key: str, entry: Part, folder: Path, sources: Sources) -> Agent:
    given = entry.mapping(KEYS)
    handoff = _schema(given["handoff"], folder, sources) if "handoff" in given else None
    returns = _schema(given["returns"], folder, sources) if "returns" in given else None
    tools, grants = _tools(given.get("tools")), _tools(given.get("grants"))
    return Agent(
        name=key,
        owner=name(given["owner"]) if "owner" in given else None,
        tools=tools,
        grants=grants,
        callable_agents=_distinct(given["callable_agents"], name) if "callable_agents" in given else frozenset(),
        handoff=None if handoff is None else handoff[0],
        handoff_document=None if handoff is None else handoff[1],
        returns_document=None if returns is None else returns[1],
        ceilings=_ceilings(given["ceilings"], tools | grants) if "ceilings" in given else {},
        min_level=given["min_level"].integer(0, 2) if "min_level" in given else 0,
    )


def _tools(part: Part | None) -> frozenset[str]:
    return frozenset() if part is None else _distinct(part, Part.tool)


def _distinct(part: Part, read: Any) -> frozenset[str]:
    found: set[str] = set()
    for inner in part.sequence():
        item = read(inner)
        if item in found:
            raise inner.error(f"{item} stands twice in {part.name}; remove one")
        found.add(item)
    return frozenset(found)


def _ceilings(part: Part, own: frozenset[str]) -> Mapping[str, Any]:
    for tool, entry in part.mapping().items():
        parsed = parse_ceilings({tool: entry.value})
        if isinstance(parsed, Refusal):
            raise entry.error(f"{parsed.detail.removesuffix('.')}; correct {entry.name}")
        if tool not in own:
            raise entry.error(
                f"the ceiling bounds {tool}, which is in neither tools nor grants; remove it or add the tool"
            )
    parsed = parse_ceilings(part.value)
    if isinstance(parsed, Refusal):
        raise part.error(parsed.detail)
    return parsed


def _schema(part: Part, folder: Path, sources: Sources) -> tuple[Schema, Mapping[str, Any]]:
    """A JSON Schema: the path of a JSON file, or the schema itself."""
    document: Any = part.value
    if type(document) is str:
        path = folder / part.text(1024)
        document = strict_json(sources.read(path), path)
    if type(document) is not dict:
        raise part.error(f"{part.name} must be a JSON Schema (an object) or the path of a file with one")
    try:
        return Schema.compile(document), document
    except PolicyError as error:
        raise part.error(f"{part.name}: {error.message}") from None
