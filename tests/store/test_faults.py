"""Killed, out of space, traced: what was acknowledged is there, and nothing was acknowledged before the disk had it."""

import asyncio
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from carnet.failpoints import NAMES, VARIABLE, Failed, Failpoints
from carnet_broker.store.base import Committed, Unavailable
from carnet_broker.store.limits import Limits
from carnet_broker.store.sqlite import SqliteStore
from tests.store.load import command, environment, spawn
from tests.store.making import TENANT, Clock, change, committed, delegation, key, record, revocation

ROUNDS = int(os.environ.get("TEST_ROUNDS", "3"))
WRITER_POINTS = ("before_tx", "after_tx_before_reply", "before_publish", "after_publish")


def lines(path: Path) -> list[str]:
    """Whole lines: the last one may be cut off by the kill."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def assert_whole(database: Path, acked: list[str]) -> None:
    """Every acknowledged change is there whole, numbers have no gap, the file is sound."""
    asyncio.run(reopen(database))
    conn = sqlite3.connect(database)
    stored = {row[0] for row in conn.execute("SELECT id FROM delegation")}
    approved = {row[0].replace("apr_", "dlg_", 1) for row in conn.execute("SELECT id FROM approval")}
    recorded = conn.execute("SELECT seq, delegation FROM record ORDER BY seq").fetchall()
    assert set(acked) <= stored
    assert stored == approved == {row[1] for row in recorded}
    assert [row[0] for row in recorded] == list(range(1, len(recorded) + 1))
    assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    conn.close()


async def reopen(database: Path) -> None:
    store = SqliteStore.open(database, limits=Limits(reserve=4096))
    assert isinstance(await store.commit(change(await store.now(), records=(record(delegation="x"),))), Committed)
    await store.close()
    conn = sqlite3.connect(database)
    conn.executescript("DROP TRIGGER record_stays; DELETE FROM record WHERE delegation = 'x'")
    conn.close()


@pytest.mark.parametrize("round", range(ROUNDS))
def test_a_kill_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, round: int) -> None:
    database, acks = tmp_path / "carnet.db", tmp_path / "acks"
    process = spawn(command(database, acks, 16, 0))
    started = time.monotonic()
    while len(lines(acks)) < 200 and process.poll() is None and time.monotonic() - started < 60:
        time.sleep(0.01)
    time.sleep(random.Random(round).random() / 5)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    acked = lines(acks)
    assert len(acked) >= 200, "too little load for the kill to mean anything"
    print(f"\nkilled after {len(acked)} acknowledged changes")
    assert_whole(database, acked)


@pytest.mark.parametrize("point", WRITER_POINTS)
def test_a_kill_at_each_failpoint_loses_nothing(tmp_path: Path, point: str) -> None:
    database, acks = tmp_path / "carnet.db", tmp_path / "acks"
    process = spawn(command(database, acks, 8, 0), **{VARIABLE: f"{point}=kill@9"})
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    acked = lines(acks)
    assert acked
    assert_whole(database, acked)


@pytest.mark.parametrize("point", ["before_tx", "after_tx_before_reply"])
@pytest.mark.anyio
async def test_after_a_lost_answer_the_key_tells_what_happened(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carnet.failpoints.hit", Failpoints.parse(f"{point}=raise@1").hit)
    store = SqliteStore.open(tmp_path / "carnet.db", limits=Limits(reserve=4096))
    given = change(await store.now(), insert=(delegation(),), key=key(until=2**33))
    with pytest.raises(Unavailable):
        await store.commit(given)
    first = (await committed(store, given)).first
    assert first == (None if point == "before_tx" else "dlg_child")
    await store.close()


def test_failpoints_act_as_they_are_told() -> None:
    points = Failpoints.parse("before_tx=raise@2, after_tx_before_reply=sleep:0.05")
    points.hit("before_tx")
    with pytest.raises(Failed, match="before_tx"):
        points.hit("before_tx")
    points.hit("before_tx")
    started = time.monotonic()
    points.hit("after_tx_before_reply")
    points.hit("before_dispatch")
    assert time.monotonic() - started >= 0.05
    assert set(WRITER_POINTS) < NAMES


@pytest.mark.parametrize(
    "text", ["nowhere=kill", "before_tx=explode", "before_tx", "before_tx=sleep", "before_tx=kill@x"]
)
def test_a_failpoint_with_a_typo_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Failpoints.parse(text)


def test_an_unset_failpoint_costs_nothing() -> None:
    script = "import carnet.failpoints as f; print(f.hit.__name__)"
    told = subprocess.run(["python3", "-c", script], env=environment(), capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "_nothing"


# --- fsyncs


def traced(tmp_path: Path, callers: int, changes: int, variant: str = "") -> tuple[list[str], int]:
    """The system calls that matter, in order, of a process that makes its changes and ends; and how many it acked."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not on PATH: fsyncs were not counted")
    log, acks = tmp_path / "strace", tmp_path / "acks"
    words = ["strace", "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync,pwrite64,write", "-o", str(log)]
    done = subprocess.run(
        [*words, *command(tmp_path / "carnet.db", acks, callers, changes, variant)],
        cwd=Path(__file__).parents[2],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("strace may not trace here: fsyncs were not counted")
    assert done.returncode == 0, done.stderr
    return log.read_text().splitlines(), len(lines(acks))


def events(log: list[str]) -> list[str]:
    """w = a write to the log of the database, s = that log synced, a = an acknowledgement."""
    found = []
    for line in log:
        if "unfinished" in line and "sync" in line:
            continue  # counted when it resumes
        if re.search(r"pwrite64\(\d+<[^>]*carnet\.db-wal>", line):
            found.append("w")
        elif "sync" in line and ("carnet.db-wal" in line or "resumed" in line):
            found.append("s")
        elif re.search(r"write\(\d+<[^>]*acks>", line):
            found.append("a")
    return found


def unsynced_acks(found: list[str]) -> int:
    """Acknowledgements that came while written frames were not synced yet (with one caller nothing else writes)."""
    dirty, wrong = False, 0
    for event in found:
        dirty = event == "w" or (dirty and event != "s")
        wrong += event == "a" and dirty
    return wrong


def test_no_change_is_acknowledged_before_the_disk_has_it(tmp_path: Path) -> None:
    log, acked = traced(tmp_path, callers=1, changes=40)
    assert acked == 40
    found = events(log)
    assert found.count("s") >= 40
    assert unsynced_acks(found) == 0


def test_synchronous_normal_is_caught_by_the_trace(tmp_path: Path) -> None:
    log, acked = traced(tmp_path, callers=1, changes=40, variant="SynchronousNormal")
    assert acked == 40
    assert unsynced_acks(events(log)) > 0


def test_32_callers_share_their_fsyncs(tmp_path: Path) -> None:
    log, acked = traced(tmp_path, callers=32, changes=20)
    syncs = events(log).count("s")
    print(f"\n{acked} acknowledged changes of 32 callers in {syncs} fsyncs")
    assert acked == 640
    assert syncs * 8 <= acked


# --- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("no right to mount a small tmpfs: the full disk was not tried")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here: the full disk was not tried")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
async def small_store(small_disk: Path, clock: Clock) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(small_disk / "carnet.db", clock=clock, limits=Limits(reserve=1024 * 1024))
    yield store
    await store.close()


async def fill(store: SqliteStore) -> int:
    """Commit until the disk is full; how many were acknowledged."""
    for acked in range(10_000):
        try:
            await committed(store, change(records=(record(detail="x" * 100_000),)))
        except Unavailable as told:
            assert "full" in str(told)  # noqa: PT017 - how many came before is the result
            return acked
    raise AssertionError("the disk never filled")


@pytest.mark.anyio
async def test_on_a_full_disk_only_revoking_goes_on(small_store: SqliteStore, small_disk: Path) -> None:
    acked = await fill(small_store)
    assert not (small_disk / "carnet.db.reserve").exists()
    for n in range(100):
        told = await committed(small_store, change(revoke=(revocation(f"dlg:{n}"),)))
        assert told.seq == n + 1
    with pytest.raises(Unavailable, match="full"):
        await small_store.commit(change())
    assert not await small_store.revoked(TENANT, ["dlg:none"])
    (problem,) = (await small_store.health()).problems
    assert "full" in problem
    assert acked > 10


@pytest.mark.anyio
async def test_a_full_disk_heals_without_a_restart(small_disk: Path, clock: Clock) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 3_500_000)
    store = SqliteStore.open(small_disk / "carnet.db", clock=clock, limits=Limits(reserve=1024 * 1024))
    acked = await fill(store)
    await committed(store, change(revoke=(revocation(),)))
    filler.unlink()
    await asyncio.sleep(0.6)
    await committed(store, change())
    assert (small_disk / "carnet.db.reserve").exists()
    assert (await store.health()).problems == ()
    await store.close()
    conn = sqlite3.connect(small_disk / "carnet.db")
    assert conn.execute("SELECT count(*), max(seq) FROM record").fetchone() == (acked + 2, acked + 2)
    assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    conn.close()


@pytest.mark.anyio
async def test_a_disk_without_room_for_the_reserve_says_so(small_disk: Path, clock: Clock) -> None:
    store = SqliteStore.open(small_disk / "carnet.db", clock=clock)
    with pytest.raises(Unavailable, match="full"):
        await store.commit(change())
    await committed(store, change(revoke=(revocation(),)))
    assert (await store.health()).problems
    await store.close()
