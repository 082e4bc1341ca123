"""The closed grammar of constraints, read from a document and checked for sense.

Every constraint implies the type that it judges, so `max: 50` never lets the text "60" through. A constraint that
nothing can satisfy is an error, because its author meant something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, floor

from carnet_policy.constraint import Constraint, fits_type, same
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.pattern import BadPattern, Pattern, compile_pattern
from carnet_policy.places import is_host, segments_of
from carnet_policy.reading import Part, is_number, shown

__all__ = ["CONSTRAINTS", "read_constraint", "read_constraints"]

MAX_NESTING = 8
MAX_SIZE = 1 << 31

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_IMPLIED = {
    "min": "number",
    "max": "number",
    "pattern": "string",
    "min_length": "string",
    "max_length": "string",
    "path_within": "string",
    "url_host": "string",
    "items": "array",
    "min_items": "array",
    "max_items": "array",
    "properties": "object",
}
# Each constraint and its edges, as the manual prints them.
CONSTRAINTS = {
    "type": "One of string, number, integer, boolean, array, object, null. 1.0 is a number and no integer; true is no "
    "number; NaN and infinities are nothing.",
    "required": 'true: present and not null, "" or []. false: may be absent. Left out: must be present.',
    "enum": "One of the listed values, of the same type: 1, 1.0 and true differ at every depth. Not empty.",
    "const": "Exactly this value; the same as an enum of one.",
    "min": "A number not below this. Integers of any size are compared exactly.",
    "max": "A number not above this. Without min, negative numbers match.",
    "pattern": "A string that matches as a whole, a final line break included; linear time, so no look-around and no "
    "back-reference; repetition up to 1000. `.` stops at line breaks unless the pattern begins with (?s).",
    "min_length": "A string of at least so many code points.",
    "max_length": "A string of at most so many code points; letters are not normalised.",
    "path_within": "An absolute path that is one of these folders or below it, by text: `..`, a backslash, NUL or a "
    "relative path can not be judged; symbolic links are not followed.",
    "url_host": "An https URL whose host is exactly one of these; `host:port` where the port is not 443. User info, "
    "other schemes, `?` or `#` right after the host can not be judged.",
    "items": "An array. In an allow every element must match; in a deny one is enough; an approval rule of which only "
    "some match turns an allow into itself.",
    "min_items": "An array of at least so many elements.",
    "max_items": "An array of at most so many elements.",
    "properties": "An object whose named members match. In an allow it holds no others; elsewhere they do not matter.",
}


def read_constraints(part: Part, depth: int = 0) -> dict[str, Constraint]:
    """The constraints of several arguments by name."""
    return {name: read_constraint(inner, depth) for name, inner in part.mapping().items()}


def read_constraint(part: Part, depth: int = 0) -> Constraint:
    """One constraint. Errors: PolicyError for unknown words, wrong types, bad patterns and what nothing satisfies."""
    if depth > MAX_NESTING:
        raise part.error(f"constraints nest at most {MAX_NESTING} deep; flatten {part.name}")
    given = part.mapping(CONSTRAINTS, "constraint")
    fields: dict[str, object] = {}
    for word in ("min_length", "max_length", "min_items", "max_items"):
        fields[word] = given[word].integer(0, MAX_SIZE) if word in given else None
    for word in ("min", "max"):
        fields[word] = given[word].number() if word in given else None
    source, compiled = _pattern(given.get("pattern"))
    constraint = Constraint(
        type=_type(part, given),
        required=given["required"].boolean() if "required" in given else None,
        pattern=source,
        compiled=compiled,
        enum=_members(given),
        items=read_constraint(given["items"], depth + 1) if "items" in given else None,
        properties=read_constraints(given["properties"], depth + 1) if "properties" in given else None,
        path_within=_roots(given.get("path_within")),
        url_host=_hosts(given.get("url_host")),
        declared_only=not (given.keys() - {"type", "required"}),
        **fields,  # type: ignore[arg-type]
    )
    _check_ranges(part, constraint)
    _check_members(part, constraint)
    return constraint


def _type(part: Part, given: Mapping[str, Part]) -> str | None:
    declared = given["type"].word_of(TYPES) if "type" in given else None
    found = declared
    for word, inner in given.items():
        implied = _IMPLIED.get(word)
        if implied is None or implied == found or (implied == "number" and found == "integer"):
            continue
        if found is not None:
            raise inner.error(f"constraint {word} judges a {implied}, but {part.name} is a {found}; remove one")
        found = implied
    return found


def _pattern(part: Part | None) -> tuple[str | None, Pattern | None]:
    if part is None:
        return None, None
    source = part.text(4096)
    try:
        return source, compile_pattern(source)
    except BadPattern as error:
        raise part.error(f"bad pattern {shown(source)}: {error}") from None


def _members(given: Mapping[str, Part]) -> tuple[object, ...] | None:
    if "enum" not in given:
        return (_member(given["const"]),) if "const" in given else None
    members = tuple(_member(inner) for inner in given["enum"].sequence())
    if not members:
        raise given["enum"].error("enum is empty, so nothing can match; name the values")
    if "const" in given:
        wanted = _member(given["const"])
        if not any(same(wanted, member) for member in members):
            raise given["const"].error("const is not in enum, so nothing can match; keep one of the two")
        return (wanted,)
    return members


def _member(part: Part) -> object:
    if not _finite(part.value):
        raise part.error(f"{part.name} must be a finite number")
    return part.value


def _finite(value: object) -> bool:
    if isinstance(value, list):
        return all(_finite(inner) for inner in value)
    if isinstance(value, dict):
        return all(_finite(inner) for inner in value.values())
    return type(value) is not float or is_number(value)


def _roots(part: Part | None) -> tuple[tuple[str, ...], ...] | None:
    if part is None:
        return None
    roots = []
    for inner in part.sequence() if type(part.value) is list else [part]:
        parts = segments_of(inner.text(4096))
        if parts is None:
            raise inner.error(f"{inner.name} must be an absolute path without .. or \\, not {shown(inner.value)}")
        roots.append(parts)
    if not roots:
        raise part.error("path_within is empty, so nothing can match; name a folder")
    return tuple(roots)


def _hosts(part: Part | None) -> frozenset[str] | None:
    if part is None:
        return None
    hosts = set()
    for inner in part.sequence() if type(part.value) is list else [part]:
        host = inner.text(300)
        if not is_host(host):
            raise inner.error(f"{inner.name} must be an exact host name in lower case, not {shown(host)}")
        hosts.add(host)
    if not hosts:
        raise part.error("url_host is empty, so nothing can match; name a host")
    return frozenset(hosts)


def _check_ranges(part: Part, rule: Constraint) -> None:
    pairs = ((rule.min, rule.max, "max"), (rule.min_length, rule.max_length, "max_length"))
    for low, high, word in (*pairs, (rule.min_items, rule.max_items, "max_items")):
        whole = rule.type == "integer" and word == "max"
        if low is not None and high is not None and (ceil(low) > floor(high) if whole else low > high):
            raise part.error(f"empty range in {part.name}: nothing is at least {low} and at most {high} ({word})")
    if rule.required and (rule.type == "null" or rule.max_length == 0 or rule.max_items == 0):
        raise part.error(f"{part.name} is required, so it can not be null or empty; nothing can match")


def _check_members(part: Part, rule: Constraint) -> None:
    for member in rule.enum or ():
        if rule.type is not None and not fits_type(member, rule.type):
            raise part.error(f"enum member {shown(member)} of {part.name} is outside its type {rule.type}; remove it")
    if rule.enum is not None:
        judge = compile_judge(rule, Reading.CLOSED)
        if not any(judge(member) is True for member in rule.enum):
            raise part.error(f"no enum member of {part.name} fits its other constraints, so nothing can match")
