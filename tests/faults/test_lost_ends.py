"""How the calls of a dead guard ended nobody can say any more, so the next one says just that, once."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from carnet.errors import Unavailable
from carnet.guard.journal import Journal
from carnet.guard.journalfile import JournalFile
from carnet.guard.shipper import Shipper

OPENED = {"kind": "call_intent", "decision": "allow", "at": 100}


class Received:
    """Takes batches as a broker does, each number once; can be away at the n-th batch."""

    def __init__(self, away_at: int = 0) -> None:
        self.lines: dict[str, list[Mapping[str, Any]]] = {}
        self._batches, self._away_at = 0, away_at

    def take(self, journal: str, first: int, lines: list[Mapping[str, Any]]) -> int:
        self._batches += 1
        if self._batches == self._away_at:
            raise Unavailable("the broker is away")
        held = self.lines.setdefault(journal, [])
        assert first <= len(held) + 1
        held.extend(lines[len(held) + 1 - first :])
        return len(held) + 1

    def ends(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in (line for lines in self.lines.values() for line in lines if line["kind"] == "call_outcome"):
            found.setdefault(line["call"], []).append(line["outcome"])
        return found


def dead_file(folder: Path, id: str, age: int, *lines: Mapping[str, Any]) -> Path:
    """The file of a process that is gone."""
    folder.mkdir(exist_ok=True)
    file = JournalFile(folder, id)
    file.write(lines)
    file.close()
    os.utime(file.path, (1_000_000 - age, 1_000_000 - age))
    return file.path


def opened(call: str) -> Mapping[str, Any]:
    return OPENED | {"call": call}


def done(call: str) -> Mapping[str, Any]:
    return {"kind": "call_outcome", "call": call, "at": 101, "outcome": "done", "detail": ""}


def test_only_calls_without_an_outcome_end_as_unknown(tmp_path: Path) -> None:
    path, received = dead_file(tmp_path, "a", 0, opened("1"), opened("2"), done("1")), Received()
    Shipper(Journal(tmp_path), received.take).run()
    assert received.ends() == {"1": ["done"], "2": ["unknown"]}
    assert received.lines["a"][-1]["at"] == 100
    assert not path.exists()


def test_an_outcome_in_the_next_file_of_the_dead_process_counts(tmp_path: Path) -> None:
    received = Received()
    dead_file(tmp_path, "z", 5, opened("1"), opened("2"))
    dead_file(tmp_path, "a", 0, done("1"), opened("3"), done("3"))
    Shipper(Journal(tmp_path), received.take).run()
    assert received.ends() == {"1": ["done"], "2": ["unknown"], "3": ["done"]}
    assert not list(tmp_path.glob("*.journal"))


def test_what_a_broker_did_not_hear_is_said_again_and_counts_once(tmp_path: Path) -> None:
    for away_at in (1, 2, 3):
        folder = tmp_path / str(away_at)
        received = Received(away_at)
        path = dead_file(folder, "a", 0, opened("1"), opened("2"), done("2"))
        for _ in range(3):  # another guard each time: the one before was killed with what it remembered
            try:
                Shipper(Journal(folder), received.take).run()
            except Unavailable:
                assert path.exists()
        assert received.ends() == {"1": ["unknown"], "2": ["done"]}
        assert not path.exists()


def test_a_torn_tail_is_no_record_and_leaves_its_number_to_the_end_of_the_call(tmp_path: Path) -> None:
    path, received = dead_file(tmp_path, "a", 0, opened("1"), opened("2")), Received()
    path.write_bytes(path.read_bytes()[:-3])
    Shipper(Journal(tmp_path), received.take).run()
    assert received.ends() == {"1": ["unknown"]}
    assert [line["kind"] for line in received.lines["a"]] == ["call_intent", "call_outcome"]
