"""Brings journal lines to the broker in batches: those of this process, and those of processes that died."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from carnet.errors import Refused
from carnet.guard.journal import Journal
from carnet.guard.journalfile import SUFFIX, lock, read_lines

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
        for path in sorted(self._journal.folder.glob(f"*{SUFFIX}")):
            if path not in mine:
                self._adopt(path)

    def _adopt(self, path: Path) -> None:
        """A file whose writer is dead is ours as soon as we hold its lock."""
        fd = lock(path)
        if fd is None:
            return
        try:
            if self._ship(path.name.removesuffix(SUFFIX), path, None):
                path.unlink(missing_ok=True)
        finally:
            os.close(fd)

    def _ship(self, id: str, path: Path, last: int | None) -> bool:
        if id in self._rejected:
            return False
        after, offset = self._done.get(id, (0, 0))
        for first, lines, end in _batches(path, after, offset, last):
            try:
                self._send(id, first, lines)
            except Refused as refused:
                # The broker will not take these lines: keep the file for a person instead of trying for ever.
                _log.error("journal %s: the broker refused lines from %d on (%s)", path, first, refused)
                self._rejected.add(id)
                return False
            self._done[id] = (first + len(lines) - 1, end)
        return True


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
