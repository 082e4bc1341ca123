"""JSON text of any depth: cases send what the standard encoder gives up on."""

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["to_json"]


def to_json(value: Any) -> str:
    """Compact JSON without recursion. ValueError or TypeError for what is no JSON value."""
    parts: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _Text):
            parts.append(item)
        elif isinstance(item, Mapping):
            todo.append(_Text("}"))
            for number, (key, inner) in reversed(list(enumerate(item.items()))):
                todo += [inner, _Text(f"{',' if number else ''}{json.dumps(str(key), ensure_ascii=False)}:")]
            todo.append(_Text("{"))
        elif isinstance(item, list | tuple):
            todo.append(_Text("]"))
            for number, inner in reversed(list(enumerate(item))):
                todo += [inner, _Text("," if number else "")]
            todo.append(_Text("["))
        else:
            parts.append(json.dumps(item, ensure_ascii=False))
    return "".join(parts)


class _Text(str):
    """Text that is written as it is."""
