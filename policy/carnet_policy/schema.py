"""JSON Schema for payloads that cross between agents: draft 2020-12, local references only, closed vocabulary.

A keyword that the engine does not know would be ignored, which is a bound that silently does not hold: it is refused.
Nothing is ever fetched. Patterns run on the linear engine and search, as JSON Schema says; anchor them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Self

from carnet_policy.errors import PolicyError
from carnet_policy.pattern import BadPattern, scan

__all__ = ["Schema"]

MAX_BYTES = 65536
MAX_DEPTH = 16
MAX_KEYS = 1024
DRAFT = "https://json-schema.org/draft/2020-12/schema"

_ONE = (
    *("additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs")
_PLAIN = (
    *("type", "enum", "const", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minContains"),
    *("maxContains", "minProperties", "maxProperties", "dependentRequired"),
)
_NOTES = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
_KEYWORDS = frozenset((*_ONE, *_MANY, *_NAMED, *_PLAIN, *_NOTES, "$schema", "$ref"))
_FORMATS = ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid")


class Schema:
    """A compiled schema."""

    __slots__ = ("_validator",)

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    @classmethod
    def compile(cls, document: Mapping[str, object]) -> Self:
        """Errors: PolicyError for what is no such schema, or is larger than the caps."""
        import jsonschema_rs

        plain = dict(document)
        problem = _too_large(plain)
        if problem is not None:
            raise PolicyError(f"the schema {problem}; make it smaller", "schema")
        for where, schema in _subschemas(plain, "#", 0):
            _check_keywords(where, schema)
        try:
            validator = jsonschema_rs.Draft202012Validator(
                plain, pattern_options=jsonschema_rs.RegexOptions(), validate_formats=True, offline=True
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise PolicyError(f"this is no JSON Schema: {str(error).splitlines()[0][:200]}", "schema") from None
        return cls(validator)

    def check(self, value: object) -> str | None:
        """None when the value is valid, else one sentence that says where and what, but never the value."""
        problem = _too_large(value)
        if problem is not None:
            return f"the value {problem}"
        try:
            error = next(iter(self._validator.iter_errors(value)), None)
        except Exception as failure:  # noqa: BLE001 - what the engine can not read is not valid
            return f"the value can not be checked ({type(failure).__name__})"
        if error is None:
            return None
        where = "/".join(str(step)[:64] for step in error.instance_path) or "the value"
        keyword = next((str(step) for step in reversed(list(error.schema_path)) if not isinstance(step, int)), "schema")
        return f"{where} does not satisfy {keyword}"


def _too_large(value: object) -> str | None:
    problem = _shape_problem(value)
    if problem is not None:
        return problem
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    return f"has {size} bytes; {MAX_BYTES} is the most" if size > MAX_BYTES else None


def _shape_problem(root: object) -> str | None:
    """Walks without recursion, so that depth is a number and never a crash."""
    stack = [(root, 1)]
    keys = 0
    while stack:
        value, depth = stack.pop()
        if type(value) is dict or type(value) is list:
            if depth > MAX_DEPTH:
                return f"is nested more than {MAX_DEPTH} deep"
            keys += len(value) if type(value) is dict else 0
            if keys > MAX_KEYS or len(stack) > MAX_BYTES:
                return f"has more than {MAX_KEYS} keys or {MAX_BYTES} elements"
            stack += [(inner, depth + 1) for inner in (value.values() if type(value) is dict else value)]
        problem = _leaf_problem(value)
        if problem is not None:
            return problem
    return None


def _leaf_problem(value: object) -> str | None:
    if type(value) is float and not isfinite(value):
        return "holds a number that is not finite"
    if type(value) is int and value.bit_length() > 1024:
        return "holds a number that is too large"
    texts = list(value) if type(value) is dict else [value] if type(value) is str else []
    if not all(type(text) is str for text in texts):
        return "holds a key that is no string"
    if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
        return "holds a lone surrogate"
    if value is not None and type(value) not in (str, int, float, bool, list, dict):
        return f"holds a {type(value).__name__}, which is no JSON value"
    return None


def _subschemas(schema: object, where: str, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    if type(schema) is not dict:
        return
    yield where, schema
    for key, inner in schema.items():
        if key in _ONE:
            yield from _subschemas(inner, f"{where}/{key}", depth + 1)
        elif key in _MANY and type(inner) is list:
            for index, one in enumerate(inner):
                yield from _subschemas(one, f"{where}/{key}/{index}", depth + 1)
        elif key in _NAMED and type(inner) is dict:
            for name, one in inner.items():
                yield from _subschemas(one, f"{where}/{key}/{name}", depth + 1)


def _check_keywords(where: str, schema: dict[str, Any]) -> None:
    for key, value in schema.items():
        if key not in _KEYWORDS:
            raise PolicyError(
                f"unknown keyword {key[:64]!r} at {where}; a bound that is not known does not hold", "schema"
            )
        if key == "$ref" and not (type(value) is str and value.startswith("#/$defs/")):
            raise PolicyError(f"$ref at {where} must begin with #/$defs/; nothing is fetched from elsewhere", "schema")
        if key == "$schema" and value != DRAFT:
            raise PolicyError(f"$schema at {where} must be {DRAFT}", "schema")
        if key == "format" and value not in _FORMATS:
            raise PolicyError(f"unknown format at {where}; known are {', '.join(_FORMATS)}", "schema")
    patterns = [schema.get("pattern"), *(schema.get("patternProperties") or {})]
    for pattern in patterns:
        _check_pattern(where, pattern)


def _check_pattern(where: str, pattern: object) -> None:
    if type(pattern) is not str:
        return
    try:
        rewritten, _, _ = scan(pattern)
    except BadPattern as error:
        raise PolicyError(f"bad pattern at {where}: {error}", "schema") from None
    if rewritten != pattern:
        raise PolicyError(f"bad pattern at {where}: write [\\s\\S] instead of . with the flag s", "schema")
