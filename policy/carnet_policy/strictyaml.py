"""YAML without surprises: what a reader sees is what is loaded.

Built from parser events, never from YAML's object model: duplicate keys, anchors, aliases, tags, merge keys, a second
document, keys that are no strings and nesting beyond the cap are errors. Only `true` and `false` are booleans, only
`null`, `~` and nothing are null, numbers are decimal JSON numbers; every other plain scalar is a string, so `yes`,
`0x1f`, `010`, `1:30` and `2024-01-01` stay what was written.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from carnet_policy.errors import PolicyError
from carnet_policy.marked import Mark, Marked

if TYPE_CHECKING:
    import yaml

__all__ = ["MAX_BYTES", "MAX_DEPTH", "load_yaml"]

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_DIGITS = 400

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


def load_yaml(text: str, name: str) -> Marked:
    """The value of `text`, with places. Errors: PolicyError for anything the module's header refuses."""
    _check_size(text, name)
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    builder = _Builder(name)
    try:
        while loader.check_event():
            builder.take(loader.get_event())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = str(error.problem or error.context or "cannot be read")
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise PolicyError(f"this is not YAML: {problem}", name, line, column) from None
    except yaml.YAMLError as error:
        raise PolicyError(f"this is not YAML: {str(error).splitlines()[0]}", name, 1, 1) from None
    finally:
        loader.dispose()
    return Marked(builder.value, name, builder.mark)


def _check_size(text: str, name: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise PolicyError("this is not text: it holds a lone surrogate", name, 1, 1) from None
    if size > MAX_BYTES:
        raise PolicyError(f"the file has {size} bytes; split it, {MAX_BYTES} is the most", name, 1, 1)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise PolicyError("this is not text: it holds a NUL character", name, line, 1)


class _Builder:
    """Turns events into values; a stack instead of recursion, so that depth is a number and never a crash."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.value: object = None
        self.mark = Mark(1, 1)
        self._documents = 0
        self._stack: list[tuple[dict[str, object] | list[object], Mark]] = []
        self._key: list[tuple[str, Mark] | None] = []

    def take(self, event: yaml.Event) -> None:
        import yaml

        if isinstance(event, yaml.ScalarEvent):
            self._refuse_extras(event)
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._refuse_extras(event)
            self._open({} if isinstance(event, yaml.MappingStartEvent) else [], event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._stack.pop()
            self._key.pop()
        elif isinstance(event, yaml.AliasEvent):
            raise self._error(event, "an alias (*) is not allowed; write the value out")
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._error(event, "a second document begins here; a file holds one")

    def _refuse_extras(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.anchor is not None:
            raise self._error(event, "an anchor (&) is not allowed; write the value out where it is used")
        if event.tag is not None:
            raise self._error(event, "a tag (!) is not allowed; remove it, or quote the text")

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        plain: bool = event.implicit[0]
        if self._expects_key():
            self._take_key(event, plain)
        else:
            self._place(self._resolve(event) if plain else event.value, event)

    def _open(self, container: dict[str, object] | list[object], event: yaml.Event) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} deep; flatten it")
        if self._expects_key():
            raise self._error(event, "a key must be a string")
        self._stack.append((container, self._place(container, event)))
        self._key.append(None)

    def _expects_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1][0], dict) and self._key[-1] is None

    def _take_key(self, event: yaml.ScalarEvent, plain: bool) -> None:
        key: str = event.value
        if plain and key == "<<":
            raise self._error(event, "a merge key (<<) is not allowed; write the entries out")
        if plain and not isinstance(self._resolve(event), str):
            raise self._error(event, f'the key {key} is not a string; quote it: "{key}"')
        if key in self._stack[-1][0]:
            raise self._error(event, f"duplicate key {_shown(key)}; keep one of the two")
        self._key[-1] = (key, _mark_of(event))

    def _place(self, value: object, event: yaml.Event) -> Mark:
        if not self._stack:
            self.value, self.mark = value, _mark_of(event)
            return self.mark
        container, mark = self._stack[-1]
        if isinstance(container, list):
            step: str | int = len(container)
            container.append(value)
            own = _mark_of(event)
        else:
            pending = self._key[-1]
            if pending is None:  # pragma: no cover - _expects_key was asked first
                raise self._error(event, "a value without a key")
            step, own = pending
            container[str(step)] = value
            self._key[-1] = None
        mark.parts[step] = own
        return own

    def _resolve(self, event: yaml.ScalarEvent) -> object:
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        if _INT.fullmatch(text) or _FLOAT.fullmatch(text):
            if len(text) > MAX_DIGITS:
                raise self._error(event, f"a number of {len(text)} characters; {MAX_DIGITS} is the most")
            return int(text) if _INT.fullmatch(text) else float(text)
        return _SPECIAL.get(text, text)

    def _error(self, event: yaml.Event, message: str) -> PolicyError:
        mark = _mark_of(event)
        return PolicyError(message, self.name, mark.line, mark.column)


def _mark_of(event: yaml.Event) -> Mark:
    start = event.start_mark
    if start is None:
        return Mark(1, 1)
    return Mark(start.line + 1, start.column + 1)


def _shown(key: str) -> str:
    return repr(key[:80])
