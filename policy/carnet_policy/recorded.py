"""Decided calls as an audit export holds them: digests of all arguments, and in clear only those the host lets stand.

A record is read as a stranger's text: a line that is none is an error with its number, a record of another event is
passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from carnet_policy.decision import Call, Effect
from carnet_policy.errors import PolicyError
from carnet_policy.explain import Trace, explain
from carnet_policy.folds import Ledger
from carnet_policy.policy import Policy
from carnet_policy.tables.case import REASONS

__all__ = ["Recorded", "Unexplained", "explain_record", "in_order", "read_export", "recorded_call"]

MAX_LINE = 1 << 20
DECIDED = ("call_decided", "call_intent")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One decided call. `hidden` names the arguments whose values the record does not show. `by_policy`: the policy
    made this decision, and not a bound of the broker's."""

    seq: int
    at: int
    run: str
    client: str
    delegation: str
    call: str
    tool: str
    known: Mapping[str, object] = field(repr=False)
    hidden: frozenset[str]
    effect: Effect
    reason: str
    rule: str | None
    digest: str
    by_policy: bool


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Why a record can not be expanded, in one sentence."""

    why: str


def read_export(lines: Iterable[str], name: str) -> Iterator[Mapping[str, object]]:
    """The records of an export in file order; hashes and checkpoints are not looked at. Errors: PolicyError."""
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise PolicyError(
                f"the line is longer than {MAX_LINE} characters; this is no audit export", name, number, 1
            )
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise PolicyError("the line is no JSON; export with `carnet audit export`", name, number, 1) from None
        record = value.get("record", value) if isinstance(value, dict) else None
        if not isinstance(record, dict) or not ("kind" in record or "checkpoint" in record):
            raise PolicyError("the line is no audit record; export with `carnet audit export`", name, number, 1)
        if "kind" in record:
            yield record


def in_order(records: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """By time, then by number: a guard's own decisions arrive later than they were made."""
    return sorted(records, key=lambda record: (_number(record.get("at")), _number(record.get("seq"))))


def recorded_call(record: Mapping[str, object]) -> Recorded | None:
    """The decided call of a record; None for a record of anything else."""
    tool, decision = record.get("tool"), record.get("decision")
    if record.get("kind") not in DECIDED or not isinstance(tool, str) or not isinstance(decision, str):
        return None
    if decision not in set(Effect):
        return None
    clear, digests, policy = (record.get(key) for key in ("clear", "args", "policy"))
    known = dict(clear) if isinstance(clear, dict) else {}
    reason = str(record.get("reason"))
    return Recorded(
        seq=_number(record.get("seq")),
        at=_number(record.get("at")),
        run=_text(record.get("run")),
        client=_text(record.get("client")),
        delegation=_text(record.get("delegation")),
        call=_text(record.get("call")),
        tool=tool,
        known=known,
        hidden=frozenset(digests if isinstance(digests, dict) else ()) - known.keys(),
        effect=Effect(str(decision)),
        reason=reason,
        rule=None if record.get("rule") is None else str(record.get("rule")),
        digest=_text(policy.get("digest")) if isinstance(policy, dict) else "",
        by_policy=reason in REASONS,
    )


def explain_record(
    policy: Policy, record: Mapping[str, object], ledger: Ledger | None = None, *, pinned: bool = False
) -> Trace | Unexplained:
    """The trace behind a recorded decision, where the record shows every argument. `ledger` is the past as of then;
    without it history rules see none. The policy need not be the one in force then: compare the digests."""
    call = recorded_call(record)
    if call is None:
        return Unexplained("the record is not of a decided call")
    if not call.by_policy:
        return Unexplained(f"not the policy decided this call: {call.reason}")
    if call.hidden:
        names = ", ".join(sorted(call.hidden))
        return Unexplained(f"the record shows only digests of {names}; the host's clear_fields would keep them")
    return explain(policy, Call(call.tool, call.known, pinned), ledger)


def _number(value: object) -> int:
    return value if type(value) is int else 0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
