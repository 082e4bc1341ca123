"""A history rule's part in a decision: what the past holds, what this call adds, and whether that passes the bound.

The verdict is the engine's own, asked about one rule at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from carnet_policy.bounding import ForeignLedger, judge_history
from carnet_policy.decision import Call, Effect
from carnet_policy.folds import Ledger, Tally
from carnet_policy.history import HistoryRule, Kind, Over, Share, Unreadable, add, share_of
from carnet_policy.policy import Policy

__all__ = ["HistoryTrace", "measure", "remember"]

_STATES = {"history_limit": "over", "history_value": "unreadable", "history_recent": "young"}


@dataclass(frozen=True, slots=True)
class HistoryTrace:
    """`before`, `adds` and `after` are numbers as text, None where they can not be told. `state`: within | over |
    unreadable | young | unknown (the ledger could not be asked)."""

    name: str
    effect: Effect
    bounds: str
    limit: str
    before: str | None
    adds: str | None
    after: str | None
    state: str
    detail: str
    decides: bool

    @property
    def why(self) -> str:
        """One sentence with the numbers."""
        if self.after is None:
            return self.detail or f"{self.bounds} can not be told"
        return f"{self.bounds}: {self.before} before, {self.adds} by this call, at most {self.limit}"

    def as_dict(self) -> dict[str, object]:
        """JSON values."""
        return {
            "rule": self.name,
            "decision": self.effect.value,
            "bounds": self.bounds,
            "max": self.limit,
            "before": self.before,
            "adds": self.adds,
            "after": self.after,
            "state": self.state,
            "detail": self.detail,
            "decides": self.decides,
        }


def remember(policy: Policy, rule: HistoryRule, call: Call, ledger: Ledger | None, decided: str | None) -> HistoryTrace:
    """The part of one rule that bounds the tool of `call`; `decided` names the rule that the decision fell by."""
    numbers: tuple[Decimal | int, Decimal | int] | None = None
    try:
        # A policy of this one rule, so that no other rule's answer stands before it.
        found = judge_history(replace(policy, history=(rule,), _bounding={call.tool: (rule,)}), call, ledger)
        state = "within" if found is None else _STATES[found.reason]
        detail = "" if found is None else found.detail
        numbers = None if state == "unreadable" else _numbers(rule, call, ledger)
    except ForeignLedger as error:
        state, detail = "unknown", str(error)
    except Exception as error:  # noqa: BLE001 - the engine turned it into a denial; here it is told
        state, detail = "unknown", f"asking the history failed ({type(error).__name__})"
    before, after = (None, None) if numbers is None else numbers
    return HistoryTrace(
        name=rule.name,
        effect=rule.effect,
        bounds=_bounds(rule),
        limit=_text(rule.max),
        before=None if before is None else _text(before),
        adds=None if before is None or after is None else _text(_minus(after, before)),
        after=None if after is None else _text(after),
        state=state,
        detail=detail,
        decides=rule.name == decided,
    )


def _numbers(rule: HistoryRule, call: Call, ledger: Ledger | None) -> tuple[Decimal | int, Decimal | int] | None:
    tally, own = Tally(), None
    folds = None if ledger is None else ledger.run if rule.over is Over.RUN else ledger.client
    if ledger is not None and folds is not None:
        fold = folds.fold(rule)
        tally, own = fold.at(ledger.now), fold.own(ledger.skip, ledger.now)
    return measure(rule, tally, own, share_of(rule, call.args))


def measure(
    rule: HistoryRule, tally: Tally, own: tuple[Share] | None, share: Share
) -> tuple[Decimal | int, Decimal | int] | None:
    """What the bound is held against, without and with a call of this share; None for a share that can not be counted.
    `own` is the share of the caller's own waiting row, which counts in neither."""
    mine = None if own is None else own[0]
    if rule.kind is Kind.COUNT:
        before = tally.count - (own is not None)
        return before, before + 1
    if isinstance(share, Unreadable):
        return None
    if rule.kind is Kind.SUM:
        total = add(tally.total, -mine) if isinstance(mine, Decimal) else tally.total
        return total, add(total, share) if isinstance(share, Decimal) else total
    return _sets(tally, mine, share)


def _sets(tally: Tally, mine: Share, share: Share) -> tuple[int, int]:
    own = mine if isinstance(mine, tuple) else ()
    left = {key for key, times in tally.values.items() if times > (key in own)}
    return len(left), len(left.union(share if isinstance(share, tuple) else ()))


def _minus(one: Decimal | int, other: Decimal | int) -> Decimal | int:
    return add(Decimal(one), -Decimal(other)) if isinstance(one, Decimal) else one - int(other)


def _text(number: Decimal | int) -> str:
    return f"{number:f}" if isinstance(number, Decimal) and abs(number.adjusted()) < 30 else str(number)


def _bounds(rule: HistoryRule) -> str:
    what = {Kind.COUNT: "calls", Kind.SUM: f"{rule.arg} in total", Kind.DISTINCT: f"different {rule.arg}"}[rule.kind]
    whose = "irreversible tools" if rule.tool is None else rule.tool
    where = "this run" if rule.over is Over.RUN else f"the client's last {rule.window} s"
    return f"{what} ({whose}, {where})"
