"""`explain`: the same question as `evaluate`, with everything that was looked at on the way.

The decision is the engine's own. What the trace adds is why: every rule of the tool, argument by argument; what the
history held; whether the floor stepped in. It shows values, so print it where the arguments themselves may be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from carnet_policy.decision import Call, Decision, Effect
from carnet_policy.engine import evaluate
from carnet_policy.excerpt import excerpt, label
from carnet_policy.folds import Ledger
from carnet_policy.judging import Reading
from carnet_policy.policy import NO_RULES, Policy
from carnet_policy.remembering import HistoryTrace, remember
from carnet_policy.rule import Rule
from carnet_policy.weighing import Finding, weigh

__all__ = ["ArgumentTrace", "RuleTrace", "Trace", "explain", "shown_args"]

READINGS = {Effect.ALLOW: Reading.CLOSED, Effect.DENY: Reading.SOME, Effect.REQUIRE_APPROVAL: Reading.MOST}
_WORDS = {True: "matches", False: "does not match", None: "can not be judged"}


@dataclass(frozen=True, slots=True)
class ArgumentTrace:
    """`answer` None = can not be judged. `findings` is empty for an optional argument that is absent."""

    name: str
    answer: bool | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class RuleTrace:
    """One rule that was tried. `fault` names the kind of error that trying it ended in."""

    name: str
    effect: Effect
    matches: bool | None
    arguments: tuple[ArgumentTrace, ...]
    decides: bool
    fault: str | None = None

    @property
    def why(self) -> str:
        """One sentence: of a match what fits, else what does not."""
        if self.fault is not None:
            return f"trying it failed ({self.fault})"
        wanted = [one for one in self.arguments if one.answer is self.matches]
        sentences = [f.sentence for one in wanted for f in one.findings if f.answer is self.matches]
        if not sentences:
            return "it bounds no argument" if self.matches else _WORDS[self.matches]
        return "; ".join(sentences[:4])


@dataclass(frozen=True, slots=True)
class Trace:
    """`by_rules` is what the rules alone say, before history and floor. `floor`: applies | pinned | not needed."""

    call: Call
    rules: tuple[RuleTrace, ...]
    by_rules: Decision
    history: tuple[HistoryTrace, ...]
    floor: str
    decision: Decision

    def as_dict(self) -> dict[str, object]:
        """JSON values. Arguments and findings are excerpts, safe to print."""
        ref, decision = self.decision.policy, self.decision
        return {
            "policy": {"id": ref.id, "version": ref.version, "digest": ref.digest},
            "tool": self.call.tool,
            "args": shown_args(self.call.args),
            "pinned": self.call.pinned,
            "rules": [_rule_dict(rule) for rule in self.rules],
            "by_rules": _decision_dict(self.by_rules),
            "history": [rule.as_dict() for rule in self.history],
            "floor": self.floor,
            "decision": _decision_dict(decision),
        }


def explain(policy: Policy, call: Call, ledger: Ledger | None) -> Trace:
    """The trace of one decision; `ledger` as for `evaluate`. Never raises for a call that `evaluate` takes."""
    decision = evaluate(policy, call, ledger)
    by_rules = evaluate(replace(policy, history=(), catalog=None), call, None)
    tool = call.tool if isinstance(call.tool, str) else ""
    rules = policy.tools.get(tool, NO_RULES).rules
    return Trace(
        call=call,
        rules=tuple(_try(rule, call.args, rule.name == decision.rule) for rule in rules),
        by_rules=by_rules,
        history=tuple(remember(policy, rule, call, ledger, decision.rule) for rule in policy.bounding(tool)),
        floor=_floor(policy, call, by_rules),
        decision=decision,
    )


def shown_args(args: Mapping[str, object]) -> dict[str, str]:
    """Each argument as an excerpt."""
    return {label(name): excerpt(value) for name, value in args.items()} if isinstance(args, Mapping) else {}


def _try(rule: Rule, args: Mapping[str, object], decides: bool) -> RuleTrace:
    try:
        matches = rule.matches(args)
        return RuleTrace(rule.name, rule.effect, matches, _arguments(rule, args), decides)
    except Exception as error:  # noqa: BLE001 - the engine turned it into a denial; here it is told
        return RuleTrace(rule.name, rule.effect, None, (), decides, type(error).__name__)


def _arguments(rule: Rule, args: Mapping[str, object]) -> tuple[ArgumentTrace, ...]:
    found = []
    for name, judge, optional in rule.fields:
        if name in args:
            findings = weigh(name, rule.args[name], args[name], READINGS[rule.effect])
            found.append(ArgumentTrace(name, judge(args[name]), findings))
        elif optional:
            found.append(ArgumentTrace(name, True, ()))
        else:
            found.append(ArgumentTrace(name, False, (Finding(name, "missing", "", "", False),)))
    if rule.effect is Effect.ALLOW and not rule.extra_args:
        for name in args:
            if name not in rule.args:
                text = label(name)
                finding = Finding(text, "unnamed", "", excerpt(args[name]), False)
                found.append(ArgumentTrace(text, False, (finding,)))
    return tuple(found)


def _floor(policy: Policy, call: Call, by_rules: Decision) -> str:
    if policy.catalog is None or by_rules.effect is not Effect.ALLOW or not policy.irreversible(call.tool):
        return "not needed"
    return "pinned" if call.pinned else "applies"


def _rule_dict(rule: RuleTrace) -> dict[str, object]:
    return {
        "rule": rule.name,
        "decision": rule.effect.value,
        "matches": rule.matches,
        "why": rule.why,
        "decides": rule.decides,
        "arguments": [
            {
                "name": one.name,
                "answer": one.answer,
                "findings": [
                    {"where": f.where, "constraint": f.word, "wanted": f.wanted, "value": f.value, "answer": f.answer}
                    for f in one.findings
                ],
            }
            for one in rule.arguments
        ],
    }


def _decision_dict(decision: Decision) -> dict[str, object]:
    return {
        "decision": decision.effect.value,
        "reason": decision.reason,
        "detail": decision.detail,
        "rule": decision.rule,
    }
