"""Records: the journal of a guard's local lane, shipped in batches. Numbers are contiguous; a gap is a record too.

A guard reports what it decided and how it ended. Whose call it was is not for it to say: run, chain, agent and client
are those of the delegation on record, and only of one that holds a tool of the guard's host.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from carnet.arguments import canonical
from carnet.audit import Kind as Event
from carnet.audit import Record
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.registry import Host
from carnet_broker.core.rows import Delegation, GuardSeen
from carnet_broker.service.context import Context
from carnet_broker.service.following import JOURNAL
from carnet_broker.service.guarding import guard_id, host_of_guard
from carnet_broker.service.lines import by_delegation
from carnet_broker.service.principals import Principal
from carnet_broker.service.requests import RecordBatch
from carnet_broker.service.settling import Plan, settle
from carnet_broker.store.base import Change, Conflict, Key

__all__ = ["MOST", "store_records"]

MOST = 1000  # lines in one batch
KEPT = 7 * 86_400  # seconds in which a repeated batch is recognised
_KINDS = frozenset({Event.CALL_INTENT, Event.CALL_DECIDED, Event.CALL_OUTCOME, Event.JOURNAL_GAP, Event.UNGUARDED})
_WHOSE = ("run", "delegation", "agent", "client")
_TEXTS = (*_WHOSE, "tool", "rule", "decision", "reason", "call", "outcome")


async def store_records(ctx: Context, guard: Principal | Claims, batch: RecordBatch) -> int | Refusal:
    """The number of the next line that the broker waits for. What a guard reports is stored as reported."""
    host = host_of_guard(ctx, guard)
    if isinstance(host, Refusal):
        return host
    lines = _lines(guard, host, batch, await _concerning(ctx, guard, host, batch))
    if isinstance(lines, Refusal):
        return lines
    name = f"{JOURNAL}{guard_id(guard)}/{batch.journal}"
    async with ctx.locks.hold(f"{guard.tenant}/{name}"):
        seen = await ctx.store.get(GuardSeen, guard.tenant, name)
        upcoming = batch.first if seen is None else seen.seq
        lines = lines[max(0, upcoming - batch.first) :]
        if not lines:
            return max(upcoming, batch.first)
        begins = max(upcoming, batch.first)
        if batch.first > (upcoming if seen is not None else 1):
            lines = (_gap(guard, host, batch, 1 if seen is None else upcoming), *lines)
        reached = await _stored(ctx, guard, name, begins, batch.first + len(batch.lines), lines)
        if not isinstance(reached, Refusal):
            await ctx.store.seen(guard.tenant, name, reached)
        return reached


async def _stored(
    ctx: Context, guard: Principal | Claims, name: str, begins: int, upcoming: int, lines: tuple[Record, ...]
) -> int | Refusal:
    """One commit per batch. Its key names where it begins, its row where it ended: a repeat is answered with that."""

    async def plan(now: int) -> Plan[int] | Refusal:
        key = Key(
            caller=f"guard:{guard_id(guard)}",
            delegation="journal",
            key=f"{name}:{begins}",
            request="0" * 64,
            row=str(upcoming),
            until=now + KEPT,
        )
        stamped = tuple(replace(line, at=line.at or now) for line in lines)
        return Plan(Change(tenant=guard.tenant, at=now, records=stamped, key=key), upcoming)

    outcome = await settle(ctx.store, plan)
    if isinstance(outcome, Conflict):
        return Refusal(Reason.CONTENDED)
    if isinstance(outcome, Refusal):
        return outcome
    return outcome.answer if outcome.done.first is None else int(outcome.done.first)


async def _concerning(
    ctx: Context, guard: Principal | Claims, host: Host, batch: RecordBatch
) -> Mapping[str, Delegation]:
    """The delegations that lines name, as far as a token of theirs can have come to this host."""
    found: dict[str, Delegation] = {}
    for id in dict.fromkeys(str(line.get("delegation")) for line in batch.lines[:MOST]):
        row = await ctx.store.get(Delegation, guard.tenant, id)
        if row is not None and not host.tools.isdisjoint(row.envelope.tools):
            found[id] = row
    return found


def _lines(
    guard: Principal | Claims, host: Host, batch: RecordBatch, known: Mapping[str, Delegation]
) -> tuple[Record, ...] | Refusal:
    plain = batch.journal.isascii() and batch.journal.isalnum() and len(batch.journal) <= 64
    if not plain or batch.first < 0 or not 1 <= len(batch.lines) <= MOST:
        return Refusal(Reason.REQUEST_INVALID, f"A batch has a journal's id, a first number and 1 to {MOST} lines.")
    made = []
    for number, line in enumerate(batch.lines, batch.first):
        record = _record(guard, host, batch.journal, number, line, known.get(str(line.get("delegation"))))
        if record is None:
            return Refusal(Reason.REQUEST_INVALID, f"Line {number} is no record of a call.")
        made.append(record)
    return tuple(made)


def _record(
    guard: Principal | Claims, host: Host, journal: str, number: int, line: Mapping[str, Any], about: Delegation | None
) -> Record | None:
    kind, at = line.get("kind"), line.get("at")
    if not _sound(guard, line) or kind not in _KINDS or type(at) is not int or not 0 < at < 2**33:
        return None
    actor, trace = f"guard:{guard_id(guard)}", str(line.get("trace_id", ""))[:32]
    args, clear, policy = (line.get(name) for name in ("args", "clear", "policy"))
    base = Record(at=at, tenant=guard.tenant, kind=kind, actor=actor, trace_id=trace)
    facts: dict[str, Any] = {"journal": journal, "n": number}
    if about is not None:
        base = by_delegation(about, kind, actor, trace, at)
    elif any(line.get(name) is not None for name in _WHOSE):
        facts["claimed"] = {name: line.get(name) for name in _WHOSE}
    return replace(
        base,
        host=host.name,
        guard=guard_id(guard),
        tool=line.get("tool"),
        args={str(name): str(value)[:64] for name, value in args.items()} if isinstance(args, dict) else {},
        clear=dict(clear) if isinstance(clear, dict) else {},
        policy=dict(policy) if isinstance(policy, dict) else None,
        rule=line.get("rule"),
        decision=line.get("decision"),
        reason=line.get("reason"),
        detail=str(line.get("detail", ""))[:1000],
        call=line.get("call"),
        outcome=line.get("outcome"),
        facts=facts,
    )


def _sound(guard: Principal | Claims, line: Mapping[str, Any]) -> bool:
    """Plain JSON, every text a text; and a child's own token speaks for that child alone."""
    if isinstance(canonical(dict(line)), Refusal):
        return False
    texts = [line.get(name) for name in _TEXTS]
    if not all(value is None or (isinstance(value, str) and len(value) <= 300) for value in texts):
        return False
    return isinstance(guard, Principal) or line.get("delegation") in (None, guard.delegation.id)


def _gap(guard: Principal | Claims, host: Host, batch: RecordBatch, missing: int) -> Record:
    return Record(
        at=0,
        tenant=guard.tenant,
        kind=Event.JOURNAL_GAP,
        actor=f"guard:{guard_id(guard)}",
        host=host.name,
        guard=guard_id(guard),
        detail="Lines of a guard's journal never arrived: calls of its local lane are missing here.",
        facts={"journal": batch.journal, "from": missing, "to": batch.first - 1},
    )
