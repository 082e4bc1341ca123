"""What the past adds up to, told to an exported policy in advance: other engines keep no history."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from carnet_policy.decision import Call
from carnet_policy.export.numbers import number_facts
from carnet_policy.folds import Fold, Ledger, Tally
from carnet_policy.history import HistoryRule, Kind, Over, Share, Unreadable, add, share_of
from carnet_policy.policy import Policy

__all__ = ["counters_of"]

_Own = tuple[Share] | None


def counters_of(policy: Policy, call: Call, ledger: Ledger | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each history rule that matches the tool: its name, and `units` and `more` of what the rule holds against its
    bound (the past and this call), `unreadable` (something can not be counted), `young` (the rule is younger than what
    it would count). A rule is left out where its past is not known; exported policies then deny."""
    for rule in policy.bounding(call.tool):
        share = None if rule.arg is None else share_of(rule, call.args)
        if ledger is None:
            yield rule.name, _counter(rule, Tally(), None, share, young=False)
            continue
        folds = ledger.run if rule.over is Over.RUN else ledger.client
        if folds is not None and folds.ref == policy.ref:
            fold = folds.fold(rule)
            yield rule.name, _counter(rule, fold.at(ledger.now), _own(fold, ledger), share, young=_young(rule, ledger))


def _own(fold: Fold, ledger: Ledger) -> _Own:
    return None if ledger.skip is None else fold.own(ledger.skip, ledger.now)


def _young(rule: HistoryRule, ledger: Ledger) -> bool:
    begin = ledger.opened if rule.over is Over.RUN else ledger.now - rule.window
    return ledger.since.get(rule.id, begin) > begin


def _counter(rule: HistoryRule, tally: Tally, own: _Own, share: Share, *, young: bool) -> dict[str, Any]:
    others = tally.unreadable > (own is not None and isinstance(own[0], Unreadable))
    unreadable = isinstance(share, Unreadable) or (others and not young)
    measure = Decimal(0) if isinstance(share, Unreadable) else _measure(rule, tally, own, share)
    return {**number_facts(measure), "unreadable": unreadable, "young": young}


def _measure(rule: HistoryRule, tally: Tally, own: _Own, share: Share) -> Decimal | int:
    if rule.kind is Kind.COUNT:
        return tally.count - (own is not None) + 1
    if isinstance(share, Decimal):
        before = own[0] if own is not None else None
        return add(add(tally.total, -before) if isinstance(before, Decimal) else tally.total, share)
    mine = own[0] if own is not None and isinstance(own[0], tuple) else ()
    left = {key for key, count in tally.values.items() if count > (key in mine)}
    return len(left.union(share if isinstance(share, tuple) else ()))
