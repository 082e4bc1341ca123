"""A store that has been in use: many thousand rows, written through the store itself."""

import asyncio

from carnet.audit import Record
from carnet_broker.core.rows import FOREVER, Approval, ApprovalState, Call, CallState, Delegation
from carnet_broker.store.base import Change
from carnet_broker.store.sqlite import SqliteStore
from tests.faults.scene import TENANT
from tests.store import making

__all__ = ["ROWS", "fill"]

ROWS = 100_000
_CHILDREN = 6  # of one run, each with approval, call and two records
_WRITERS = 16


async def fill(store: SqliteStore) -> None:
    """Put ROWS rows into the store: runs with their children, approvals, calls, records and some revocations."""
    per_run = 2 + _CHILDREN * 5 + 1
    runs = -(-ROWS // per_run)
    await asyncio.gather(*(_some(store, range(first, runs, _WRITERS)) for first in range(_WRITERS)))


async def _some(store: SqliteStore, numbers: range) -> None:
    for n in numbers:
        await making.committed(store, _run(n, await store.now()))


def _run(n: int, now: int) -> Change:
    """Everything of one run in one change; its last child is revoked."""
    run = f"dlg_run{n}"
    root = _delegation(run, run, None, now)
    rows: list[Delegation | Approval | Call] = [root]
    records = [_record(now, "run_opened", run, run)]
    for m in range(_CHILDREN):
        child, call = f"dlg_{n}x{m}", f"call_{n}x{m}"
        rows += [
            _delegation(child, run, run, now),
            _approval(f"apr_{n}x{m}", child, run, now),
            _call(call, child, run, now),
        ]
        records += [_record(now, "spawned", child, run), _record(now, "call_decided", child, run, call)]
    mark = making.revocation(f"dlg:dlg_{n}x{_CHILDREN - 1}", tenant=TENANT, at=now, until=FOREVER, actor="operator:ada")
    return Change(tenant=TENANT, at=now, records=tuple(records), insert=tuple(rows), revoke=(mark,))


def _delegation(id: str, run: str, parent: str | None, now: int) -> Delegation:
    n = id.partition("_")[2]
    chain = ((run, "lead", "lead-app"),) + (((id, "writer", "lead-app"),) if parent is not None else ())
    return making.delegation(
        id,
        tenant=TENANT,
        run=run,
        parent=parent,
        chain=chain,
        depth=len(chain) - 1,
        agent=chain[-1][1],
        client="lead-app",
        envelope=making.envelope(tenant=TENANT),
        approval=None if parent is None else f"apr_{n}",
        created_at=now,
        live_until=now + 3600,
    )


def _approval(id: str, delegation: str, run: str, now: int) -> Approval:
    return making.approval(
        id,
        tenant=TENANT,
        run=run,
        delegation=delegation,
        subject=delegation,
        state=ApprovalState.APPROVED,
        answered_at=now,
        answered_by="policy:faults@1",
        deadline=now,
        created_at=now,
        due=None,
    )


def _call(id: str, delegation: str, run: str, now: int) -> Call:
    return making.call(
        id,
        tenant=TENANT,
        run=run,
        delegation=delegation,
        client="lead-app",
        guard="desk-server",
        host="desk",
        tool="tag",
        state=CallState.DONE,
        at=now,
    )


def _record(now: int, kind: str, delegation: str, run: str, call: str | None = None) -> Record:
    return making.record(now, tenant=TENANT, kind=kind, run=run, delegation=delegation, call=call)
