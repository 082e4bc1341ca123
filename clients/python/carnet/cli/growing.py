"""A delegation tree as a picture in the terminal."""

from typing import Any

from rich.text import Text
from rich.tree import Tree

from carnet.cli.output import console, duration
from carnet.cli.visible import visible

__all__ = ["draw_tree"]

_TONES = {"active": "green", "pending": "yellow", "ended": "red"}
_BAR = 12  # characters of a life bar


def draw_tree(document: dict[str, Any], now: float) -> None:
    """Print the tree of a delegation document with `children`. now: Unix seconds, for what is left of each life."""
    root = Tree(_node(document, now), guide_style="dim")
    _grow(root, document, now)
    console().print(root)


def _grow(branch: Tree, document: dict[str, Any], now: float) -> None:
    for child in document.get("children", ()):
        _grow(branch.add(_node(child, now)), child, now)


def _node(document: dict[str, Any], now: float) -> Text:
    envelope, state = document["envelope"], document["state"]
    text = Text(visible(document["agent"]), style="bold").append(f"  {document['id']}", style="dim")
    text.append(f"  {state}", style=_TONES.get(state, ""))
    if document.get("reason"):
        text.append(f" ({document['reason']})", style="red" if state == "ended" else "yellow")
    if document.get("parent"):
        text.append(f"  level {envelope['level']}  {' '.join(envelope['tools'])}", style="cyan")
    if state == "active" and document.get("expires_at"):
        text.append(f"  {_life(document, now)}")
    if document.get("calls"):
        text.append(f"  {document['calls']} call{'s' * (document['calls'] != 1)}", style="dim")
    return text


def _life(document: dict[str, Any], now: float) -> str:
    left = document["expires_at"] - now
    whole = max(1, document["expires_at"] - (document.get("start") or document["created_at"]))
    filled = max(0, min(_BAR, round(_BAR * left / whole)))
    return f"{'▰' * filled}{'▱' * (_BAR - filled)} {duration(left)}"
