"""What a client keeps of each call: when it was sent, when it was answered, and what the answer promised."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Ack", "AckLog", "Asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request whose answer counts. key: its idempotency key, "" where it has none. Times: monotonic seconds."""

    kind: str  # run | spawn | mint | approve | deny | call | outcome | revoke
    path: str
    token: str = field(repr=False)
    body: Mapping[str, Any]
    key: str = ""
    started: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """An answered request. id: of the row that it made or moved, or the mark. mints: tokens that came with it."""

    asked: Asked
    ended: float
    id: str
    answer: Mapping[str, Any]
    mints: int = 0


class AckLog:
    """Thread-safe. open: what was sent and never answered, for the client can't know whether it was done."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.acks: list[Ack] = []
        self.open: list[Asked] = []
        self.wrong: list[str] = []  # answers that no healthy broker gives
        self._lock = threading.Lock()

    def answered(self, ack: Ack) -> None:
        with self._lock:
            self.acks.append(ack)

    def unanswered(self, asked: Asked) -> None:
        with self._lock:
            self.open.append(asked)

    def odd(self, what: str) -> None:
        with self._lock:
            self.wrong.append(what)

    def of(self, kind: str) -> list[Ack]:
        with self._lock:
            return [ack for ack in self.acks if ack.asked.kind == kind]

    def rate(self, seconds: float) -> float:
        """Mints per second over the last so many seconds."""
        since = self.clock() - seconds
        with self._lock:
            return sum(ack.mints for ack in self.acks if ack.ended >= since) / seconds
