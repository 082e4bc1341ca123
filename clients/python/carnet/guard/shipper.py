"""Brings journal lines to the broker in batches: those of this process, and those of processes that died.

A dead process says no more how its last calls ended, so whoever ships its file says that this is unknown.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from carnet.audit import Kind
from carnet.errors import Refused
from carnet.guard.journal import Journal
from carnet.guard.journalfile import SUFFIX, lock, read_lines
from carnet.guard.records import ended

__all__ = ["Shipper"]

_BATCH = 200  # lines; a batch stays under the broker's 1 MiB
_BATCH_BYTES = 700_000
_log = logging.getLogger("carnet.guard")

Send = Callable[[str, int, list[Mapping[str, Any]]], int]  # (journal, number of the first line, lines) -> next number


class Shipper:
    """Not thread-safe: one thread of the guard calls it. send: raises Unavailable or Refused."""

    def __init__(self, journal: Journal, send: Send) -> None:
        self._journal = journal
        self._send = send
        self._rejected: set[str] = set()
        self._done: dict[str, tuple[int, int]] = {}  # file id -> (last number with the broker, offset behind it)

    def run(self) -> None:
        """Ship everything that there is now. Raises Unavailable when the broker can't be asked; a later run goes on."""
        for id, path, last in self._journal.files():
            if self._ship(id, path, last):
                self._journal.shipped(id)
        mine = {path for _, path, _ in self._journal.files()}
        with ExitStack() as held:
            self._adopt(_taken(self._journal, mine, held))

    def _adopt(self, paths: Sequence[Path]) -> None:
        """Ship whole files of dead processes, oldest first, and remove them."""
        shipped = [path for path in paths if self._ship(path.name.removesuffix(SUFFIX), path, None)]
        known = {str(line.get("call")) for path in paths for _, line, _ in read_lines(path) if _is_outcome(line)}
        for path in shipped:
            if self._end(path, known):
                path.unlink(missing_ok=True)

    def _end(self, path: Path, known: set[str]) -> bool:
        """Call the end of each call without an outcome unknown, in the same lines each time: a repeat is dropped."""
        last = 0
        lines: list[Mapping[str, Any]] = []
        for last, line, _ in read_lines(path):  # noqa: B007 - the last number is wanted
            if line.get("kind") == Kind.CALL_INTENT and line.get("call") not in known:
                lines.append(ended(str(line["call"]), int(line["at"]), "unknown", "the guard's process ended"))
        id = path.name.removesuffix(SUFFIX)
        parts = range(0, len(lines), _BATCH)
        return all(self._sent(id, path, last + 1 + part, lines[part : part + _BATCH]) for part in parts)

    def _ship(self, id: str, path: Path, last: int | None) -> bool:
        if id in self._rejected:
            return False
        after, offset = self._done.get(id, (0, 0))
        for first, lines, end in _batches(path, after, offset, last):
            if not self._sent(id, path, first, lines):
                return False
            self._done[id] = (first + len(lines) - 1, end)
        return True

    def _sent(self, id: str, path: Path, first: int, lines: list[Mapping[str, Any]]) -> bool:
        """Whether the broker has them all. It may have stored a part before, and then says where to go on."""
        try:
            while lines:
                upcoming = self._send(id, first, lines)
                if upcoming <= first:
                    _log.error("journal %s: the broker took none of the lines from %d on; they stay", path, first)
                    return False
                first, lines = upcoming, lines[upcoming - first :]
        except Refused as refused:
            # The broker will not take these lines: keep the file for a person instead of trying for ever.
            _log.error("journal %s: the broker refused lines from %d on (%s)", path, first, refused)
            self._rejected.add(id)
            return False
        return True


def _taken(journal: Journal, mine: set[Path], held: ExitStack) -> list[Path]:
    """Files whose writers are dead, locked until `held` ends; a process's older file before its later one."""
    ages = {}
    for path in journal.folder.glob(f"{journal.owner}*{SUFFIX}"):
        fd = None if path in mine else lock(path)
        if fd is not None:
            held.callback(os.close, fd)
            ages[path] = (os.fstat(fd).st_mtime_ns, path)
    return sorted(ages, key=ages.__getitem__)


def _is_outcome(line: Mapping[str, Any]) -> bool:
    return line.get("kind") == Kind.CALL_OUTCOME


def _batches(
    path: Path, after: int, offset: int, last: int | None
) -> Iterator[tuple[int, list[Mapping[str, Any]], int]]:
    """Runs of contiguous lines: a damaged line ends a batch, so its number is missing and the broker sees the gap."""
    lines: list[Mapping[str, Any]] = []
    first, begun, end = after + 1, offset, offset
    for number, record, behind in read_lines(path, after, offset):
        if last is not None and number > last:
            break
        full = len(lines) >= _BATCH or end - begun > _BATCH_BYTES
        if lines and (full or number != first + len(lines)):
            yield first, lines, end
            lines = []
        if not lines:
            first, begun = number, end
        lines.append(record)
        end = behind
    if lines:
        yield first, lines, end
