"""A process that commits as fast as it can and says what was acknowledged: what the fault tests kill, trace and starve.

python -m tests.store.load DATABASE ACKS CALLERS CHANGES [VARIANT]; 0 changes = until killed. VARIANT is a class of
tests.store.broken. Each acknowledged id is one line in the file ACKS, written only after the commit was answered.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from carnet_broker.store.base import Change, Committed, Unavailable
from carnet_broker.store.limits import Limits
from carnet_broker.store.sqlite import SqliteStore
from tests.store import broken
from tests.store.making import TENANT, approval, delegation, key, record

ROOT = Path(__file__).parents[2]


async def caller(store: SqliteStore, acks: int, name: str, changes: int) -> None:
    for n in range(changes) if changes else count():
        now, id = await store.now(), f"dlg_{name}_{n}"
        given = Change(
            tenant=TENANT,
            at=now,
            records=(record(now, delegation=id),),
            insert=(delegation(id, run=f"dlg_{name}", created_at=now), approval(f"apr_{name}_{n}", run=f"dlg_{name}")),
            key=key(id, row=id, until=now + 900),
            alive=frozenset({(f"dlg:{id}", None), ("agent:clerk", None), ("tenant:acme", None)}),
            ledger=((f"run:dlg_{name}", n),),
        )
        try:
            told = await store.commit(given)
        except Unavailable:
            return
        assert isinstance(told, Committed), told
        os.write(acks, f"{id}\n".encode())


async def load(database: Path, acks: int, callers: int, changes: int, variant: type[SqliteStore]) -> None:
    store = variant.open(database, lock=False, limits=Limits(reserve=4096))
    name = os.getpid()
    await asyncio.gather(*(caller(store, acks, f"{name}_{n}", changes) for n in range(callers)))
    await store.close()


def command(database: Path, acks: Path, callers: int, changes: int, variant: str = "") -> list[str]:
    """How to start this program."""
    words: Sequence[object] = (database, acks, callers, changes, *([variant] if variant else []))
    return [sys.executable, "-m", "tests.store.load", *map(str, words)]


def environment(**more: str) -> dict[str, str]:
    paths = ("broker", "policy", "clients/python", ".")
    return os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / path) for path in paths)} | more


def spawn(words: list[str], **more: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(words, cwd=ROOT, env=environment(**more), stderr=subprocess.PIPE)


def main(words: list[str]) -> None:
    database, acks, callers, changes = words[:4]
    variant = getattr(broken, words[4]) if words[4:] else SqliteStore
    fd = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    asyncio.run(load(Path(database), fd, int(callers), int(changes), variant))


if __name__ == "__main__":
    main(sys.argv[1:])
