"""Races between processes: each opens the store for itself and all start together."""

import asyncio
import multiprocessing
import os
from collections import Counter
from pathlib import Path

from carnet_broker.core.rows import Approval, ApprovalState
from carnet_broker.store.base import Change, Committed, Unavailable
from carnet_broker.store.limits import Limits
from carnet_broker.store.sqlite import SqliteStore
from tests.store.making import TENANT, approval, record, step

LIMITS = Limits(reserve=4096)


def consume_in_processes(variant: type[SqliteStore], database: Path, approvals: int, processes: int) -> Counter[str]:
    """`processes` processes try to spend each of the approvals: how often it was won, lost, unavailable, wrong."""
    asyncio.run(_prepare(database, approvals))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        found = pool.starmap(_consume, [(variant, str(database), approvals, processes)] * processes, chunksize=1)
    return sum(found, Counter())


async def _prepare(database: Path, approvals: int) -> None:
    store = SqliteStore.open(database, lock=False, limits=LIMITS)
    now = await store.now()
    rows = tuple(approval(f"apr_{n}", state=ApprovalState.APPROVED) for n in range(approvals))
    await store.commit(Change(tenant=TENANT, at=now, records=(record(now),), insert=rows))
    await store.close()


def _consume(variant: type[SqliteStore], database: str, approvals: int, processes: int) -> Counter[str]:
    return asyncio.run(_consume_all(variant, Path(database), approvals, processes))


async def _consume_all(variant: type[SqliteStore], database: Path, approvals: int, processes: int) -> Counter[str]:
    store = variant.open(database, lock=False, limits=LIMITS)
    seen: Counter[str] = Counter()
    (database.parent / f"ready.{os.getpid()}").touch()
    while len(list(database.parent.glob("ready.*"))) < processes:
        await asyncio.sleep(0.001)
    for n in range(approvals):
        seen[await _spend(store, f"apr_{n}")] += 1
    await store.close()
    return seen


async def _spend(store: SqliteStore, id: str) -> str:
    row = await store.get(Approval, TENANT, id)
    if row is None or row.state is not ApprovalState.APPROVED:
        return "late"
    now = await store.now()
    given = Change(tenant=TENANT, at=now, records=(record(now),), moves=(step(row, ApprovalState.SPENT),))
    try:
        return "won" if isinstance(await store.commit(given), Committed) else "lost"
    except Unavailable:
        return "unavailable"
    except ValueError:
        return "refused by the file"
