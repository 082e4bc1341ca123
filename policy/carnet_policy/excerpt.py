"""Values from outside, made safe to look at: short, one line, and nothing in them can move a cursor."""

from __future__ import annotations

import json

__all__ = ["excerpt", "label", "visible"]

MOST = 80
MAX_BITS = 1024


def excerpt(value: object, most: int = MOST) -> str:
    """A value as JSON, cut at `most` characters. Never raises: what is no JSON value is named by its type."""
    if type(value) is int and value.bit_length() > MAX_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__} that is no JSON value"
    # Cut before anything else is done with it: a value may have a million characters.
    short = visible(text[: most + 1])
    return short if len(short) <= most else short[: most - 3] + "..."


def label(name: object, most: int = MOST) -> str:
    """The name of an argument: as `excerpt`, without the quotes of a string."""
    text = excerpt(name, most + 2)
    return text[1:-1] if isinstance(name, str) and text.endswith('"') else text


def visible(text: str) -> str:
    """Control, format and surrogate characters as escapes."""
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text)
