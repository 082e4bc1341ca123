"""The past of recorded calls under another policy: which calls held a slot when, folded for that policy's bounds.

A row whose argument the record does not show is counted apart, so that a bound over that argument is called unknown
instead of guessed. Sums and sets only grow, so a bound that the known rows pass already is passed for certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from carnet_policy.decision import Effect
from carnet_policy.folds import Fold, PastCall
from carnet_policy.history import HistoryRule, Kind, Over, Unreadable, share_of
from carnet_policy.policy import Policy
from carnet_policy.recorded import Recorded
from carnet_policy.remembering import measure

__all__ = ["Pasts"]

Bound = frozenset[Effect | None]


@dataclass(frozen=True, slots=True)
class _Row:
    run: str
    client: str
    tool: str


class _Sum:
    """One rule over one run or client: the rows that are known, and the ids of those that are not."""

    def __init__(self, rule: HistoryRule) -> None:
        self.fold = Fold(rule)
        self.hidden: dict[str, int] = {}

    def hides(self, now: int, skip: str) -> bool:
        """Whether a row of unknown share counts at `now`."""
        rule = self.fold.rule
        since = now - rule.window if rule.over is Over.CLIENT else 0
        # Calls come in order of time, so the newest other row tells for all of them.
        newest = next((at for call, at in reversed(self.hidden.items()) if call != skip), None)
        return newest is not None and newest >= since


class Pasts:
    """The pasts of all runs and clients of an export. Mutable; fed in the order of the records."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._sums: dict[tuple[str, int], _Sum] = {}
        self._rows: dict[str, _Row] = {}
        self._dispatched: set[str] = set()

    def put(self, call: Recorded) -> None:
        """A call that was let through, or that waits for an answer: it holds a slot."""
        if call.effect is Effect.DENY or not call.call:
            return
        if call.effect is Effect.ALLOW:
            self._dispatched.add(call.call)
        if call.call in self._rows:
            return
        self._rows[call.call] = _Row(call.run, call.client, call.tool)
        for rule in self._policy.bounding(call.tool):
            found = self._sum(rule, call.run, call.client)
            if rule.arg in call.hidden:
                found.hidden[call.call] = call.at
            else:
                found.fold.put(call.call, PastCall(call.tool, call.known, call.at))

    def free(self, call: str, why: Literal["failed", "answer"]) -> None:
        """The call gives its slot back: it failed where that can be told, or its question ended without a yes."""
        row = self._rows.get(call)
        if row is None or (why == "failed" and self._policy.irreversible(row.tool)):
            return
        if why == "answer" and call in self._dispatched:
            return
        del self._rows[call]
        for rule in self._policy.bounding(row.tool):
            found = self._sum(rule, row.run, row.client)
            if found.hidden.pop(call, None) is None:
                found.fold.drop(call)

    def bounds(self, call: Recorded) -> tuple[Bound, ...]:
        """What each history rule of the tool may say to the call."""
        return tuple(self._bound(rule, call) for rule in self._policy.bounding(call.tool))

    def _sum(self, rule: HistoryRule, run: str, client: str) -> _Sum:
        key = (f"run:{run}" if rule.over is Over.RUN else f"client:{client}", rule.index)
        if key not in self._sums:
            self._sums[key] = _Sum(rule)
        return self._sums[key]

    def _bound(self, rule: HistoryRule, call: Recorded) -> Bound:
        found = self._sum(rule, call.run, call.client)
        tally, own = found.fold.at(call.at), found.fold.own(call.call or None, call.at)
        hides = found.hides(call.at, call.call)
        unreadable: Bound = frozenset({Effect.DENY} if rule.kind is Kind.SUM else ())
        own_hidden = rule.arg in call.hidden
        share = share_of(rule, {} if own_hidden else call.known)
        if not own_hidden and isinstance(share, Unreadable):
            return frozenset({Effect.DENY})
        if tally.unreadable > (own is not None and isinstance(own[0], Unreadable)):
            return frozenset({Effect.DENY})
        numbers = measure(rule, tally, own, None if own_hidden else share)
        passed = numbers is not None and (numbers[0] if own_hidden else numbers[1]) > rule.max
        over: Bound = frozenset({rule.effect})
        if own_hidden or hides:
            return over | unreadable if passed else over | unreadable | {None}
        return over if passed else frozenset({None})
