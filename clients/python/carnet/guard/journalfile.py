"""One file of a guard's journal: numbered lines with checksums, written by one process, read after its death.

A line is `<number> <crc32 of the rest, 8 hex> <JSON>`. Numbers are contiguous from 1. A torn last line was never
acknowledged, so it is dropped; a damaged line in the middle leaves a gap in the numbers that the broker puts on record.
"""

import errno
import fcntl
import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["SUFFIX", "JournalFile", "encode_line", "lock", "read_lines"]

SUFFIX = ".journal"
_LONGEST = 1024 * 1024  # bytes of a line, which is more than the broker takes
_DIGITS = 18  # of a line's number
_NOT_OURS = (errno.ENOENT, errno.ELOOP, errno.EPERM, errno.EACCES, errno.ENXIO, errno.EISDIR)
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode  # made once: it is slow


class JournalFile:
    """An open journal file, locked until it is closed. After an OSError write nothing more to it."""

    def __init__(self, folder: Path, id: str) -> None:
        self.id = id
        self.path = folder / f"{id}{SUFFIX}"
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, a shipper may have taken the empty file for a dead process's and removed it.
            if os.stat(self.path).st_ino != os.fstat(self._fd).st_ino:
                raise FileNotFoundError(errno.ENOENT, "the new journal file was removed", str(self.path))
            _sync_folder(folder)
        except BaseException:
            self.close()
            raise
        self.last = 0
        self.size = 0

    def write(self, records: Sequence[Mapping[str, Any] | str]) -> int:
        """Append records (a text is JSON already) and wait until they are on the disk; the number of the last one."""
        number, parts = self.last, []
        for record in records:
            number += 1
            parts.append(encode_line(number, record))
        data = b"".join(parts)
        written = 0
        while written < len(data):
            written += os.write(self._fd, data[written:])
        os.fdatasync(self._fd)
        self.last = number
        self.size += len(data)
        return number

    def close(self) -> None:
        """Close, and with it unlock. In a forked child this leaves the parent's lock as it is."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock(path: Path) -> int | None:
    """A descriptor that holds the file's lock, or None while its process lives (or the file is gone, or is none of
    ours)."""
    try:
        fd = _own(path, os.O_RDWR)
    except OSError as fault:
        if fault.errno in _NOT_OURS:
            return None
        raise
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        os.close(fd)
        if fault.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return None
        raise
    return fd


def read_lines(path: Path, after: int = 0, offset: int = 0) -> Iterator[tuple[int, Mapping[str, Any], int]]:
    """(number, record, offset behind it) of every whole line behind `offset` whose number is later than `after`."""
    with open(_own(path, os.O_RDONLY), "rb") as file:
        file.seek(offset)
        while raw := file.readline(_LONGEST):
            offset += len(raw)
            read = _read(raw)
            if read is not None and read[0] > after:
                yield read[0], read[1], offset


def _own(path: Path, flags: int) -> int:
    """Open a regular file of this user. Where others may write to the folder, what they put there is no record of ours:
    not a link to another file, not a pipe that is never at its end. OSError (EPERM) for such a thing."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(fd)
        raise PermissionError(errno.EPERM, "no journal file of this user", str(path))
    return fd


def encode_line(number: int, record: Mapping[str, Any] | str) -> bytes:
    """The line of a record, as `read_lines` reads it."""
    body = (record if isinstance(record, str) else _encode(record)).encode("utf-8", "replace")
    head = b"%d " % number
    return b"".join((head, b"%08x " % zlib.crc32(body, zlib.crc32(head)), body, b"\n"))


def _read(raw: bytes) -> tuple[int, Mapping[str, Any]] | None:
    head, _, rest = raw.partition(b" ")
    check, _, body = rest.partition(b" ")
    if not raw.endswith(b"\n") or not head.isdigit() or len(head) > _DIGITS:
        return None
    body = body[:-1]
    if check != b"%08x" % zlib.crc32(head + b" " + body):
        return None
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return (int(head), record) if isinstance(record, dict) else None


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
