"""What tools do and touch: whether the policy says so in words that count, and what bounds what can not be undone."""

from __future__ import annotations

from collections.abc import Iterator

from carnet_policy.catalog import UNKNOWN
from carnet_policy.decision import Effect
from carnet_policy.history import HistoryRule, Kind, Over
from carnet_policy.lint import codes
from carnet_policy.lint.finding import Finding, Severity
from carnet_policy.lint.subject import Subject, judged
from carnet_policy.sensitivity import doubt

__all__ = ["counted", "irreversible", "unknown_classes", "unknown_effects"]


def irreversible(subject: Subject) -> Iterator[Finding]:
    policy = subject.policy
    for tool, found in policy.tools.items():
        if (policy.catalog or {}).get(tool, UNKNOWN).effect != "irreversible":
            continue
        bounds = policy.bounding(tool)
        for rule, _ in found.allows:
            if not bounds:
                message = f"{rule.name} allows {tool}, which can not be undone, and no history rule bounds it"
                fix = f"add one, such as {{match: {{tool: {tool}}}, max: 1, decision: deny}}"
                yield judged(codes.UNBOUNDED, rule, (), f"{message}; {fix}")
        rules = [pair[0] for pair in (*found.allows, *found.asks)]
        if rules and bounds and not any(bound.over is Over.CLIENT for bound in bounds):
            message = f"{tool} can not be undone and is bounded within one run only, so a new run starts at zero"
            severity = None if found.allows else Severity.NOTE
            fix = "add a history rule with over: client and a window"
            yield judged(codes.RUN_ONLY, rules[0], (), f"{message}; {fix}", severity)


def unknown_effects(subject: Subject) -> Iterator[Finding]:
    code = codes.UNKNOWN_EFFECT
    policy = subject.policy
    if policy.catalog is None:
        message = "no catalog: every tool counts as irreversible for match: irreversible"
        fix = "add catalog: with an effect for each tool"
        yield Finding(code, code.severity, f"{message}; {fix}", *subject.find())
        return
    for tool in dict.fromkeys([*policy.catalog, *policy.tools]):
        if policy.catalog.get(tool, UNKNOWN).effect is None:
            message = f"{tool} has no effect in the catalog, so it counts as irreversible"
            place = subject.find(*(("catalog", tool) if tool in policy.catalog else ("tools", tool)))
            fix = "write effect: read, write or irreversible"
            yield Finding(code, code.severity, f"{message}; {fix}", *place)


def unknown_classes(subject: Subject) -> Iterator[Finding]:
    code, policy = codes.UNKNOWN_CLASS, subject.policy
    for tool, facts in (policy.catalog or {}).items():
        for word in sorted(facts.data_class):
            if (told := doubt(word)) is not None:
                yield Finding(code, code.severity, f"{tool}: {told}", *subject.find("catalog", tool, "data_class"))
    for found in policy.tools.values():
        for rule in found.rules:
            for word in sorted(rule.data_class):
                if (told := doubt(word)) is not None:
                    yield judged(code, rule, ("data_class",), f"{rule.name}: {told}")


def counted(subject: Subject) -> Iterator[Finding]:
    policy = subject.policy
    known = set(policy.tools) | set(policy.catalog or {})
    for rule in policy.history:
        if rule.tool is not None and rule.tool not in known:
            code = codes.NOTHING_COUNTED
            message = f"{rule.name} matches the tool {rule.tool}, which no rule names; correct the name or remove it"
            yield Finding(code, code.severity, message, *subject.of_history(rule, "match"), rule.name)
        elif rule.tool is not None and rule.arg is not None and not _names(subject, rule.tool, rule.arg):
            yield _not_countable(subject, rule)


def _names(subject: Subject, tool: str, arg: str) -> bool:
    found = subject.policy.tools.get(tool)
    rules = [] if found is None else [rule for rule in found.rules if rule.effect is not Effect.DENY]
    return not rules or any(arg in rule.args or rule.extra_args for rule in rules)


def _not_countable(subject: Subject, rule: HistoryRule) -> Finding:
    code = codes.NOT_COUNTABLE
    effect = "so every call without it is denied" if rule.kind is Kind.SUM else "so it counts one value, absent"
    message = f"{rule.name} adds up {rule.arg}, which no rule of {rule.tool} names, {effect}"
    place = subject.of_history(rule, rule.kind.value)
    return Finding(code, code.severity, f"{message}; correct the name or name it in a rule", *place, rule.name)
