"""What the history rules say to one more call."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from carnet_policy.decision import Call, Decision, Effect, PolicyRef
from carnet_policy.folds import Fold, Ledger, Tally
from carnet_policy.history import HistoryRule, Kind, Over, Share, Unreadable, add, share_of

if TYPE_CHECKING:
    from carnet_policy.policy import Policy

__all__ = ["ForeignLedger", "judge_history"]


class ForeignLedger(Exception):
    """The ledger can not answer for this policy; the text says why."""


def judge_history(policy: Policy, call: Call, ledger: Ledger | None) -> Decision | None:
    """The strictest answer of the rules that bound the tool, None when all are content."""
    asked: Decision | None = None
    for rule in policy.bounding(call.tool):
        found = _judge(rule, policy.ref, call, ledger)
        if found is not None:
            if found.effect is Effect.DENY:
                return found
            asked = found if asked is None else asked
    return asked


_EMPTY = Tally()


def _judge(rule: HistoryRule, ref: PolicyRef, call: Call, ledger: Ledger | None) -> Decision | None:
    share = None if rule.arg is None else share_of(rule, call.args)
    if isinstance(share, Unreadable):
        wanted = "there and a number of at least 0" if rule.kind is Kind.SUM else "a JSON value"
        detail = f"history can not count this call: {rule.arg} must be {wanted}"
        return Decision(Effect.DENY, "history_value", detail, rule.name, ref)
    tally, young = _EMPTY, False
    own: tuple[Share] | None = None
    if ledger is not None:
        fold = _fold(rule, ref, ledger)
        tally = fold.at(ledger.now)
        own = None if ledger.skip is None else fold.own(ledger.skip, ledger.now)
        young = bool(ledger.since) and _is_young(rule, ledger)
    if tally.unreadable and not young and _others_unreadable(tally, own):
        detail = f"history holds a call whose {rule.arg} can not be counted"
        return Decision(Effect.DENY, "history_value", detail, rule.name, ref)
    if _measure(rule, tally, own, share) > rule.max:
        return Decision(rule.effect, "history_limit", rule.reason or _sentence(rule), rule.name, ref)
    if young:
        detail = f"{rule.name} is younger than the history it would count, so a person decides"
        return Decision(Effect.REQUIRE_APPROVAL, "history_recent", detail, rule.name, ref)
    return None


def _others_unreadable(tally: Tally, own: tuple[Share] | None) -> bool:
    return tally.unreadable > (own is not None and isinstance(own[0], Unreadable))


def _fold(rule: HistoryRule, ref: PolicyRef, ledger: Ledger) -> Fold:
    folds = ledger.run if rule.over is Over.RUN else ledger.client
    if folds is None:
        raise ForeignLedger("the history of the client is not known here")
    if folds.ref is not ref and folds.ref != ref:
        raise ForeignLedger("the history was counted for another policy")
    return folds.fold(rule)


def _is_young(rule: HistoryRule, ledger: Ledger) -> bool:
    begin = ledger.opened if rule.over is Over.RUN else ledger.now - rule.window
    return ledger.since.get(rule.id, begin) > begin


def _measure(rule: HistoryRule, tally: Tally, own: tuple[Share] | None, share: Share) -> Decimal | int:
    """What the bound is held against: the past without the caller's own row, and this call."""
    if rule.kind is Kind.COUNT:
        return tally.count - (own is not None) + 1
    if isinstance(share, Decimal):
        before = own[0] if own is not None else None
        total = add(tally.total, -before) if isinstance(before, Decimal) else tally.total
        return add(total, share)
    return _distinct(tally.values, own[0] if own is not None else None, share)


def _distinct(values: Mapping[object, int], own: Share, share: Share) -> int:
    mine = own if isinstance(own, tuple) else ()
    new = share if isinstance(share, tuple) else ()
    left = len(values) - sum(1 for key in mine if values.get(key) == 1) if mine else len(values)
    for key in new:
        left += values.get(key, 0) == (key in mine)
    return left


def _sentence(rule: HistoryRule) -> str:
    what = {Kind.COUNT: "calls", Kind.SUM: f"of {rule.arg} in total", Kind.DISTINCT: f"different {rule.arg}"}[rule.kind]
    where = "this run" if rule.over is Over.RUN else f"the last {rule.window} s of this client"
    whose = "irreversible tools" if rule.tool is None else rule.tool
    return f"history: {whose} would pass the bound of {rule.max} {what} in {where}"
