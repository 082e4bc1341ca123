"""Rules that never answer, rules that a call can dodge, and calls that no rule looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from carnet_policy.constraint import Constraint
from carnet_policy.decision import Effect
from carnet_policy.lint import codes
from carnet_policy.lint.disjoint import apart
from carnet_policy.lint.fields import Field, fields_of
from carnet_policy.lint.finding import Finding
from carnet_policy.lint.implication import STRICTNESS, covers
from carnet_policy.lint.ranges import MAX_COMPARED
from carnet_policy.lint.subject import Step, Subject, judged
from carnet_policy.rule import Rule

__all__ = ["default_open", "dodged", "never_answering", "unlooked"]


def default_open(subject: Subject) -> Iterator[Finding]:
    default = subject.policy.default
    if default is not Effect.DENY:
        code = codes.DEFAULT_OPEN
        message = f"the default is {default}, so a call that no rule names gets through; write decision: deny"
        yield Finding(code, code.severity, message, *subject.find("defaults", "decision"))


def never_answering(subject: Subject) -> Iterator[Finding]:
    for tool, found in subject.policy.tools.items():
        if len(found.rules) > MAX_COMPARED:
            message = (
                f"{tool} has {len(found.rules)} rules; beyond {MAX_COMPARED} they are not compared with each other"
            )
            code = codes.NOT_COMPARED
            yield Finding(code, code.severity, f"{message}, so use fewer and wider ones", *subject.find("tools", tool))
            continue
        for index, rule in enumerate(found.rules):
            yield from _told(rule, found.rules[:index], found.rules[index + 1 :])


def _told(rule: Rule, before: tuple[Rule, ...], after: tuple[Rule, ...]) -> Iterator[Finding]:
    for other in (*before, *after):
        if not covers(other, rule):
            continue
        mutual = other.effect is rule.effect and covers(rule, other)
        if mutual and other in after:
            continue  # of twins, the later one is told
        if mutual:
            message = f"{rule.name} matches the same calls as {other.name} and says the same; keep one of the two"
            yield judged(codes.DUPLICATE, rule, (), message)
        else:
            message = f"{rule.name} never answers: {other.name} ({other.effect}) matches all of its calls"
            yield judged(codes.UNREACHABLE, rule, (), f"{message}; remove it, or narrow {other.name}")
        return


def dodged(subject: Subject) -> Iterator[Finding]:
    default = subject.policy.default
    for found in subject.policy.tools.values():
        for rule in found.rules:
            if rule.effect is Effect.ALLOW:
                continue
            for field in fields_of(rule):
                if field.constraint.required is False:
                    continue
                laxer = next((allow for allow, _ in found.allows if _dodges(allow, field)), None)
                if laxer is not None:
                    past = f"{laxer.name} allows it; name {field.label} in {laxer.name}"
                elif STRICTNESS[default] < STRICTNESS[rule.effect]:
                    past = f"the default {default} answers; make the default deny"
                else:
                    continue
                message = f"a call without {field.label} dodges this {rule.effect}, and {past}"
                yield field.finding(codes.DODGED, message)


def _dodges(allow: Rule, field: Field) -> bool:
    """Whether the allow can match a call that the field's rule would match if only the field were there."""
    _, name, *inner = field.path
    constraint = allow.args.get(str(name))
    absent = constraint is None or constraint.required is False or _absent(constraint, inner)
    return absent and not apart(allow.args, field.rule.args, field.label)


def _absent(constraint: Constraint, path: Sequence[Step]) -> bool:
    """Whether the part at `path` may be missing inside; an element of a list is never missing, only what it holds."""
    if not path:
        return False
    if path[0] == "items":
        return len(path) > 1 if constraint.items is None else _absent(constraint.items, path[1:])
    found = (constraint.properties or {}).get(str(path[1]))
    return found is None or found.required is False or _absent(found, path[2:])


def unlooked(subject: Subject) -> Iterator[Finding]:
    for tool, found in subject.policy.tools.items():
        if not found.rules:
            message = f"{tool} has no rule, so the default {subject.policy.default} answers; add one or remove the tool"
            yield Finding(codes.NO_RULES, codes.NO_RULES.severity, message, *subject.find("tools", tool))
        for rule, _ in found.allows:
            if rule.extra_args:
                message = f"{rule.name} lets any further argument through unseen; name the arguments instead"
                yield judged(codes.EXTRA_ARGS, rule, ("extra_args",), message)
