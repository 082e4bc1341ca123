"""The journal: durable before it answers, contiguous, whole after a kill, shipped by whoever comes next."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from carnet.errors import Refused, Unavailable
from carnet.guard.journal import Journal
from carnet.guard.journalfile import SUFFIX, JournalFile, lock, read_lines
from carnet.guard.shipper import Shipper
from carnet.reasons import Reason


class Broker:
    """Takes batches as the broker does: numbers per journal."""

    def __init__(self) -> None:
        self.lines: dict[str, dict[int, Mapping[str, Any]]] = {}
        self.down = False
        self.refuses = False

    def take(self, journal: str, first: int, lines: list[Mapping[str, Any]]) -> int:
        if self.down:
            raise Unavailable("down")
        if self.refuses:
            raise Refused(Reason.REQUEST_INVALID)
        held = self.lines.setdefault(journal, {})
        held.update(enumerate(lines, first))
        return first + len(lines)

    @property
    def numbers(self) -> list[list[int]]:
        return [sorted(held) for held in self.lines.values()]


def in_process(code: str, *args: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *args], stdout=subprocess.PIPE)


WRITER = """
import sys
from pathlib import Path
from carnet.guard.journal import Journal
journal = Journal(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    journal.write({"n": number, "text": "x" * 200})
    print(number, flush=True)
"""


def killed_writer(folder: Path) -> int:
    """The number of the last line that a killed process was told is durable."""
    process = in_process(WRITER, str(folder))
    assert process.stdout is not None
    told = 0
    until = time.monotonic() + 10
    while told < 20 and time.monotonic() < until:
        told = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read().split()
    process.stdout.close()
    process.wait()
    return int(rest[-1]) if rest else told


def test_lines_are_numbered_from_one_and_come_back_as_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    for number in range(5):
        journal.write({"n": number, "text": "é\u2028\n"})
    ((_, path, last),) = journal.files()
    assert last == 5
    assert [(n, r["n"]) for n, r, _ in read_lines(path)] == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert oct(path.stat().st_mode)[-3:] == "600"
    assert oct(path.parent.stat().st_mode)[-3:] == "700"
    journal.close()


def test_nothing_acknowledged_is_lost_by_a_kill_and_the_next_guard_ships_it(tmp_path: Path) -> None:
    told = killed_writer(tmp_path)
    broker = Broker()
    journal = Journal(tmp_path)
    Shipper(journal, broker.take).run()
    journal.close()
    ((*numbers,),) = broker.numbers
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= told
    assert not list(tmp_path.glob(f"*{SUFFIX}"))


@pytest.mark.parametrize("cut", [1, 7, 30, 100])
def test_a_torn_tail_is_dropped(tmp_path: Path, cut: int) -> None:
    file = JournalFile(tmp_path, "torn")
    file.write([{"n": n, "text": "x" * 100} for n in range(3)])
    file.close()
    os.truncate(file.path, file.path.stat().st_size - cut)
    assert [n for n, _, _ in read_lines(file.path)] == [1, 2]


def test_a_damaged_line_leaves_a_gap_in_the_numbers(tmp_path: Path) -> None:
    file = JournalFile(tmp_path, "damaged")
    file.write([{"n": n, "text": "x" * 100} for n in range(5)])
    file.close()
    raw = bytearray(file.path.read_bytes())
    raw[raw.index(b'"n":2') + 4] ^= 1
    file.path.write_bytes(raw)
    broker = Broker()
    journal = Journal(tmp_path)
    Shipper(journal, broker.take).run()
    journal.close()
    assert broker.numbers == [[1, 2, 4, 5]]


def test_the_file_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    one, other = Journal(tmp_path), Journal(tmp_path)
    one.write({"from": "one"})
    other.write({"from": "other"})
    broker = Broker()
    Shipper(other, broker.take).run()
    assert [held[1]["from"] for held in broker.lines.values()] == ["other"]
    one.close()
    Shipper(other, broker.take).run()
    assert sorted(held[1]["from"] for held in broker.lines.values()) == ["one", "other"]
    other.close()


def test_a_forked_child_writes_its_own_file_and_frees_no_lock(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write({"from": "parent"})
    ((_, path, _),) = journal.files()
    child = os.fork()
    if child == 0:
        journal.forked()
        journal.write({"from": "child"})
        os._exit(0)
    os.waitpid(child, 0)
    assert lock(path) is None
    journal.write({"from": "parent"})
    broker = Broker()
    Shipper(journal, broker.take).run()
    assert sorted([line["from"] for line in held.values()] for held in broker.lines.values()) == [
        ["child"],
        ["parent", "parent"],
    ]
    journal.close()


def test_lines_are_shipped_once_while_the_file_grows(tmp_path: Path) -> None:
    broker, journal = Broker(), Journal(tmp_path)
    shipper = Shipper(journal, broker.take)
    for done in [journal.queue({"text": "x" * 20}) for _ in range(450)]:
        done.result(5)
    journal.write({"last": True})
    shipper.run()
    before = sum(map(len, broker.numbers))
    journal.write({"later": True})
    shipper.run()
    assert (before, sum(map(len, broker.numbers))) == (451, 452)
    journal.close()


def test_an_absent_broker_loses_nothing(tmp_path: Path) -> None:
    broker, journal = Broker(), Journal(tmp_path)
    shipper = Shipper(journal, broker.take)
    journal.write({"n": 1})
    broker.down = True
    with pytest.raises(Unavailable):
        shipper.run()
    broker.down = False
    shipper.run()
    assert broker.numbers == [[1]]
    journal.close()


def test_refused_lines_are_kept_for_a_person_and_block_nothing(tmp_path: Path) -> None:
    old = JournalFile(tmp_path, "old")
    old.write([{"n": 1}])
    old.close()
    broker, journal = Broker(), Journal(tmp_path)
    broker.refuses = True
    shipper = Shipper(journal, broker.take)
    shipper.run()
    broker.refuses = False
    journal.write({"n": 2})
    shipper.run()
    assert old.path.exists()
    assert len(broker.lines) == 1
    journal.close()


def test_many_callers_share_syncs_and_get_distinct_numbers(tmp_path: Path) -> None:
    journal = Journal(tmp_path)

    def work() -> None:
        for _ in range(20):
            journal.write({"x": 1})

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((_, path, last),) = journal.files()
    assert last == 320
    assert [n for n, _, _ in read_lines(path)] == list(range(1, 321))
    journal.close()


def test_a_disk_that_fails_ends_the_file_and_a_new_one_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path)
    journal.write({"n": 1})
    real = os.fdatasync

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", broken)
    with pytest.raises(OSError, match="Input/output"):
        journal.write({"n": 2})
    with pytest.raises(OSError, match="Input/output"):
        journal.queue({"n": 3}).result(5)
    monkeypatch.setattr(os, "fdatasync", real)
    journal.write({"n": 4})
    assert journal.files()[-1][2] == 1
    journal.close()


def test_a_guard_leaves_the_files_of_another_client_alone(tmp_path: Path) -> None:
    dead = Journal(tmp_path, "desk")
    dead.write({"from": "desk"})
    dead.close()
    broker, other = Broker(), Journal(tmp_path, "books")
    Shipper(other, broker.take).run()
    assert not broker.lines
    Shipper(Journal(tmp_path, "desk"), broker.take).run()
    assert len(broker.lines) == 1
