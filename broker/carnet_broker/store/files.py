"""The store's files: made for the owner alone, held by one process, and their names on disk before anything else."""

import fcntl
import os
from pathlib import Path
from typing import Self

from carnet.errors import ConfigError
from carnet_broker.store.base import Unavailable

__all__ = ["HeldLock", "beside", "create", "fsync_folder"]


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def create(path: Path) -> bool:
    """Make the empty database file, readable by its owner only; tighten an existing one. True when it is new."""
    if not path.parent.is_dir():
        raise ConfigError(f"The folder of the store, {path.parent}, does not exist; create it.")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
        return False
    except OSError as error:
        raise ConfigError(f"The store {path} cannot be created ({error.strerror}); check its folder.") from error
    fsync_folder(path.parent)
    return True


def fsync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class HeldLock:
    """An exclusive lock on `<database>.lock`. The kernel frees it when the process ends, however it ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, path: Path) -> Self:
        """Hold the lock or raise Unavailable that names the holder."""
        try:
            fd = os.open(beside(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"The folder of the store {path} cannot be written ({error.strerror}).") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(fd, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise Unavailable(f"Another process (pid {holder}) holds the store {path}; stop it first.") from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        return cls(fd)

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
