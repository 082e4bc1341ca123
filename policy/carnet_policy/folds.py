"""Folds: what past calls add up to, kept up to date row by row, so that a decision never reads them again.

A row counts for ever, until its hold lapses, or until it leaves a client rule's window. Rows that can lapse stand in
order of that moment behind a cursor, which moves as far as the clock did: each row is passed once, in either direction,
so the answer depends on the rows and on `now` only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from carnet_policy.history import HistoryRule, Over, Share, Unreadable, add, share_of

if TYPE_CHECKING:
    from carnet_policy.policy import Policy

__all__ = ["Fold", "Folds", "Ledger", "PastCall", "Tally"]


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that holds a slot. `at` in seconds; a waiting call counts only while `hold_until` is later than now;
    None = it holds for ever. `args` need hold only what `Policy.history_args` names."""

    tool: str
    args: Mapping[str, object] = field(repr=False)
    at: int
    hold_until: int | None = None


class Tally:
    """Count, exact sum and multiset of what was added."""

    __slots__ = ("count", "total", "unreadable", "values")

    def __init__(self) -> None:
        self.count = 0
        self.total = Decimal(0)
        self.unreadable = 0
        self.values: dict[object, int] = {}

    def change(self, share: Share, sign: Literal[1, -1]) -> None:
        self.count += sign
        if isinstance(share, Decimal):
            self.total = add(self.total, share if sign == 1 else -share)
        elif isinstance(share, Unreadable):
            self.unreadable += sign
        else:
            for key in share or ():
                left = self.values.get(key, 0) + sign
                if left:
                    self.values[key] = left
                else:
                    del self.values[key]

    def copy(self) -> Tally:
        twin = Tally()
        twin.count, twin.total, twin.unreadable = self.count, self.total, self.unreadable
        twin.values = dict(self.values)
        return twin


_KEPT = 3600  # seconds that a lapsed row is kept, for clocks that step back
_PRUNE_FROM = 256


class Fold:
    """The rows of one rule."""

    __slots__ = ("_cursor", "_lapsing", "_seen", "_shares", "rule", "tally")

    def __init__(self, rule: HistoryRule) -> None:
        self.rule = rule
        self.tally = Tally()
        self._shares: dict[str, tuple[Share, int | None]] = {}
        self._lapsing: list[tuple[int, str]] = []
        self._cursor = 0
        self._seen = 0

    def put(self, row_id: str, call: PastCall) -> None:
        share = share_of(self.rule, call.args)
        end = call.hold_until
        if self.rule.over is Over.CLIENT:
            left = call.at + self.rule.window + 1  # a row exactly as old as the window still counts
            end = left if end is None else min(end, left)
        self._shares[row_id] = share, end
        if end is None:
            self.tally.change(share, 1)
            return
        place = bisect_left(self._lapsing, (end, row_id))
        insort(self._lapsing, (end, row_id))
        if place < self._cursor:
            self._cursor += 1
        else:
            self.tally.change(share, 1)

    def drop(self, row_id: str) -> None:
        share, end = self._shares.pop(row_id)
        if end is not None:
            place = bisect_left(self._lapsing, (end, row_id))
            del self._lapsing[place]
            if place < self._cursor:
                self._cursor -= 1
                return
        self.tally.change(share, -1)

    def at(self, now: int) -> Tally:
        """The tally of the rows that count at `now` (seconds)."""
        rows = self._lapsing
        self._seen = now
        while self._cursor < len(rows) and rows[self._cursor][0] <= now:
            self.tally.change(self._shares[rows[self._cursor][1]][0], -1)
            self._cursor += 1
        while self._cursor and rows[self._cursor - 1][0] > now:
            self._cursor -= 1
            self.tally.change(self._shares[rows[self._cursor][1]][0], 1)
        return self.tally

    def own(self, row_id: str | None, now: int) -> tuple[Share] | None:
        """The share of one row, in a tuple, if that row counts at `now`."""
        found = None if row_id is None else self._shares.get(row_id)
        if found is None or (found[1] is not None and found[1] <= now):
            return None
        return (found[0],)

    def prune(self) -> list[str]:
        """Forget the rows that lapsed long before the last decision, once they are the greater part; tell their ids."""
        if self._cursor < _PRUNE_FROM or self._cursor * 2 < len(self._lapsing):
            return []
        # Never past the cursor: a late row that lapsed long ago still stands in the tally until the next decision.
        place = min(self._cursor, bisect_left(self._lapsing, (self._seen - _KEPT, "")))
        gone = [row_id for _, row_id in self._lapsing[:place]]
        for row_id in gone:
            del self._shares[row_id]
        del self._lapsing[:place]
        self._cursor -= place
        return gone

    def copy(self) -> Fold:
        twin = Fold(self.rule)
        twin.tally = self.tally.copy()
        twin._shares, twin._lapsing = dict(self._shares), list(self._lapsing)
        twin._cursor, twin._seen = self._cursor, self._seen
        return twin


class Folds:
    """The folds of one policy over one run, or over one client. Mutable and owned by the caller; the cost of one `put`
    does not grow with the rows. For another policy make new ones."""

    __slots__ = ("_folds", "_policy", "_rows", "over", "ref")

    def __init__(self, policy: Policy, over: Literal["run", "client"] = "run") -> None:
        self.over = Over(over)
        self.ref = policy.ref  # of the policy these folds belong to
        self._policy = policy
        self._folds = {rule.index: Fold(rule) for rule in policy.history if rule.over is self.over}
        self._rows: dict[str, tuple[PastCall, tuple[Fold, ...]]] = {}

    def put(self, id: str, call: PastCall | None) -> None:
        """Insert, replace or (None) remove one row."""
        before = self._rows.get(id)
        if before is not None:
            if before[0] == call:
                return
            for fold in before[1]:
                fold.drop(id)
            del self._rows[id]
        if call is None:
            return
        folds = tuple(self._folds[rule.index] for rule in self._policy.bounding(call.tool) if rule.over is self.over)
        for fold in folds:
            fold.put(id, call)
        if folds:
            self._rows[id] = call, folds
        for fold in folds:
            for gone in fold.prune():
                self._release(gone, fold)

    def _release(self, row_id: str, fold: Fold) -> None:
        call, folds = self._rows[row_id]
        left = tuple(other for other in folds if other is not fold)
        if left:
            self._rows[row_id] = call, left
        else:
            del self._rows[row_id]

    def fold(self, rule: HistoryRule) -> Fold:
        """The fold of one rule; KeyError for a rule of another scope."""
        return self._folds[rule.index]

    def copy(self) -> Folds:
        """Folds with the same rows that share nothing mutable with these."""
        twin = Folds(self._policy, self.over.value)
        twin._folds = {index: fold.copy() for index, fold in self._folds.items()}
        twin._rows = {
            row_id: (call, tuple(twin._folds[fold.rule.index] for fold in folds))
            for row_id, (call, folds) in self._rows.items()
        }
        return twin


@dataclass(frozen=True, slots=True)
class Ledger:
    """The past as one decision sees it. `now` and `opened` (of the run) in seconds; `since` maps ids of history rules
    to when they came into force; `skip` is the caller's own waiting row, which does not count."""

    run: Folds
    client: Folds | None
    now: int
    opened: int
    since: Mapping[str, int] = field(default_factory=dict)
    skip: str | None = None
