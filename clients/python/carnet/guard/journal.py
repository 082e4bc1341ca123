"""The local lane's sink: a record is on the disk before the tool runs, or the tool does not run.

A few callers write and sync by themselves, which is quickest; many are gathered by one writer thread into one sync. Any
fault of the disk ends the file: what a failed sync left behind can't be trusted, so a new file is begun.
"""

import secrets
import threading
from collections.abc import Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

from carnet.errors import ConfigError
from carnet.guard.journalfile import JournalFile

__all__ = ["Journal"]

Record = Mapping[str, Any] | str  # a text is the JSON of one
_CROWD = 8  # callers at once from which gathering pays
_FULL = 16 * 1024 * 1024  # bytes after which a new file is begun
_GATHER = 512  # records per sync


class Journal:
    """folder: made (0700) if it is missing; shared by processes, each of which writes its own file. owner: letters and
    digits that name files of one client, for a guard must not ship what another client's guard recorded."""

    def __init__(self, folder: Path, owner: str = "") -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as fault:
            raise ConfigError(f"the journal folder {folder} can't be made: {fault.strerror}") from None
        self.folder, self.owner = folder, owner
        self._reset()

    def _reset(self) -> None:
        self._writing = threading.Lock()
        self._queue: list[tuple[Record, Future[None]]] = []
        self._queued = threading.Condition(threading.Lock())
        self._written: Future[None] | None = None  # the last of those that the writer thread took
        self._callers = 0
        self._thread: threading.Thread | None = None
        self._file: JournalFile | None = None
        self._closed = False
        self._left: list[JournalFile] = []  # full or broken files, held until they are shipped

    def write(self, record: Record) -> None:
        """Return once the record is on the disk. Raises OSError when it is not: then nothing may run."""
        with self._queued:
            self._callers += 1
            crowded = self._callers > _CROWD
        try:
            if crowded:
                self.queue(record).result()
            else:
                self._store([record])
        finally:
            with self._queued:
                self._callers -= 1

    def queue(self, record: Record) -> "Future[None]":
        """Give the record to the writer thread; the future is done when it is on the disk, or fails with OSError."""
        done: Future[None] = Future()
        with self._queued:
            if self._closed:
                done.set_exception(OSError("the journal is closed"))
                return done
            self._queue.append((record, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="carnet-journal", daemon=True)
                self._thread.start()
            self._queued.notify()
        return done

    def files(self) -> list[tuple[str, Path, int]]:
        """(id, path, last number) of this process's files, the one being written last."""
        with self._writing:
            held = [*self._left, *([self._file] if self._file is not None else [])]
            return [(file.id, file.path, file.last) for file in held]

    def shipped(self, id: str) -> None:
        """All lines of a file of ours are with the broker: a file that is no longer written is removed."""
        with self._writing:
            for file in [file for file in self._left if file.id == id]:
                file.path.unlink(missing_ok=True)
                file.close()
                self._left.remove(file)

    def settle(self, seconds: float) -> None:
        """Wait until what is queued now is on the disk, or for so long."""
        with self._queued:
            last = self._queue[-1][1] if self._queue else self._written
        if last is not None:
            wait([last], seconds)

    def close(self) -> None:
        """Write what is queued, stop the thread and unlock; files that are not shipped stay for the next guard."""
        with self._queued:
            self._closed = True
            self._queued.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(5.0)
        with self._writing:
            for file in [*self._left, *([self._file] if self._file is not None else [])]:
                file.close()
            self._left, self._file = [], None

    def forked(self) -> None:
        """In a forked child: let go of the parent's file without touching its lock; the child begins its own."""
        for file in [*self._left, *([self._file] if self._file is not None else [])]:
            file.close()
        self._reset()

    def _run(self) -> None:
        while True:
            with self._queued:
                while not self._queue and not self._closed:
                    self._queued.wait()
                batch, self._queue = self._queue[:_GATHER], self._queue[_GATHER:]
                self._written = batch[-1][1] if batch else None
                if not batch:
                    return
            fault: Exception | None = None
            try:
                self._store([record for record, _ in batch])
            except (OSError, ValueError, TypeError) as caught:
                fault = caught
            for _, done in batch:
                _settle(done, fault)

    def _store(self, records: list[Record]) -> None:
        with self._writing:
            if self._file is None:
                self._file = JournalFile(self.folder, self.owner + secrets.token_hex(16))
            file = self._file
            try:
                file.write(records)
            except BaseException:
                self._retire()
                raise
            if file.size > _FULL:
                self._retire()

    def _retire(self) -> None:
        if self._file is not None:
            self._left.append(self._file)
            self._file = None


def _settle(done: "Future[None]", fault: Exception | None) -> None:
    if done.set_running_or_notify_cancel():
        if fault is None:
            done.set_result(None)
        else:
            done.set_exception(fault)
