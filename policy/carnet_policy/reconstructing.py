"""The past of recorded calls under another policy: which calls held a slot when, folded for that policy's bounds.

A row whose argument the record does not show is counted apart, so that a bound over that argument is called unknown
instead of guessed. Sums and sets only grow, so a bound that the known rows pass already is passed for certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from carnet_policy.decision import Effect
from carnet_policy.folds import Fold, PastCall
from carnet_policy.history import HistoryRule, Kind, Over, Unreadable, share_of
from carnet_policy.policy import Policy
from carnet_policy.recorded import Recorded
from carnet_policy.remembering import measure

__all__ = ["Pasts"]

Bound = frozenset[Effect | None]
_ENDED = ("timed_out", "lapsed", "superseded")
_NOT_YES = ("deny", "withdraw")


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
        self._rows: dict[str, Recorded] = {}
        self._dispatched: set[str] = set()

    def put(self, call: Recorded) -> None:
        """A call that was let through, or that waits for an answer: it holds a slot."""
        if call.effect is Effect.DENY or not call.call:
            return
        if call.effect is Effect.ALLOW:
            self._dispatched.add(call.call)
        if call.call in self._rows:
            return
        self._rows[call.call] = call
        for rule in self._policy.bounding(call.tool):
            found = self._sum(rule, call.run, call.client)
            if rule.arg in call.hidden:
                found.hidden[call.call] = call.at
            else:
                found.fold.put(call.call, PastCall(call.tool, call.known, call.at))

    @property
    def held(self) -> Mapping[str, Recorded]:
        """The calls that hold a slot, by id, each as it was first decided."""
        return self._rows

    def settle(self, record: Mapping[str, object]) -> None:
        """What an outcome, or the end of a question, gives back; any other record changes nothing."""
        call, kind = record.get("call"), record.get("kind")
        if not isinstance(call, str):
            return
        if kind == "call_outcome" and record.get("outcome") == "failed":
            self._free(call, "failed")
        elif kind in _ENDED or (kind == "answered" and record.get("decision") in _NOT_YES):
            self._free(call, "answer")

    def _free(self, call: str, why: Literal["failed", "answer"]) -> None:
        """The call gives its slot back: it failed where that can be undone, or its question ended without a yes."""
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
