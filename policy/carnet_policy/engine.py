"""`evaluate`: one call, one policy, one past, one answer. Total and deterministic: whatever fails in here is a deny.

The strictest matching rule wins, so the order of rules never matters. What no rule matches gets the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from carnet_policy.bounding import ForeignLedger, judge_history
from carnet_policy.decision import Call, Decision, Effect
from carnet_policy.folds import Ledger
from carnet_policy.policy import NO_RULES, Policy, ToolRules
from carnet_policy.reading import shown
from carnet_policy.rule import Rule

__all__ = ["evaluate", "judge_of"]


def evaluate(policy: Policy, call: Call, ledger: Ledger | None) -> Decision:
    """The answer to a call. `ledger` None = nothing has happened yet. Never raises; any error inside is a deny with
    the reason `policy_error`."""
    try:
        return _decide(policy, call, ledger)
    except ForeignLedger as error:
        return Decision(Effect.DENY, "policy_error", str(error), None, policy.ref)
    except Exception as error:  # noqa: BLE001 - fail closed, and say what kind of error it was but no value
        detail = f"the policy engine failed on this call ({type(error).__name__}), so it is denied"
        return Decision(Effect.DENY, "policy_error", detail, None, policy.ref)


def judge_of(policy: Policy, tool: str) -> Callable[[Mapping[str, object]], Decision]:
    """`evaluate` of unpinned calls of one tool without a past, with all that no argument changes looked up before.

    Where no rule, bound or floor can stand in the way of an allow, the first allow that matches answers at once. Every
    other call, and every error, is `evaluate`'s."""
    rules = policy.tools.get(tool, NO_RULES)

    def judge(args: Mapping[str, object]) -> Decision:
        return evaluate(policy, Call(tool, args), None)

    def judge_allows(args: Mapping[str, object]) -> Decision:
        try:
            for rule, decision in rules.allows:
                if rule.matches(args) is True:
                    return decision
        except Exception:  # noqa: BLE001 - it fails there as well, and is then a deny
            return judge(args)
        return judge(args)

    return judge if rules.denies or policy.asks(tool) or policy.bounds(tool) else judge_allows


def _decide(policy: Policy, call: Call, ledger: Ledger | None) -> Decision:
    base = _by_rules(policy, call)
    if base.effect is Effect.DENY:
        return base
    bounded = judge_history(policy, call, ledger) if policy.history else None
    if bounded is not None and (bounded.effect is Effect.DENY or base.effect is Effect.ALLOW):
        return bounded
    if (
        base.effect is Effect.ALLOW
        and not call.pinned
        and policy.catalog is not None
        and policy.irreversible(call.tool)
    ):
        detail = f"{call.tool} can not be undone, and the approved envelope does not pin it, so a person decides"
        return Decision(Effect.REQUIRE_APPROVAL, "irreversible_floor", detail, "floor", policy.ref)
    return base


def _by_rules(policy: Policy, call: Call) -> Decision:
    args = call.args
    rules = policy.tools.get(call.tool, NO_RULES)
    for rule, decision in rules.denies:
        answer = rule.matches(args)
        if answer is True:
            return decision
        if answer is None:  # what a deny can not judge, it denies
            return _in_doubt(rule, decision, args)
    doubtful: Decision | None = None
    for rule, decision in rules.asks:
        answer = rule.matches(args)
        if answer is True:
            return decision
        if answer is None and doubtful is None:
            doubtful = _in_doubt(rule, decision, args)
    for rule, decision in rules.allows:
        if rule.matches(args) is True:
            return decision if doubtful is None else doubtful
    return _by_default(policy, call, rules, doubtful)


def _in_doubt(rule: Rule, decision: Decision, args: Mapping[str, object]) -> Decision:
    return replace(decision, detail=f"{decision.detail} ({rule.doubt(args)})")


def _by_default(policy: Policy, call: Call, rules: ToolRules, doubtful: Decision | None) -> Decision:
    if policy.default is Effect.ALLOW:
        if doubtful is not None:
            return doubtful
        return Decision(Effect.ALLOW, "policy_allow", "no rule matches; default allow", None, policy.ref)
    if policy.default is Effect.REQUIRE_APPROVAL:
        return Decision(
            policy.default, "policy_approval", "no rule matches; default require_approval", None, policy.ref
        )
    if call.tool not in policy.tools:
        detail = f"the policy has no rule for {shown(call.tool)}; default deny"
        return Decision(Effect.DENY, "unknown_tool", detail, None, policy.ref)
    whys = dict.fromkeys(rule.mismatch(call.args) for rule in rules.rules if rule.effect is not Effect.DENY)
    detail = f"no rule of {call.tool} matches, default deny: {'; '.join(list(whys)[:4]) or 'it has no allow rule'}"
    return Decision(Effect.DENY, "no_match", detail, None, policy.ref)
