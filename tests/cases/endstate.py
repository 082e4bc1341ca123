"""What a sequence must have left behind: executions, questions, records, key fetches."""

import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from carnet.audit import Record
from tests.cases.judging import check_reason
from tests.cases.reading import closed
from tests.cases.steps import Player
from tests.cases.verdict import CaseFailed, expect

__all__ = ["EXPECTED", "check_end"]

EXPECTED = frozenset(
    {
        "outcome",
        "repeat",
        "executed",
        "executed_max",
        "executed_min",
        "pending_approvals",
        "reason_is_not",
        "audit_count",
        "audit_has",
        "audit_never",
        "jwks_keys_min",
        "jwks_fetches_max",
        "max_seconds_after_revoke",
        "no_hang_seconds",
    }
)
PATIENCE = 5.0  # seconds that the audit's background job may take
RECORD_FIELDS = {item.name for item in fields(Record)}
NAMES = {"event": "kind", "child": "delegation", "token": "delegation", "parent": "chain", "operator": "actor"}


def check_end(expected: Mapping[str, Any], player: Player) -> None:
    expect(expected.get("outcome") == "all_steps_as_expected", "the outcome asked for is unknown")
    _executions(expected, player)
    if "pending_approvals" in expected:
        open_ = [row for row in player.world.approvals("pending") if row["run"] in player.runs]
        expect(len(open_) == expected["pending_approvals"], f"{len(open_)} questions are open")
    if "reason_is_not" in expected:
        for row in player.records():
            check_reason({"reason_is_not": expected["reason_is_not"]}, f"{row['reason'] or ''} ")
    if "jwks_keys_min" in expected:
        published = len(player.world.request("GET", "/.well-known/jwks.json").json()["keys"])
        expect(published >= expected["jwks_keys_min"], f"{published} keys are published")
    if "jwks_fetches_max" in expected:
        fetched = player.world.tools.fetched_keys
        expect(fetched <= expected["jwks_fetches_max"], f"the key set was fetched {fetched} times")
    if "no_hang_seconds" in expected:
        expect(player.slowest <= expected["no_hang_seconds"], f"a step took {player.slowest:.1f} s")
    _audit(expected, player)


def _executions(expected: Mapping[str, Any], player: Player) -> None:
    ran = player.executed
    if "executed" in expected:
        expect(ran == expected["executed"], f"the tool ran {ran} times, expected {expected['executed']}")
    if "executed_max" in expected:
        expect(ran <= expected["executed_max"], f"the tool ran {ran} times, at most {expected['executed_max']}")
    if "executed_min" in expected:
        expect(ran >= expected["executed_min"], f"the tool ran {ran} times, at least {expected['executed_min']}")


def _audit(expected: Mapping[str, Any], player: Player) -> None:
    if "audit_count" in expected:
        wanted = closed(expected["audit_count"], {"event", "min", "max", "count"}, "audit_count", frozenset({"event"}))
        _soon(lambda: _counted(wanted, player))
    if "audit_has" in expected:
        names = [NAMES.get(name, name) for name in expected["audit_has"]]
        unknown = set(names) - RECORD_FIELDS
        expect(not unknown, f"no audit record has a field {sorted(unknown)}")
        _soon(lambda: _has(names, player))
    for never in _listed(expected.get("audit_never", [])):
        said = [row for row in player.records() if _says(row, never)]
        expect(not said, f"a record says {never!r}")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _soon(check: Callable[[], None]) -> None:
    """Repeat a check until it holds or the background job has had its time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return check()
        except CaseFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _counted(wanted: Mapping[str, Any], player: Player) -> None:
    found = sum(_is_event(row, str(wanted["event"])) for row in player.records())
    least, most = wanted.get("min", wanted.get("count", 0)), wanted.get("max", wanted.get("count", found))
    expect(least <= found <= most, f"{found} records of {wanted['event']}, expected {dict(wanted)}")


def _is_event(row: Mapping[str, Any], event: str) -> bool:
    """An event is a kind of record, or an end for that reason."""
    return event in (row["kind"], row["reason"], row["decision"])


def _has(names: list[str], player: Player) -> None:
    rows = player.records()
    expect(any(all(row.get(name) for name in names) for row in rows), f"no record has all of {names}")


def _says(row: Mapping[str, Any], never: Any) -> bool:
    if isinstance(never, Mapping):
        return all(row.get(NAMES.get(str(name), str(name))) == value for name, value in never.items())
    return str(never) in (row["kind"], row["reason"], row["decision"], row["outcome"])
