"""Files of the key directory: private modes, whole writes that survive a crash, one writer at a time."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from carnet_broker.keys.errors import KeysError

__all__ = ["check_directory", "make_directory", "read_private", "stamp", "tidy", "write_private", "writing"]

_LOCK = "lock"
_PARTIAL = ".partial"
_MAX_BYTES = 64 * 1024


def make_directory(path: Path) -> None:
    """A new directory of mode 0700, or an empty one that exists already. Raises KeysError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        _sync_directory(path.parent)
        leftover = any(path.iterdir())
    except OSError as fault:
        raise KeysError(
            f"cannot make the key directory {path}: {fault.strerror}; check the path and its owner"
        ) from None
    if leftover:
        raise KeysError(f"the key directory {path} is not empty; name a new one, it is never overwritten")


def check_directory(path: Path) -> None:
    """A directory that nobody but its owner can enter. Raises KeysError."""
    try:
        found = path.stat()
    except OSError:
        raise KeysError(f"there is no key directory {path}; make it with `carnet init`") from None
    if not stat.S_ISDIR(found.st_mode):
        raise KeysError(f"{path} is no directory; CARNET_KEYS names the directory that `carnet init` made")
    _check_owner(path, found)
    _check_mode(path, found, "0700")


def read_private(path: Path) -> bytes:
    """The bytes of a file that only its owner can read. Raises KeysError."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            _check_owner(path, found)
            _check_mode(path, found, "0600")
            return file.read(_MAX_BYTES)
    except OSError as fault:
        raise KeysError(f"cannot read {path}: {fault.strerror}; restore it from your backup") from None


def write_private(path: Path, data: bytes) -> None:
    """Put a file of mode 0600 in place whole: after a crash the old or the new one is there. Raises KeysError."""
    partial = path.with_name(path.name + _PARTIAL)
    try:
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_directory(path.parent)
    except OSError as fault:
        raise KeysError(f"cannot write {path}: {fault.strerror}; nothing was changed, free space and retry") from None


def tidy(directory: Path, keep: frozenset[str], suffix: str) -> None:
    """Delete what an interrupted change or a past key left behind. Raises KeysError."""
    try:
        for path in directory.iterdir():
            if path.name.endswith((suffix, _PARTIAL)) and path.name not in keep:
                path.unlink(missing_ok=True)
        _sync_directory(directory)
    except OSError as fault:
        raise KeysError(f"cannot tidy {directory}: {fault.strerror}; delete its old {suffix} files by hand") from None


def stamp(path: Path) -> tuple[int, int, int]:
    """Changes whenever the file was replaced. Raises KeysError."""
    try:
        found = path.stat()
    except OSError as fault:
        raise KeysError(f"cannot read {path}: {fault.strerror}; restore it from your backup") from None
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """One process at a time changes the directory. Raises KeysError when another one is at it."""
    try:
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise KeysError(f"cannot lock {directory}: {fault.strerror}; run as the owner of the directory") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise KeysError(f"another process is changing {directory}; wait for it and retry") from None
    finally:
        os.close(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_owner(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise KeysError(f"{path} belongs to another user; run the broker as its owner or chown it")


def _check_mode(path: Path, found: os.stat_result, wanted: str) -> None:
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise KeysError(f"{path} is open to others (mode {mode:04o}); run: chmod {wanted} {path}")
