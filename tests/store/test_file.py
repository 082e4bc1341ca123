"""The file itself: who may read it, who holds it, what opens, what it forbids."""

import os
import sqlite3
import time
from pathlib import Path

import pytest

from carnet.audit import Record
from carnet.errors import ConfigError
from carnet_broker.core.rows import Delegation
from carnet_broker.store.base import Index, Unavailable, Where
from carnet_broker.store.codec import Corrupt, encode
from carnet_broker.store.connect import BUSY_MILLISECONDS, connect
from carnet_broker.store.migrate import SCHEMA
from carnet_broker.store.open import open_store
from carnet_broker.store.sqlite import SqliteStore
from tests.store.conftest import SMALL
from tests.store.making import (
    T0,
    TENANT,
    Clock,
    approval,
    call,
    change,
    committed,
    delegation,
    record,
    revocation,
)


def opened(path: Path, clock: Clock) -> SqliteStore:
    return SqliteStore.open(path, clock=clock, limits=SMALL)


async def filled(path: Path, clock: Clock) -> None:
    store = opened(path, clock)
    await committed(store, change(insert=(delegation(), approval(), call()), revoke=(revocation(),)))
    await store.close()


@pytest.mark.anyio
async def test_every_file_is_the_owners_alone(store: SqliteStore, tmp_path: Path) -> None:
    await committed(store, change())
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(modes) >= {"carnet.db", "carnet.db-wal", "carnet.db-shm", "carnet.db.lock", "carnet.db.reserve"}
    assert set(modes.values()) == {0o600}


@pytest.mark.anyio
async def test_a_readable_file_is_tightened(tmp_path: Path, clock: Clock) -> None:
    await filled(tmp_path / "carnet.db", clock)
    (tmp_path / "carnet.db").chmod(0o644)
    await opened(tmp_path / "carnet.db", clock).close()
    assert (tmp_path / "carnet.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.anyio
async def test_one_process_holds_the_file(store: SqliteStore, tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(Unavailable, match=f"pid {os.getpid()}"):
        opened(tmp_path / "carnet.db", clock)
    await store.close()
    await opened(tmp_path / "carnet.db", clock).close()


@pytest.mark.anyio
async def test_what_was_committed_is_there_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    await filled(tmp_path / "carnet.db", clock)
    assert not (tmp_path / "carnet.db-wal").exists()
    store = opened(tmp_path / "carnet.db", clock)
    assert await store.get(Delegation, TENANT, "dlg_child") is not None
    assert (await committed(store, change())).seq == 1
    await store.close()


@pytest.mark.anyio
async def test_the_clocks_mark_outlives_the_process(tmp_path: Path, clock: Clock) -> None:
    clock.now = T0 + 1000
    store = opened(tmp_path / "carnet.db", clock)
    await committed(store, change(clock.now))
    await store.close()
    clock.now = T0
    store = opened(tmp_path / "carnet.db", clock)
    assert await store.now() == T0 + 1000
    await store.close()


@pytest.mark.anyio
async def test_a_new_epoch_lasts_and_wakes_followers(tmp_path: Path, clock: Clock) -> None:
    store = opened(tmp_path / "carnet.db", clock)
    old = store.epoch
    new = await store.new_epoch()
    assert new != old
    assert store.epoch == new
    assert (await store.changes(TENANT, old, 0, 5)).snapshot
    await store.close()
    store = opened(tmp_path / "carnet.db", clock)
    assert store.epoch == new
    await store.close()


@pytest.mark.anyio
async def test_a_newer_schema_does_not_open(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "carnet.db"
    await filled(path, clock)
    conn = sqlite3.connect(path)
    conn.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    conn.close()
    with pytest.raises(ConfigError, match="newer Carnet"):
        opened(path, clock)


def test_another_sqlite_file_does_not_open(tmp_path: Path, clock: Clock) -> None:
    conn = sqlite3.connect(tmp_path / "other.db")
    conn.execute("CREATE TABLE x (y)")
    conn.close()
    with pytest.raises(ConfigError, match="not a Carnet store"):
        opened(tmp_path / "other.db", clock)


def test_garbage_does_not_open(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "carnet.db").write_bytes(b"garbage" * 1000)
    with pytest.raises(ConfigError, match="damaged or no store"):
        opened(tmp_path / "carnet.db", clock)


def test_a_missing_folder_is_named(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        opened(tmp_path / "none" / "carnet.db", clock)


@pytest.mark.parametrize("url", ["redis://:secret@host", "sqlite://", "sqlite:///", "carnet.db", "", "sqlite:///a?b"])
def test_an_unknown_address_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError, match="sqlite:///path") as told:
        open_store(url)
    assert "secret" not in str(told.value)


@pytest.mark.anyio
async def test_an_address_opens_the_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/carnet.db")
    assert (await store.health()).problems == ()
    await store.close()
    assert (tmp_path / "carnet.db.reserve").stat().st_size == 16 * 1024 * 1024


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.anyio
async def test_every_connection_has_the_safe_settings(tmp_path: Path, clock: Clock, read: bool) -> None:
    await filled(tmp_path / "carnet.db", clock)
    conn = connect(tmp_path / "carnet.db", read=read)
    found = {
        name: conn.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "foreign_keys", "trusted_schema", "cell_size_check", "secure_delete")
    }
    safe = {"synchronous": 2, "foreign_keys": 1, "trusted_schema": 0, "cell_size_check": 1, "secure_delete": 1}
    assert found == safe
    assert conn.execute("PRAGMA busy_timeout").fetchone()[0] == BUSY_MILLISECONDS == 2000
    assert conn.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert conn.execute("PRAGMA query_only").fetchone()[0] == int(read)
    conn.close()


FORBIDDEN = {
    "append-only": (
        "UPDATE record SET body = x'7b7d'",
        "UPDATE record SET seq = 9",
        "DELETE FROM record",
        "DELETE FROM checkpoint WHERE seq = (SELECT min(seq) FROM record)",
        "UPDATE feed SET until = 0",
    ),
    "set once": ("UPDATE record SET link = NULL",),
    "never taken back": ("DELETE FROM revocation", "UPDATE revocation SET until = 0, seq = 9"),
    "never updated": ("UPDATE delegation SET live_until = 0",),
    "CHECK": ("UPDATE call SET state = 'allowed', version = version + 1",),
    "one version": ("UPDATE approval SET state = 'approved'",),
    "cannot store TEXT": ("UPDATE tenant SET feed = 'x'",),
}


@pytest.mark.anyio
async def test_the_file_forbids_what_no_code_may_do(tmp_path: Path, clock: Clock) -> None:
    await filled(tmp_path / "carnet.db", clock)
    conn = sqlite3.connect(tmp_path / "carnet.db", isolation_level=None)
    conn.execute("UPDATE record SET link = ?", ("a" * 64,))
    conn.execute("INSERT INTO checkpoint VALUES ('acme', 1, ?, 1, 'x')", ("a" * 64,))
    for sentence, statements in FORBIDDEN.items():
        for statement in statements:
            with pytest.raises(sqlite3.IntegrityError, match=sentence):
                conn.execute(statement)
    conn.close()


@pytest.mark.anyio
async def test_a_damaged_row_is_an_error_and_not_a_default(tmp_path: Path, clock: Clock) -> None:
    await filled(tmp_path / "carnet.db", clock)
    conn = sqlite3.connect(tmp_path / "carnet.db", isolation_level=None)
    conn.execute("DROP TRIGGER delegation_is_fixed")
    conn.execute("UPDATE delegation SET body = x'7b7d'")
    conn.close()
    store = opened(tmp_path / "carnet.db", clock)
    with pytest.raises(Corrupt):
        await store.get(Delegation, TENANT, "dlg_child")
    with pytest.raises(Corrupt):
        await store.find(Delegation, TENANT, Where(index=Index.DELEGATIONS), None, 9)
    await store.close()


@pytest.mark.anyio
async def test_a_large_file_opens_in_under_a_second(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "carnet.db"
    await filled(path, clock)
    conn = sqlite3.connect(path)
    body = encode(record())
    rows = ((TENANT, n, T0, "dlg_run", f"dlg_{n}", None, body) for n in range(2, 100_002))
    conn.executemany(
        "INSERT INTO record (tenant, seq, at, run, delegation, trace, body) VALUES (?, ?, ?, ?, ?, ?, ?)", rows
    )
    conn.execute("UPDATE tenant SET record = 100001")
    conn.commit()
    conn.close()
    started = time.monotonic()
    store = opened(path, clock)
    assert time.monotonic() - started < 1
    late = Where(index=Index.RECORDS, since=T0)
    assert len((await store.find(Record, TENANT, late, None, 10)).rows) == 10
    await store.close()


@pytest.mark.anyio
async def test_a_closed_store_says_so(tmp_path: Path, clock: Clock) -> None:
    store = opened(tmp_path / "carnet.db", clock)
    await store.close()
    await store.close()
    with pytest.raises(Unavailable, match="closed"):
        await store.commit(change())
    with pytest.raises(Unavailable, match="closed"):
        await store.get(Delegation, TENANT, "x")


@pytest.mark.anyio
async def test_a_forked_child_does_not_use_its_parents_store(store: SqliteStore) -> None:
    await store.get(Delegation, TENANT, "x")
    pid = os.fork()
    if pid == 0:
        try:
            store.epoch  # noqa: B018 - the read is the test
        except Unavailable:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
