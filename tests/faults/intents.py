"""Which calls are on record as allowed to run, wherever the record lies: a guard's journal, or the broker's store."""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from carnet.guard.journalfile import SUFFIX, read_lines

__all__ = ["intents", "open_calls", "outcomes"]

_INTENTS = ("call_intent", "call_decided")
_ENDS = ("call_outcome", "outcome_unknown")


def intents(database: Path, journal: Path) -> set[str]:
    """Names of the calls (the value of their one argument) whose permission is durable."""
    lines = [*_recorded(database), *_journalled(journal)]
    return {name for line in lines if _permits(line) for name in line["clear"].values()}


def outcomes(database: Path) -> dict[str, str | None]:
    """Name of each permitted call that the broker knows -> how it ended, None while nobody has said so."""
    lines = _recorded(database)
    ends = {line["call"]: str(line["outcome"]) for line in lines if line["kind"] in _ENDS}
    return {name: ends.get(line["call"]) for line in lines if _permits(line) for name in line["clear"].values()}


def open_calls(journal: Path) -> set[str]:
    """Names of the calls in the journal that have an intent and no outcome."""
    lines = _journalled(journal)
    ended = {line["call"] for line in lines if line["kind"] in _ENDS}
    return {name for line in lines if _permits(line) and line["call"] not in ended for name in line["clear"].values()}


def _permits(line: Mapping[str, Any]) -> bool:
    return line["kind"] in _INTENTS and line["decision"] == "allow"


def _recorded(database: Path) -> list[Mapping[str, Any]]:
    conn = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return [json.loads(row[0]) for row in conn.execute("SELECT body FROM record ORDER BY seq")]
    finally:
        conn.close()


def _journalled(journal: Path) -> list[Mapping[str, Any]]:
    return [record for path in sorted(journal.glob(f"*{SUFFIX}")) for _, record, _ in read_lines(path)]
