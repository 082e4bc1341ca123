"""A journal folder that others may write to: what they put there is nobody's record, and stops nothing."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from carnet.guard.journal import Journal
from carnet.guard.journalfile import encode_line, read_lines
from carnet.guard.shipper import Shipper

OWNER = "own"
Sent = list[Mapping[str, Any]]


def ship(folder: Path) -> Sent:
    """What a new guard ships of this folder, within two seconds."""
    sent: Sent = []

    def send(_journal: str, first: int, lines: list[Mapping[str, Any]]) -> int:
        sent.extend(lines)
        return first + len(lines)

    journal = Journal(folder, OWNER)
    work = threading.Thread(target=Shipper(journal, send).run, daemon=True)
    work.start()
    work.join(2.0)
    assert not work.is_alive(), "the shipper hangs"
    journal.close()
    return sent


def put(folder: Path, name: str, records: int = 1) -> Path:
    path = folder / f"{OWNER}{name}.journal"
    lines = (encode_line(1 + number, {"kind": "call_decided", "call": f"call_{name}"}) for number in range(records))
    path.write_bytes(b"".join(lines))
    path.chmod(0o600)
    return path


def calls(sent: Sent) -> set[str]:
    return {str(line["call"]) for line in sent}


def test_a_pipe_does_not_stop_the_shipping(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{OWNER}a.journal")
    put(tmp_path, "b")
    assert calls(ship(tmp_path)) == {"call_b"}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    target = put(away, "secret")
    folder = tmp_path / "journal"
    folder.mkdir()
    (folder / f"{OWNER}a.journal").symlink_to(target)
    (folder / f"{OWNER}d.journal").symlink_to("/dev/zero")
    put(folder, "b")
    assert calls(ship(folder)) == {"call_b"}
    assert target.exists()


def test_a_folder_of_that_name_is_passed_by(tmp_path: Path) -> None:
    (tmp_path / f"{OWNER}a.journal").mkdir()
    put(tmp_path, "b")
    assert calls(ship(tmp_path)) == {"call_b"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_another_user_is_not_shipped_and_stays(tmp_path: Path) -> None:
    foreign = put(tmp_path, "a")
    os.chown(foreign, 65534, 65534)
    put(tmp_path, "b")
    assert calls(ship(tmp_path)) == {"call_b"}
    assert foreign.exists()


def test_a_line_without_end_is_read_in_pieces_and_is_no_record(tmp_path: Path) -> None:
    path = put(tmp_path, "a")
    with path.open("ab") as file:
        file.write(b"2 00000000 " + b"[" * 5_000_000 + b"\n")
        file.write(encode_line(3, {"kind": "call_decided", "call": "call_after"}))
    assert [number for number, _, _ in read_lines(path)] == [1, 3]
    assert calls(ship(tmp_path)) == {"call_a", "call_after"}


def test_a_nest_with_a_good_checksum_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / f"{OWNER}a.journal"
    path.write_bytes(
        encode_line(1, '{"a":' * 100_000) + encode_line(2, '{"n":' + "9" * 5000 + "}") + b"9" * 5000 + b" 00000000 {}\n"
    )
    put(tmp_path, "b")
    assert calls(ship(tmp_path)) == {"call_b"}
