"""Values at the edges of one constraint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import inf, isfinite, nextafter

from carnet_policy.constraint import Constraint
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.probing.specimens import specimens

__all__ = ["STRANGERS", "distinct", "probe_values", "witness"]

LONGEST = 1 << 20  # characters of a probed string
MANY = 1000  # elements of a probed list
# One of each type, and texts that look like another type.
STRANGERS: tuple[object, ...] = (None, True, False, 0, 1, -1, 0.5, "", "x", "0", [], ["x"], [0], {}, {"x": 0})


def probe_values(rule: Constraint) -> tuple[object, ...]:
    """Values at, just inside and just outside of the constraint, then one of each type."""
    return distinct([*_edges(rule), *STRANGERS])


def witness(rule: Constraint) -> tuple[object] | None:
    """A value that matches in every kind of rule, in a tuple; None where none was found."""
    judge = compile_judge(rule, Reading.CLOSED)
    return next(((value,) for value in probe_values(rule) if judge(value) is True), None)


def distinct(values: Iterable[object]) -> tuple[object, ...]:
    """Each JSON value once; 1, 1.0 and true are three values. What is not finite never comes from a call."""
    found: dict[str, object] = {}
    for value in values:
        if type(value) is not float or isfinite(value):
            found.setdefault(json.dumps(value, sort_keys=True), value)
    return tuple(found.values())


def _edges(rule: Constraint) -> Iterator[object]:
    yield from _members(rule)
    yield from _numbers(rule)
    yield from _strings(rule)
    if rule.items is not None or rule.min_items is not None or rule.max_items is not None:
        yield from _lists(rule)
    if rule.properties is not None:
        yield from _objects(rule)


def _members(rule: Constraint) -> Iterator[object]:
    for member in rule.enum or ():
        yield member
    for member in rule.enum or ():
        if isinstance(member, str):
            yield from (f"{member}x", member[:-1], member.swapcase(), f"{member}\n", [member])
        elif type(member) is int:
            yield from (member + 1, member - 1, float(member) if abs(member) < 1 << 53 else str(member))
        elif type(member) is float:
            yield from (nextafter(member, inf), nextafter(member, -inf))


def _numbers(rule: Constraint) -> Iterator[object]:
    bounds = [bound for bound in (rule.min, rule.max) if bound is not None]
    whole = rule.type == "integer"
    for bound in bounds:
        yield from (bound, *_around(bound, whole))
    if rule.min is not None and rule.max is not None and abs(rule.min) < 1e300 and abs(rule.max) < 1e300:
        middle = rule.min + (rule.max - rule.min) / 2
        yield from (int(middle), middle)
    if bounds:
        yield from (str(bounds[0]), [bounds[0]], -1, 0, 0.0)


def _around(bound: int | float, whole: bool) -> Iterator[int | float]:
    small = abs(bound) < 1 << 53
    if type(bound) is int or whole:
        yield from (int(bound) - 1, int(bound) + 1)
    if small:
        other = float(bound) if type(bound) is int else int(bound)
        steps = (bound - 1, bound + 1, bound - 0.01, bound + 0.01, bound - 0.001, bound + 0.001, other)
        yield from (round(step, 9) if type(step) is float else step for step in steps)
        yield from (nextafter(float(bound), -inf), nextafter(float(bound), inf))


def _strings(rule: Constraint) -> Iterator[object]:
    texts = [*(specimens(rule.pattern) if rule.pattern is not None else ()), *_paths(rule), *_urls(rule)]
    yield from texts
    judge = compile_judge(rule, Reading.CLOSED)
    fit = next((text for text in texts if judge(text) is True), "")
    for length in (rule.min_length, rule.max_length):
        for wanted in () if length is None else (length, length + 1, length - 1):
            if len(fit) <= wanted <= LONGEST:
                # A text of that length that the rest of the constraint may still accept.
                yield fit + (fit[-1:] or "x") * (wanted - len(fit))
                yield fit[:1] + (fit[:1] or "x") * (wanted - len(fit)) + fit[1:]
    if rule.type == "string":
        yield from ("x", "", "x y", "\n")


def _paths(rule: Constraint) -> Iterator[str]:
    for parts in rule.path_within or ():
        root = "/" + "/".join(parts)
        below = root if root.endswith("/") else f"{root}/"
        yield from (root, f"{below}a", f"{root}x", f"{below}../a", f"{below}a\\b", root[1:] or "a", "/")
        yield "/" + "/".join((*parts[:-1], "a"))


def _urls(rule: Constraint) -> Iterator[str]:
    for host in sorted(rule.url_host or ()):
        bare = host.partition(":")[0]
        yield from (f"https://{host}/", f"https://{host}/a?b=c", f"http://{host}/", f"https://{host}.evil.example/")
        yield from (f"https://{bare}:8443/", f"https://user@{host}/", f"https://sub.{host}/", f"https://{host}?a")


def _lists(rule: Constraint) -> Iterator[object]:
    element = Constraint() if rule.items is None else rule.items
    found = witness(element)
    fit = found[0] if found is not None else None
    for count in (rule.min_items, rule.max_items, 1):
        for wanted in () if count is None else (count, count + 1, count - 1):
            if 0 <= wanted <= MANY:
                yield [fit] * wanted
    pad = max((rule.min_items or 1) - 1, 0)
    if pad <= MANY and rule.items is not None:
        for value in probe_values(rule.items):
            yield [value, *[fit] * pad]
            yield [fit, value, *[fit] * max(pad - 1, 0)]
    yield fit


def _objects(rule: Constraint) -> Iterator[object]:
    properties = rule.properties or {}
    fits = {name: witness(inner) for name, inner in properties.items()}
    base = {name: found[0] for name, found in fits.items() if found is not None}
    yield base
    for name, inner in properties.items():
        yield {other: value for other, value in base.items() if other != name}
        for value in probe_values(inner):
            yield {**base, name: value}
    yield {**base, "unnamed": "x"}
