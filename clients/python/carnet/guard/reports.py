"""Refusals of a guard without a journal, for the audit: one line a batch, told to the broker as soon as it listens."""

import json
import secrets
import threading

from carnet.guard.session import Session
from carnet.guard.upkeep import Upkeep

__all__ = ["Reports"]


class Reports:
    """Thread-safe. Lines are numbered as a journal's are, so that the audit names a gap where one was lost."""

    def __init__(self, session: Session, upkeep: Upkeep) -> None:
        self._session, self._upkeep = session, upkeep
        self._id = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._last = 0

    def tell(self, line: str) -> None:
        """Put a line in the queue of what is told to the broker."""
        with self._lock:
            self._last += 1
            first = self._last
            self._upkeep.later(lambda: self._session.records(self._id, first, [json.loads(line)]))
