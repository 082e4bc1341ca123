"""Numbers: bounds on one side, and gaps and overlaps between the ranges that rules of one tool give to an argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor

from carnet_policy.decision import Effect
from carnet_policy.lint import codes
from carnet_policy.lint.disjoint import apart
from carnet_policy.lint.fields import Field, fields_of
from carnet_policy.lint.finding import Finding, Severity
from carnet_policy.lint.implication import STRICTNESS, covers
from carnet_policy.lint.subject import Subject
from carnet_policy.rule import Rule

__all__ = ["MAX_COMPARED", "gaps", "one_sided", "overlaps"]

MAX_COMPARED = 400  # rules of one tool that are compared each with each

Bound = int | float | None


def one_sided(subject: Subject) -> Iterator[Finding]:
    for found in subject.policy.tools.values():
        for rule, _ in found.allows:
            for field in fields_of(rule):
                bound = field.constraint
                if bound.enum is not None or (bound.min is None) == (bound.max is None):
                    continue
                if bound.min is None:
                    say = f"{field.label} has a max and no min, so negative numbers match and it is unbounded below"
                    yield field.finding(codes.ONE_SIDED, f"{say}; add min", "max")
                else:
                    say = f"{field.label} has a min and no max, so it is unbounded above"
                    yield field.finding(codes.ONE_SIDED, f"{say}; add max", "min")


@dataclass(frozen=True, slots=True)
class _Span:
    field: Field
    low: Bound
    high: Bound

    @property
    def rule(self) -> Rule:
        return self.field.rule


def gaps(subject: Subject) -> Iterator[Finding]:
    for tool in subject.policy.tools:
        for label, spans in _spans(subject, tool).items():
            for related in _related(spans, label):
                if not _swallowed(subject, tool, related, label):
                    whole = _whole(subject, tool, related, label)
                    yield from _gaps(subject, related, whole)


def overlaps(subject: Subject) -> Iterator[Finding]:
    for tool in subject.policy.tools:
        for label, spans in _spans(subject, tool).items():
            for one, other in _near(spans):
                found = _overlap(one, other, _whole(subject, tool, [one, other], label))
                if found is not None:
                    yield found


def _near(spans: Sequence[_Span]) -> Iterator[tuple[_Span, _Span]]:
    """Pairs of spans that touch, each pair in the order of the file."""
    number = {id(span): index for index, span in enumerate(spans)}
    ordered = _by_low(spans)
    for index, one in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if one.high is not None and other.low is not None and other.low > one.high:
                break
            yield (one, other) if number[id(one)] < number[id(other)] else (other, one)


def _by_low(spans: Sequence[_Span]) -> list[_Span]:
    return sorted(spans, key=lambda span: (span.low is not None, span.low if span.low is not None else 0))


def _spans(subject: Subject, tool: str) -> dict[str, list[_Span]]:
    """Ranges by the label of the argument. Elements of lists have none: each element may lie in another range."""
    rules = subject.policy.tools[tool].rules
    found: dict[str, list[_Span]] = {}
    if len(rules) <= MAX_COMPARED:
        for rule in rules:
            for field in fields_of(rule):
                bound = field.constraint
                if "[]" not in field.label and bound.enum is None and (bound.min, bound.max) != (None, None):
                    found.setdefault(field.label, []).append(_Span(field, bound.min, bound.max))
    return {label: spans for label, spans in found.items() if len(spans) > 1}


def _related(spans: Sequence[_Span], label: str) -> Iterable[list[_Span]]:
    """The spans in groups: what never meets because of other arguments is not compared."""
    groups: list[list[_Span]] = []
    for span in spans:
        near = [g for g in groups if any(not apart(span.rule.args, other.rule.args, label) for other in g)]
        groups = [group for group in groups if group not in near]
        groups.append([*(other for group in near for other in group), span])
    return groups


def _swallowed(subject: Subject, tool: str, related: Sequence[_Span], label: str) -> bool:
    """Whether a rule that does not look at this argument may answer for the values in between."""
    named = {span.rule.name for span in related}
    return any(
        rule.name not in named
        and (rule.effect is not Effect.ALLOW or rule.extra_args or label.split(".")[0] in rule.args)
        and any(not apart(rule.args, span.rule.args, label) for span in related)
        for rule in subject.policy.tools[tool].rules
    )


def _whole(subject: Subject, tool: str, related: Sequence[_Span], label: str) -> bool:
    """Whether only whole numbers count: all rules say integer, or the tool's own schema does."""
    if all(span.field.constraint.type == "integer" for span in related):
        return True
    definition = (subject.tools or {}).get(tool)
    shape = None if definition is None else definition.at(label.split("."))
    return shape is not None and "integer" in shape.types and "number" not in shape.types


def _gaps(subject: Subject, related: Sequence[_Span], whole: bool) -> Iterator[Finding]:
    spans = _by_low(related)
    last = spans[0]
    for span in spans[1:]:
        if last.high is None:
            return
        if span.low is not None and span.low > last.high:
            told = _between(last.high, span.low, whole)
            if told is not None:
                yield _gap(subject, last, span, told)
        if span.high is None or span.high > last.high:
            last = span


def _between(low: int | float, high: int | float, whole: bool) -> tuple[str, bool] | None:
    """The values in between in words, and whether they are only finer than what the file writes; None = no values."""
    if whole:
        first, final = floor(low) + 1, ceil(high) - 1
        if first > final:
            return None
        return (f"{first}" if first == final else f"{first} to {final}"), False
    one, other = Decimal(repr(low)), Decimal(repr(high))
    unit = Decimal(1).scaleb(min(_scale(one), _scale(other)))
    return f"more than {low} and less than {high}", other - one <= unit


def _scale(number: Decimal) -> int:
    """The exponent of the last digit that is written."""
    exponent = number.normalize().as_tuple().exponent
    return min(exponent, 0) if isinstance(exponent, int) else 0


def _gap(subject: Subject, below: _Span, above: _Span, told: tuple[str, bool]) -> Finding:
    values, fine = told
    default = subject.policy.default
    say = f"{below.rule.name} and {above.rule.name} leave a gap in {above.field.label}: {values} is in no rule"
    fix = f"so the default {default} answers; widen one of the two, or leave it on purpose"
    severity = Severity.NOTE if fine and default is Effect.DENY else None
    return above.field.finding(codes.GAP, f"{say}, {fix}", "min", severity=severity)


def _overlap(one: _Span, other: _Span, whole: bool) -> Finding | None:
    low = max((b for b in (one.low, other.low) if b is not None), default=None)
    high = min((b for b in (one.high, other.high) if b is not None), default=None)
    if whole:
        low, high = None if low is None else ceil(low), None if high is None else floor(high)
    if low is not None and high is not None and low > high:
        return None
    if apart(one.rule.args, other.rule.args, one.field.label):
        return None
    if covers(one.rule, other.rule) or covers(other.rule, one.rule):
        return None  # told as a rule that never answers
    winner = max((one.rule, other.rule), key=lambda rule: STRICTNESS[rule.effect])
    alike = one.rule.effect is other.rule.effect
    say = f"{one.rule.name} and {other.rule.name} both match {other.field.label} {_range(low, high)}"
    fix = (
        "merge the two or part them" if alike else f"{winner.name} ({winner.effect}) wins there; part them if not meant"
    )
    nested = _inside(one, other) or _inside(other, one)
    mild = alike or nested or (low is not None and low == high)
    word = "min" if other.low is not None else "max"
    return other.field.finding(codes.OVERLAP, f"{say}; {fix}", word, severity=Severity.NOTE if mild else None)


def _inside(inner: _Span, outer: _Span) -> bool:
    """An exception carved out of a wider range is meant to overlap."""
    low = outer.low is None or (inner.low is not None and inner.low >= outer.low)
    return low and (outer.high is None or (inner.high is not None and inner.high <= outer.high))


def _range(low: Bound, high: Bound) -> str:
    if low is not None and low == high:
        return f"= {low}"
    if low is None:
        return "everywhere" if high is None else f"up to {high}"
    return f"from {low}" if high is None else f"from {low} to {high}"
