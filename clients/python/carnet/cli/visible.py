"""Text that an agent may have written, made safe to look at: nothing in it can move the cursor or reorder a line."""

import unicodedata
from typing import Any

__all__ = ["compact", "visible"]

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def visible(text: str) -> str:
    """Control, format (bidi, zero-width), surrogate and unassigned characters become \\u{…} escapes."""
    return "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in _HIDDEN else c for c in text)


def compact(value: Any) -> str:
    """One value as a person reads it: strings quoted, containers as JSON, everything visible."""
    import json

    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True))
