"""JSON Schema documents to shapes. References are followed inside the document only; what is outside, or too deep,
may be anything, and is reported."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from urllib.parse import unquote

from carnet_policy.tooldefs.shape import ANYTHING, NOTHING, TYPES, Shape, both, either

__all__ = ["Reader"]

MAX_DEPTH = 24
MAX_STEPS = 20_000  # subschemas looked at, references followed again included


class Reader:
    """Reads one document. `problems` collects what could not be followed, one sentence each."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document
        self._steps = 0
        self.problems: dict[str, None] = {}

    def shape(self) -> Shape:
        return self._shape(self._document, 0, ())

    def _shape(self, schema: object, depth: int, inside: tuple[str, ...]) -> Shape:
        self._steps += 1
        if depth > MAX_DEPTH or self._steps > MAX_STEPS:
            self._report("the schema is too deep or too large to be followed to its end")
            return ANYTHING
        if schema is False:
            return NOTHING
        if not isinstance(schema, Mapping):
            return ANYTHING
        found = self._plain(schema, depth, inside)
        if "$ref" in schema:
            found = both(found, self._refer(schema["$ref"], depth, inside))
        for part in _listed(schema.get("allOf")):
            found = both(found, self._shape(part, depth + 1, inside))
        for word in ("anyOf", "oneOf"):
            options = _listed(schema.get(word))
            if options:
                any_of = self._shape(options[0], depth + 1, inside)
                for option in options[1:]:
                    any_of = either(any_of, self._shape(option, depth + 1, inside))
                found = both(found, any_of)
        return found

    def _plain(self, schema: Mapping[str, object], depth: int, inside: tuple[str, ...]) -> Shape:
        given = schema.get("properties")
        members = given if isinstance(given, Mapping) else {}
        more = schema.get("additionalProperties")
        enum = [schema["const"]] if "const" in schema else schema.get("enum")
        required = schema.get("required")
        prefixed = "prefixItems" in schema or isinstance(schema.get("items"), list)
        items = schema.get("items")
        return Shape(
            types=_types(schema),
            enum=tuple(enum) if isinstance(enum, list) else None,
            minimum=_bound(schema, "minimum", "exclusiveMinimum"),
            maximum=_bound(schema, "maximum", "exclusiveMaximum"),
            min_length=_count(schema.get("minLength")),
            max_length=_count(schema.get("maxLength")),
            min_items=_count(schema.get("minItems")),
            max_items=_count(schema.get("maxItems")),
            pattern=_text(schema.get("pattern")),
            items=None if items is None or prefixed else self._shape(items, depth + 1, inside),
            properties={str(name): self._shape(inner, depth + 1, inside) for name, inner in members.items()},
            required=frozenset(str(name) for name in _listed(required)),
            named=isinstance(given, Mapping) or more is False,
            open=more is True or isinstance(more, Mapping) or "patternProperties" in schema,
        )

    def _refer(self, reference: object, depth: int, inside: tuple[str, ...]) -> Shape:
        if not isinstance(reference, str) or not reference.startswith("#"):
            self._report(f"{str(reference)[:80]!r} lies outside the document and is not fetched")
            return ANYTHING
        if reference in inside:
            return ANYTHING  # a schema that contains itself has no end to follow
        value: object = self._document
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            value = _inside(value, key)
        if value is None or (reference != "#" and not reference.startswith("#/")):
            self._report(f"{reference[:80]!r} leads nowhere in the document")
            return ANYTHING
        return self._shape(value, depth + 1, (*inside, reference))

    def _report(self, problem: str) -> None:
        self.problems[problem] = None


def _inside(value: object, key: str) -> object:
    if isinstance(value, list):
        entries: list[object] = value
        return entries[int(key)] if key.isdecimal() and len(key) < 9 and int(key) < len(entries) else None
    return value.get(key) if isinstance(value, Mapping) else None


def _types(schema: Mapping[str, object]) -> frozenset[str]:
    given = schema.get("type")
    words = [given] if isinstance(given, str) else _listed(given)
    found = {str(word) for word in words} & TYPES if words else set(TYPES)
    if "number" in found:
        found.add("integer")
    if schema.get("nullable") is True:
        found.add("null")
    return frozenset(found)


def _bound(schema: Mapping[str, object], word: str, exclusive: str) -> int | float | None:
    # An exclusive bound is taken as inclusive: wider, so never wrong about what can not be.
    found = [value for value in (schema.get(word), schema.get(exclusive)) if _is_number(value)]
    numbers = [value for value in found if isinstance(value, int | float)]
    if not numbers:
        return None
    return max(numbers) if word == "minimum" else min(numbers)


def _is_number(value: object) -> bool:
    return type(value) is int or (type(value) is float and isfinite(value))


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
