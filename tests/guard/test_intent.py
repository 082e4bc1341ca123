"""No tool runs without a durable record of it, whatever kills the process when."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from carnet import Guard, Refused
from carnet.guard.dispatch import Dispatch
from carnet.guard.journal import Journal
from carnet.guard.journalfile import SUFFIX, read_lines
from carnet.guard.shipper import Shipper
from carnet.reasons import Reason
from carnet.testing import CarnetBroker


def play(broker: CarnetBroker, folder: Path, tool: str, failpoint: str) -> tuple[int, int, list[str]]:
    """(exit code, what the double saw, kinds of durable records) of one process that makes one call and dies."""
    journal, double = folder / "journal", folder / "double"
    name = tool.removeprefix("a:")
    with broker.child(tools=[name]) as child:
        secret = broker.credential("desk-server")._secret
        command = [sys.executable, "-m", "tests.guard.killed_tool", broker.url, "desk-server", str(secret), "desk"]
        command += [str(journal), str(double), child.token("desk"), tool]
        environ = {**os.environ, "TEST_CARNET_FAILPOINT": failpoint}
        done = subprocess.run(command, env=environ, capture_output=True, timeout=60, check=False)
    kinds = [r["kind"] for path in journal.glob(f"*{SUFFIX}") for _, r, _ in read_lines(path)]
    kinds += [row["kind"] for row in broker.records(tool=name)]
    seen = len(double.read_text().splitlines()) if double.exists() else 0
    return done.returncode, seen, kinds


# In the broker lane the intent is the broker's commit, so the guard has no failpoint of its own behind it.
POINTS = {"before_dispatch": 0, "after_dispatch_before_outcome": 1, "after_audit_intent": 0}
BOTH_LANES = ["search", "a:search", "lookup", "a:lookup"]


@pytest.mark.parametrize(
    ("tool", "point"),
    [(t, p) for t in BOTH_LANES for p in POINTS if p != "after_audit_intent" or t.endswith("search")],
)
def test_a_kill_leaves_a_record_of_every_effect(
    carnet_broker: CarnetBroker, tmp_path: Path, tool: str, point: str
) -> None:
    code, seen, kinds = play(carnet_broker, tmp_path, tool, f"{point}=kill")
    assert code == -signal.SIGKILL
    assert seen == POINTS[point]
    assert {"call_intent", "call_decided"} & set(kinds)
    assert "call_outcome" not in kinds


def test_the_next_guard_ships_what_a_killed_one_left(carnet_broker: CarnetBroker, tmp_path: Path) -> None:
    play(carnet_broker, tmp_path, "search", "after_dispatch_before_outcome=kill")
    guard = carnet_broker.bind(Guard("desk"))
    works = guard.started()
    journal = Journal(tmp_path / "journal")
    from carnet.guard.session import Session

    Shipper(journal, Session(works.channel, works.bearer, "next").records).run()
    journal.close()
    assert [row["kind"] for row in carnet_broker.records(tool="search")] == ["call_intent"]


def test_a_full_disk_keeps_the_tool_from_running(carnet_broker: CarnetBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = carnet_broker.bind(Guard("desk"))

    @guard.tool
    def search(query: str) -> None:
        raise AssertionError("reached")

    @guard.tool(name="asearch")
    async def asearch(query: str) -> None:
        raise AssertionError("reached")

    with carnet_broker.child(tools=["search"]):
        guard.started()

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("carnet.guard.journalfile.os.write", full)
        with pytest.raises(Refused) as caught:
            search("a")
        monkeypatch.undo()
    assert caught.value.reason is Reason.NO_SINK


def test_the_suite_catches_a_guard_that_records_after_dispatch(
    carnet_broker: CarnetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deliberately broken guard gives the intent to the writer and does not wait. When the disk fails, its tool runs
    without a record, and the check of the test above sees that."""
    guard = carnet_broker.bind(Guard("desk"))
    reached: list[str] = []

    @guard.tool
    def search(query: str) -> None:
        reached.append(query)

    def careless(self: Dispatch, case: object) -> object:
        opened, line = self._lanes.local(case)  # type: ignore[arg-type]
        self._lanes.queue(line)
        return opened

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with carnet_broker.child(tools=["search"]):
        journal = guard.started().journal
        assert journal is not None
        with monkeypatch.context() as patched:
            patched.setattr(Dispatch, "_opened", careless)
            patched.setattr("carnet.guard.journalfile.os.write", full)
            search("a")
            with pytest.raises(OSError, match="No space"):
                journal.queue({}).result(5)
    records = [row for row in carnet_broker.records(tool="search") if row["kind"] == "call_intent"]
    assert (reached, records) == (["a"], [])
