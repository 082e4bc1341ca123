"""Writes the pages that are printed from tables of the code: `python docs/generate.py`. A test holds them equal."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from carnet.reasons import CATALOGUE, Entry, Reason, Seen
from carnet_broker.core.lifecycle import APPROVAL, CALL

__all__ = ["PAGES", "lifecycles", "reasons"]

HERE = Path(__file__).parent
HEADER = """# Reasons

Every refusal, everywhere (audit, HTTP, SDK, CLI), has one code of this list. The codes are stable: match on them, not
on the sentences. *Told to*: where it says `audit`, the caller learns only that the token was refused, so that a probe
learns nothing; the audit record has the code. *Try again*: whether the same request can succeed later unchanged.

This page is printed from `carnet.reasons` by `docs/generate.py`.

| code | HTTP | told to | try again | meaning |
|---|---|---|---|---|
"""


def _row(reason: Reason, entry: Entry) -> str:
    told = "caller" if entry.seen is Seen.CALLER else "audit"
    return f"| `{reason.value}` | {entry.status} | {told} | {'yes' if entry.retry else 'no'} | {entry.sentence} |\n"


def reasons() -> str:
    return HEADER + "".join(_row(reason, CATALOGUE[reason]) for reason in Reason)


LIFECYCLES = """# Lifecycles

Two tables, and nobody else assigns a state: a pair of state and event that is not drawn here is refused and changes
nothing. A delegation stores no state at all; its status is computed from its approval, the marks and the clock.

This page is printed from `carnet_broker.core.lifecycle` by `docs/generate.py`.
"""


def _diagram(table: Mapping[Any, StrEnum], born: tuple[str, ...]) -> str:
    arrows = [f"  [*] --> {state}" for state in born]
    arrows += [f"  {before.value} --> {after.value}: {event.value}" for (before, event), after in table.items()]
    ends = {after.value for after in table.values()} - {before.value for before, _ in table}
    arrows += [f"  {state} --> [*]" for state in sorted(ends)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, "```", ""])


def lifecycles() -> str:
    approvals = _diagram(APPROVAL, ("pending", "approved"))
    calls = _diagram(CALL, ("waiting", "running", "refused"))
    return f"{LIFECYCLES}\n## Approvals\n{approvals}\n## Calls\n{calls}"


PAGES = {"reasons.md": reasons, "lifecycles.md": lifecycles}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
