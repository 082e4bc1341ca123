"""Space kept back so that a full disk stops minting and not revoking."""

import os
import time
from pathlib import Path

from carnet_broker.store.files import beside

__all__ = ["Reserve"]

_RETRY = 0.5  # seconds between two attempts to get the reserve back


class Reserve:
    """A file of real blocks beside the database. It is given up when the disk is full and taken again when there is
    twice its size free; without it only changes that revoke are made."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = beside(path, ".reserve")
        self._size = size
        self._tried = 0.0
        self.held = False
        self._take()

    def release(self) -> None:
        """Give the blocks back to the file system for the database to use."""
        self._file.unlink(missing_ok=True)
        self.held = False
        self._tried = time.monotonic()

    def regain(self) -> bool:
        """Is the reserve there, or can it be had again by now?"""
        if self.held:
            return True
        if time.monotonic() - self._tried >= _RETRY:
            self._take()
        return self.held

    def _take(self) -> None:
        self._tried = time.monotonic()
        try:
            self.held = self._allocated() or self._allocate()
        except OSError:
            self._file.unlink(missing_ok=True)
            self.held = False

    def _allocated(self) -> bool:
        try:
            found = self._file.stat()
        except FileNotFoundError:
            return False
        return found.st_size >= self._size and found.st_blocks * 512 >= self._size

    def _allocate(self) -> bool:
        space = os.statvfs(self._file.parent)
        if space.f_bavail * space.f_frsize < 2 * self._size:
            return False
        fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if self._size:
                os.posix_fallocate(fd, 0, self._size)
            os.fsync(fd)
        finally:
            os.close(fd)
        return True
