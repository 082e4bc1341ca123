"""SQLite errors as the sentences that an operator reads."""

from carnet_broker.store.base import Unavailable

__all__ = ["is_full", "unavailable"]

_SENTENCES = {
    "SQLITE_FULL": "The disk of the store is full; free space on it (revocations still go through).",
    "SQLITE_BUSY": "The store is locked by another process; close what else has the file open.",
    "SQLITE_LOCKED": "The store is locked; close what else has the file open.",
    "SQLITE_READONLY": "The store cannot be written; check the owner and the mount of its file.",
    "SQLITE_IOERR": "The disk of the store fails; check it.",
    "SQLITE_CORRUPT": "The store is damaged; restore it from a backup.",
    "SQLITE_NOTADB": "The store is damaged; restore it from a backup.",
    "SQLITE_CANTOPEN": "The store cannot be opened; check that its folder exists and can be written.",
}


def _name(error: BaseException) -> str:
    return getattr(error, "sqlite_errorname", None) or ""


def is_full(error: BaseException) -> bool:
    """Is it lack of space? The index of the write-ahead log that cannot grow shows up as an I/O error."""
    return _name(error) in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


def unavailable(error: BaseException) -> Unavailable:
    """What the caller is told; the cause stays attached for the log."""
    if isinstance(error, Unavailable):
        return error
    name = _name(error)
    base = "_".join(name.split("_")[:2])
    told = Unavailable(_SENTENCES.get(base, "The store did not answer.") + (f" ({name})" if name else ""))
    told.__cause__ = error
    return told
