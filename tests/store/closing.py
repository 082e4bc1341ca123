"""Rounds of a store that is closed while many read it: `python -m tests.store.closing FOLDER ROUNDS`.

A process of its own, because a connection that is closed under its reader ends the process.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from carnet.audit import Record
from carnet_broker.store.base import Change, Index, Unavailable, Where
from carnet_broker.store.sqlite import SqliteStore
from tests.store.making import TENANT, committed, record

_THREADS = 4
_TASKS = 3  # in the event loop of each thread


async def _reading(store: SqliteStore, began: Callable[[], object], faults: list[BaseException]) -> None:
    """Read without end; only being told that the store is closed ends it."""
    try:
        while True:
            await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 20)
            await store.ledger(TENANT, {"run:none": 0, "pending": 0})
            await store.changes(TENANT, "", 0, 0.01)
            assert store.epoch
            began()
    except Unavailable as told:
        if "closed" not in str(told):
            faults.append(told)
    except BaseException as fault:  # noqa: BLE001 - raised below: nothing else may come of a close
        faults.append(fault)


def _thread(store: SqliteStore, began: Callable[[], object], faults: list[BaseException]) -> None:
    async def tasks() -> None:
        await asyncio.gather(*(_reading(store, began, faults) for _ in range(_TASKS)))

    asyncio.run(tasks())


def one_round(path: Path, number: int) -> None:
    """Open, read from many threads, close in the middle of it (every other round from two sides)."""
    store = SqliteStore.open(path)
    begun, faults = threading.Semaphore(0), list[BaseException]()
    threads = [threading.Thread(target=_thread, args=(store, begun.release, faults)) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for _ in range(number % (2 * _THREADS)):  # some rounds close while connections are being opened
        begun.acquire()
    closers = [threading.Thread(target=store.close_now) for _ in range(1 + number % 2)]
    for closer in closers:
        closer.start()
    for thread in closers + threads:
        thread.join(20)
        assert not thread.is_alive(), "a reader or the closer hangs"
    if faults:
        raise faults[0]


async def filled(path: Path) -> None:
    """Records enough that a page of them takes a while."""
    store = SqliteStore.open(path)
    now = await store.now()
    await committed(store, Change(tenant=TENANT, at=now, records=tuple(record(now) for _ in range(100))))
    await store.close()


def main() -> None:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    sys.setswitchinterval(1e-4)
    asyncio.run(filled(folder / "closing.db"))
    for number in range(rounds):
        one_round(folder / "closing.db", number)


if __name__ == "__main__":
    main()
