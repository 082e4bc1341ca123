"""After a crash, a restore and some time: the file opens to whole commits, and what has expired is forgotten."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from carnet.audit import Record
from carnet_broker.core.rows import Approval, Delegation
from carnet_broker.store.acts import chore
from carnet_broker.store.base import Index, Unavailable, Where
from carnet_broker.store.connect import connect
from carnet_broker.store.sqlite import SqliteStore
from tests.store.conftest import SMALL
from tests.store.making import T0, TENANT, Clock, approval, change, committed, delegation, key, record, revocation

COMMITS = 12


def opened(path: Path, clock: Clock) -> SqliteStore:
    return SqliteStore.open(path, clock=clock, limits=SMALL)


async def stored(store: SqliteStore) -> tuple[list[int], int, int]:
    records = await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 100)
    delegations = await store.find(Delegation, TENANT, Where(index=Index.DELEGATIONS), None, 100)
    approvals = await store.find(Approval, TENANT, Where(index=Index.APPROVALS), None, 100)
    return [row.seq for row in records.rows], len(delegations.rows), len(approvals.rows)


@pytest.mark.parametrize("cut", [1, 7, 24, 100, 511, 1024, 2048, 4095, 4096, 4119, 4120, 6000, 9000, 20_000])
@pytest.mark.anyio
async def test_a_torn_log_opens_to_whole_commits(store: SqliteStore, tmp_path: Path, clock: Clock, cut: int) -> None:
    for n in range(COMMITS):
        await committed(store, change(insert=(delegation(f"dlg_{n}"), approval(f"apr_{n}"))))
    copy = tmp_path / "copy.db"
    shutil.copy(tmp_path / "carnet.db", copy)
    log = (tmp_path / "carnet.db-wal").read_bytes()
    copy.with_name("copy.db-wal").write_bytes(log[:-cut])
    torn = opened(copy, clock)
    seqs, delegations, approvals = await stored(torn)
    assert seqs == list(range(1, delegations + 1))
    assert delegations == approvals <= COMMITS
    assert (await committed(torn, change())).seq == 0
    assert (await stored(torn))[0] == list(range(1, delegations + 2))
    await torn.close()


@pytest.mark.anyio
async def test_a_follower_of_a_restored_copy_gets_the_snapshot(tmp_path: Path, clock: Clock) -> None:
    store = opened(tmp_path / "carnet.db", clock)
    await committed(store, change(revoke=(revocation("dlg:a"),)))
    await store.close()
    shutil.copy(tmp_path / "carnet.db", tmp_path / "backup.db")
    store = opened(tmp_path / "carnet.db", clock)
    epoch = store.epoch
    told = await committed(store, change(revoke=(revocation("dlg:b"),)))
    await store.close()
    restored = opened(tmp_path / "backup.db", clock)
    assert (await restored.changes(TENANT, epoch, told.seq, 5)).snapshot
    await restored.new_epoch()
    assert (await restored.changes(TENANT, epoch, 1, 5)).snapshot
    await restored.close()


@pytest.mark.anyio
async def test_expired_keys_are_forgotten_and_make_room(store: SqliteStore, tmp_path: Path, clock: Clock) -> None:
    await store.once(TENANT, "short", T0 + 10)
    await store.once(TENANT, "long", T0 + 1000)
    await committed(store, change(key=key("short", until=T0 + 10)))
    await committed(store, change(key=key("long", until=T0 + 1000)))
    conn = connect(tmp_path / "carnet.db", read=False)
    chore(conn, T0 + 10)
    assert conn.execute("SELECT key FROM once").fetchall() == [("long",)]
    assert conn.execute("SELECT key FROM idempotency").fetchall() == [("long",)]
    assert conn.execute("SELECT onces FROM tenant WHERE tenant = ?", (TENANT,)).fetchone() == (1,)
    assert conn.execute("SELECT high_water FROM meta").fetchone() == (T0 + 10,)
    conn.close()


@pytest.mark.anyio
async def test_chores_of_an_idle_store_write_nothing(store: SqliteStore, tmp_path: Path) -> None:
    conn = connect(tmp_path / "carnet.db", read=False)
    before = conn.execute("PRAGMA data_version").fetchone(), conn.total_changes
    chore(conn, T0 + 4)
    assert (conn.execute("PRAGMA data_version").fetchone(), conn.total_changes) == before
    conn.close()


@pytest.mark.anyio
async def test_a_migration_that_fails_leaves_nothing(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carnet_broker.store.migrate.SCHEMA", 2)
    monkeypatch.setattr("carnet_broker.store.migrate.STEPS", ("schema.sql", "schema.sql"))  # the second step must fail
    with pytest.raises(Unavailable):
        opened(tmp_path / "carnet.db", clock)
    conn = sqlite3.connect(tmp_path / "carnet.db")
    assert conn.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    assert conn.execute("PRAGMA user_version").fetchone() == (0,)
    conn.close()
    monkeypatch.undo()
    store = opened(tmp_path / "carnet.db", clock)
    await committed(store, change(records=(record(),)))
    await store.close()
