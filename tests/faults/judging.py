"""Compare what clients were told with what a restarted broker has. Each function answers what is wrong, in words."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.acks import Ack, AckLog
from tests.faults.wire import Wire

__all__ = ["Kept", "audit_problem", "broken_rows", "lost", "read_kept", "served_otherwise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the database file holds. approvals, calls: id -> state. records: (kind, delegation or None) -> how many."""

    integrity: str
    delegations: frozenset[str]
    approvals: dict[str, str]
    calls: dict[str, str]
    marks: frozenset[str]
    records: Counter[tuple[str, str | None]]
    call_records: Counter[tuple[str, str]]  # (kind, call)


def read_kept(database: Path) -> Kept:
    """Read beside a running or a dead broker."""
    conn = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        calls = "SELECT body ->> 'kind', body ->> 'call' FROM record WHERE body ->> 'call' IS NOT NULL"
        return Kept(
            integrity=str(conn.execute("PRAGMA integrity_check").fetchone()[0]),
            delegations=frozenset(row[0] for row in conn.execute("SELECT id FROM delegation")),
            approvals=dict(conn.execute("SELECT id, state FROM approval").fetchall()),
            calls=dict(conn.execute("SELECT id, state FROM call").fetchall()),
            marks=frozenset(row[0] for row in conn.execute("SELECT mark FROM revocation")),
            records=Counter(conn.execute("SELECT body ->> 'kind', delegation FROM record").fetchall()),
            call_records=Counter(conn.execute(calls).fetchall()),
        )
    finally:
        conn.close()


def lost(log: AckLog, kept: Kept) -> list[str]:
    """Acknowledged acts that are not there."""
    return [f"{ack.asked.kind} {ack.id}: {what}" for ack in log.acks for what in _missing(ack, kept)]


def _missing(ack: Ack, kept: Kept) -> Iterator[str]:
    """What should be there, by the kind of act; a kind that nobody knows how to judge is a KeyError."""
    approval = (ack.answer.get("approval") or {}).get("id")
    facts = {
        "run": (ack.id in kept.delegations, kept.records["run_opened", ack.id]),
        "spawn": (ack.id in kept.delegations, kept.records["spawned", ack.id], approval in kept.approvals),
        "mint": (kept.records["minted", ack.id],),
        "approve": (kept.approvals.get(ack.id) == "approved",),
        "deny": (kept.approvals.get(ack.id) == "denied",),
        "call": (ack.id in kept.calls, kept.call_records["call_decided", ack.id]),
        "outcome": (kept.calls.get(ack.id) == "done", kept.call_records["call_outcome", ack.id]),
        "revoke": (ack.id in kept.marks,),
    }
    if not all(facts[ack.asked.kind]):
        yield f"not all of it is there: {facts[ack.asked.kind]}"


_HALVES = {
    "a child without its approval": """
        SELECT id FROM delegation d WHERE parent IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM approval a WHERE a.tenant = d.tenant AND a.id = d.body ->> 'approval')""",
    "an approval without its delegation": """
        SELECT id FROM approval a
        WHERE NOT EXISTS (SELECT 1 FROM delegation d WHERE d.tenant = a.tenant AND d.id = a.body ->> 'delegation')""",
    "a delegation without its record": """
        SELECT id FROM delegation d WHERE NOT EXISTS (
        SELECT 1 FROM record r WHERE r.tenant = d.tenant AND r.delegation = d.id
        AND r.body ->> 'kind' IN ('spawned', 'run_opened'))""",
    "a call without its record": """
        SELECT id FROM call c WHERE NOT EXISTS (
        SELECT 1 FROM record r WHERE r.tenant = c.tenant AND r.run = c.run AND r.body ->> 'call' = c.id)""",
    "a record of a spawn without its delegation": """
        SELECT delegation FROM record r WHERE body ->> 'kind' = 'spawned'
        AND NOT EXISTS (SELECT 1 FROM delegation d WHERE d.tenant = r.tenant AND d.id = r.delegation)""",
    "numbers of records with a gap": "SELECT tenant FROM record GROUP BY tenant HAVING max(seq) <> count(*)",
    "numbers of the feed with a gap": "SELECT tenant FROM feed GROUP BY tenant HAVING max(seq) <> count(*)",
    "an idempotency key without its row": """
        SELECT key FROM idempotency i WHERE row LIKE 'dlg\\_%' ESCAPE '\\'
        AND NOT EXISTS (SELECT 1 FROM delegation d WHERE d.tenant = i.tenant AND d.id = i.row)""",
}


def broken_rows(database: Path) -> list[str]:
    """Halves of acts: what one commit wrote must be there whole or not at all."""
    conn = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        return [f"{what}: {row[0]}" for what, sql in _HALVES.items() for row in conn.execute(sql).fetchmany(5)]
    finally:
        conn.close()


def audit_problem(wire: Wire, session: str) -> str | None:
    """What the broker's own check of its audit chain says."""
    status, answer = wire.get("/v1/audit/verify", session)
    return None if status == 200 and answer["ok"] else f"{status} {answer}"


def served_otherwise(log: AckLog, wire: Wire, session: str, guard: str, sample: int = 15) -> list[str]:
    """Ask the restarted broker itself about the last acts before the fault, which are the ones in danger."""
    wrong = []
    revoked = {ack.id.removeprefix("dlg:") for ack in log.of("revoke")}
    either = {str(asked.body["mark"]).removeprefix("dlg:") for asked in log.open if asked.kind == "revoke"}
    for ack in [ack for ack in log.of("spawn") if ack.id not in either][-sample:]:
        status, now = wire.get(f"/v1/delegations/{ack.id}", session)
        state = "ended" if ack.id in revoked else ack.answer["state"]
        if status != 200 or (now["state"] != state and state != "pending"):
            wrong.append(f"{ack.id} was {state} and is {status} {now.get('state')}")
        headers = {"idempotency-key": ack.asked.key}
        status, again = wire.post(ack.asked.path, ack.asked.token, ack.asked.body, **headers)
        if again.get("id") != ack.id:
            wrong.append(f"the key of {ack.id} answers {status} {again}")
    for ack in log.of("approve")[-sample:]:
        status, now = wire.get(f"/v1/approvals/{ack.id}", session)
        if now.get("state") != "approved":
            wrong.append(f"{ack.id} was approved and is {status} {now.get('state')}")
    _, feed = wire.get("/v1/feed?after=0&epoch=&system_epoch=&system_after=0&wait=0", guard)
    served = {entry["mark"] for entry in feed["entries"]}
    return wrong + [f"guards do not hear of {ack.id}" for ack in log.of("revoke") if ack.id not in served]
