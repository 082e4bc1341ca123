"""Short ways to lint a text."""

import json
from typing import Any

from carnet_policy.lint import Finding, Severity, check
from carnet_policy.tooldefs import read_definitions

__all__ = ["codes", "definitions", "lint", "only", "policy"]

CATALOG = "catalog: {t: {effect: read}}\n"


def policy(*rules: str, catalog: str = CATALOG, more: str = "", args: str = "") -> str:
    """A policy with one tool `t`; `args` is short for one allow with these arguments."""
    listed = [f"{{decision: allow, args: {{{args}}}}}"] if args else list(rules)
    lines = "".join(f"    - {rule}\n" for rule in listed)
    return f"version: 1\n{catalog}tools:\n  t:{' []' if not listed else ''}\n{lines}{more}"


def definitions(*tools: dict[str, Any]) -> Any:
    return read_definitions([("tools.json", json.dumps({"tools": list(tools)}))])


def lint(text: str, tools: Any = None, registered: frozenset[str] | None = None) -> tuple[Finding, ...]:
    return check([("p.yaml", text)], tools, registered)


def codes(text: str, tools: Any = None, registered: frozenset[str] | None = None) -> set[str]:
    return {found.code.id for found in lint(text, tools, registered)}


def only(code: str, text: str, tools: Any = None, registered: frozenset[str] | None = None) -> Finding:
    """The one finding with this code."""
    found = [finding for finding in lint(text, tools, registered) if finding.code.id == code]
    assert len(found) == 1, found
    assert isinstance(found[0].severity, Severity)
    return found[0]
