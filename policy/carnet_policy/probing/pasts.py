"""Pasts at the limits of history rules: one call before the bound, at it, and past it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from carnet_policy.history import HistoryRule, Kind, Over
from carnet_policy.tables.case import Past

__all__ = ["ProbePast", "probe_pasts"]

MOST = 2000  # rows of one past


@dataclass(frozen=True, slots=True)
class ProbePast:
    """Calls of the run, and calls of the same client in other runs."""

    run: tuple[Past, ...] = ()
    client: tuple[Past, ...] = ()

    @property
    def size(self) -> int:
        return len(self.run) + len(self.client)


def probe_pasts(
    tool: str, rules: Sequence[HistoryRule], base: Mapping[str, object]
) -> tuple[tuple[ProbePast, ...], tuple[str, ...]]:
    """For the history rules that bound a tool, of one policy or of several; and, in words, what could not be probed.
    `base` is a call of the tool whose arguments past calls repeat."""
    pasts, blind = [ProbePast()], []
    for rule in rules:
        if rule.kind is not Kind.SUM and rule.max > MOST:
            blind.append(f"{rule.name}: a bound of {rule.max} is beyond the {MOST} past calls that are tried")
            continue
        for rows in _rows(rule, rule.tool or tool, base):
            pasts.append(ProbePast(run=rows))
            if rule.over is Over.CLIENT:
                for age in (rule.window, rule.window + 1):
                    moved = tuple(Past(row.tool, row.args, age=age) for row in rows)
                    pasts.append(ProbePast(client=moved))
    return tuple(pasts), tuple(blind)


def _rows(rule: HistoryRule, tool: str, base: Mapping[str, object]) -> Iterator[tuple[Past, ...]]:
    if rule.kind is Kind.SUM:
        for total in _totals(rule, base):
            yield (_past(tool, {**base, str(rule.arg): total}),)
        yield (_past(tool, {**base, str(rule.arg): "x"}),)
        return
    for count in (int(rule.max) - 1, int(rule.max)):
        if count > 0:
            yield tuple(_past(tool, _row_args(rule, base, number)) for number in range(count))


def _row_args(rule: HistoryRule, base: Mapping[str, object], number: int) -> Mapping[str, object]:
    return base if rule.arg is None else {**base, rule.arg: f"another-{number}"}


def _totals(rule: HistoryRule, base: Mapping[str, object]) -> Iterator[float | int]:
    limit = Decimal(rule.max)
    yield _plain(limit)
    mine = base.get(str(rule.arg))
    if type(mine) in (int, float):
        left = limit - Decimal(repr(mine))
        if left >= 0:
            yield _plain(left)
            yield _plain(left + Decimal("0.01"))


def _plain(number: Decimal) -> float | int:
    return int(number) if number == number.to_integral_value() and number < 1 << 53 else float(number)


def _past(tool: str, args: Mapping[str, object]) -> Past:
    return Past(tool, dict(args))
