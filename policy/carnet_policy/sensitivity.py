"""The words of `data_class` that mean something to people who read policies. Others load, and are told."""

from __future__ import annotations

from difflib import get_close_matches

__all__ = ["KNOWN", "RAISING", "doubt"]

RAISING = ("pii", "secret")  # the words that raise the level of who may call the tool
KNOWN = (*RAISING, "internal", "public", "confidential", "financial", "health")


def doubt(word: str) -> str | None:
    """Why a word is probably not what was meant, None for a known one."""
    if word in KNOWN:
        return None
    near = get_close_matches(word, KNOWN, 1, 0.5)
    fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(KNOWN)}"
    return f"data_class {word} is no known word, and only {' and '.join(RAISING)} raise the level; {fix}"
