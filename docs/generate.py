"""Writes the pages that are printed from tables of the code: `python docs/generate.py`. A test holds them equal."""

from pathlib import Path

from carnet.reasons import CATALOGUE, Entry, Reason, Seen

__all__ = ["PAGES", "reasons"]

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


PAGES = {"reasons.md": reasons}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
