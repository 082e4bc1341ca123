"""A table against its policy: each case decided by the engine, over a past made of the case's own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from carnet_policy.decision import Decision
from carnet_policy.excerpt import excerpt
from carnet_policy.explain import explain
from carnet_policy.folds import Folds, Ledger, PastCall
from carnet_policy.policy import Policy
from carnet_policy.tables.case import FREES, NOW, WAITS, Case, Expected, Past, Table
from carnet_policy.tables.coverage import Hits

__all__ = ["Result", "ledger_of", "run_table"]

WAIT = 120  # seconds for which a pending call still holds its slot


@dataclass(frozen=True, slots=True)
class Result:
    """`problems` is empty when the case holds; else one sentence for each expectation that does not."""

    case: Case
    decision: Decision
    problems: tuple[str, ...]


def run_table(
    policy: Policy, table: Table, hits: Hits | None = None, chosen: Callable[[Case], bool] = lambda _: True
) -> tuple[Result, ...]:
    """The results in file order. `hits` takes note of the rules that were hit."""
    results = []
    for case in filter(chosen, table.cases):
        trace = explain(policy, case.call, ledger_of(policy, case.history, case.client_history))
        if hits is not None:
            hits.note(trace)
        results.append(Result(case, trace.decision, tuple(_problems(case.expected, trace.decision))))
    return tuple(results)


def _problems(expected: Expected, found: Decision) -> Iterable[str]:
    if found.effect is not expected.decision:
        yield f"decision is {found.effect}, expected {expected.decision}"
    if expected.rule is not None and found.rule != expected.rule:
        yield f"rule is {found.rule or 'none'}, expected {excerpt(expected.rule)[1:-1]}"
    if expected.reason is not None and found.reason != expected.reason:
        yield f"reason is {found.reason}, expected {expected.reason}"
    if expected.contains is not None and expected.contains.lower() not in found.detail.lower():
        yield f"the reason's sentence lacks {excerpt(expected.contains)}"


def ledger_of(policy: Policy, history: Iterable[Past], client_history: Iterable[Past] = ()) -> Ledger:
    """The past as a ledger. The run's calls are the client's too; the run began before the oldest of them."""
    run, client, opened = Folds(policy, "run"), Folds(policy, "client"), NOW
    for number, past in enumerate(history):
        row = _row(policy, past)
        run.put(f"run:{number}", row)
        client.put(f"run:{number}", row)
        opened = min(opened, NOW - past.age)
    for number, past in enumerate(client_history):
        client.put(f"client:{number}", _row(policy, past))
    return Ledger(run, client, NOW, opened)


def _row(policy: Policy, past: Past) -> PastCall | None:
    if past.outcome in FREES or (past.outcome == "failed" and not policy.irreversible(past.tool)):
        return None
    until = NOW + WAIT if past.outcome in WAITS else None
    return PastCall(past.tool, past.args, NOW - past.age, until)
