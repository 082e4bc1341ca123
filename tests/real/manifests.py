"""Real agent manifests as one registry: which tools each agent has, and whom it may call."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.tree import ROOT

__all__ = ["DATA", "READS", "WRITES", "Manifest", "read_all"]

DATA = Path(os.environ.get("TEST_DATA_DIR", ROOT.parent / "shared" / "data"))
COOKBOOKS = DATA / "financial-services" / "managed-agent-cookbooks"
READS = frozenset({"read", "grep", "glob"})
WRITES = frozenset({"write", "edit", "bash"})


@dataclass(frozen=True, slots=True)
class Manifest:
    name: str
    cookbook: str
    tools: frozenset[str]
    children: frozenset[str]

    @property
    def is_parent(self) -> bool:
        return bool(self.children)


def read_all() -> dict[str, Manifest]:
    """Every manifest by its name; empty where the folder is missing."""
    documents = {path.resolve(): _load(path) for path in sorted(COOKBOOKS.rglob("*.yaml"))}
    found = {}
    for path, document in documents.items():
        children = [(path.parent / entry["manifest"]).resolve() for entry in document.get("callable_agents", [])]
        found[document["name"]] = Manifest(
            document["name"],
            path.relative_to(COOKBOOKS.resolve()).parts[0],
            _tools(document),
            frozenset(documents[child]["name"] for child in children),
        )
    return found


def _load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def _tools(document: dict[str, Any]) -> frozenset[str]:
    """Enabled built-in tools by name, and one tool per MCP server."""
    tools: set[str] = set()
    for entry in document["tools"]:
        if entry["type"] == "mcp_toolset":
            tools.add(f"mcp:{entry['mcp_server_name']}")
        else:
            assert entry["default_config"]["enabled"] is False, "a toolset that is switched on whole names no tools"
            tools |= {config["name"] for config in entry["configs"] if config["enabled"]}
    return frozenset(tools)
