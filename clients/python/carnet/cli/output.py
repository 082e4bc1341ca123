"""What commands print: tables for people, JSON for programs. Text from outside never becomes markup."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from carnet.cli.visible import compact, visible

__all__ = ["console", "duration", "fields", "moment", "more", "print_json", "say", "table"]

_WHOLE = (
    "id",
    "seq",
    "time (UTC)",
    "kid",
    "state",
    "time left",
)  # columns that are copied or compared, so never broken
_WIDE = 4000  # characters of a line that is not for a screen
_TONES = {
    "allow": "green", "active": "green", "approved": "green", "approve": "green", "done": "green",
    "deny": "red", "denied": "red", "ended": "red", "refused": "red", "failed": "red", "lost": "red",
    "pending": "yellow", "waiting": "yellow", "require_approval": "yellow", "timed_out": "yellow",
}  # fmt: skip


def console() -> Console:
    """Folds to the terminal's width; what is piped is never folded, so that every id stays whole on its line."""
    piped = not sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=piped, width=_WIDE if piped else None)


def say(text: str, tone: str = "") -> None:
    console().print(Text(visible(text), style=tone))


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table; an empty one says so in words."""
    if not rows:
        say(f"{title}: none")
        return
    drawn = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in columns:
        drawn.add_column(name, overflow="fold", no_wrap=name in _WHOLE)
    for row in rows:
        drawn.add_row(*(_cell(value) for value in row))
    console().print(drawn)


def more(answer: Mapping[str, Any]) -> None:
    """A listing that was cut says how to go on, so that nobody takes it for the whole."""
    if answer.get("next") is not None:
        say(f"There is more: --after {answer['next']}", "yellow")


def fields(title: str, values: Mapping[str, Any]) -> None:
    """Name and value per line, names aligned."""
    console().print(Text(visible(title), style="bold"))
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        if value not in (None, "", [], {}):
            console().print(Text(f"  {visible(name):<{width}}  ").append(_cell(value)))


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 120 else f"{whole} s"


def moment(seconds: int) -> str:
    """Unix seconds as a person reads them; UTC, so that two operators mean the same."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _cell(value: Any) -> Text:
    if value is None:
        return Text("-", style="dim")
    shown = compact(value)
    return Text(shown, style=_TONES.get(shown, ""))
