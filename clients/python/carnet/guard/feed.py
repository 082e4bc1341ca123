"""What a guard knows of revocations: two contiguous feeds (its tenant's and the system's) and the policy in force.

A pure state machine. A gap, another epoch, a step back or a document that can't be read raises Gap: the guard then
refuses everything until it has a snapshot again.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["Feed", "Gap", "Stream"]


class Gap(Exception):
    """The feed can't be continued; only a snapshot helps."""


class Stream:
    """One feed: its marks with the time up to which they kill, and the reason that was given first."""

    __slots__ = ("epoch", "reasons", "seq", "until")

    def __init__(self) -> None:
        self.epoch = ""
        self.seq = 0
        self.until: dict[str, int] = {}
        self.reasons: dict[str, str] = {}

    def take(self, part: Mapping[str, Any]) -> bool:
        """Apply one document's part; whether a mark is new. Readers in other threads see whole states only."""
        epoch, seq = _text(part, "epoch"), _count(part, "seq")
        entries = part.get("entries")
        if not isinstance(entries, list):
            raise Gap("entries are missing")
        if part.get("snapshot") is True:
            until: dict[str, int] = {}
            reasons: dict[str, str] = {}
            for entry in entries:
                _merge(until, reasons, entry)
            self.until, self.reasons, self.epoch, self.seq = until, reasons, epoch, seq
            return True
        if epoch != self.epoch or not epoch:
            raise Gap("the feed has another epoch")
        for entry in entries:
            if _count(entry, "seq") != self.seq + 1:
                raise Gap("an entry of the feed is missing")
            _merge(self.until, self.reasons, entry)
            self.seq += 1
        if seq != self.seq:
            raise Gap("the feed's number is not that of its last entry")
        return bool(entries)


class Feed:
    """Both streams and the digest of the policy in force. `whole` is False until a snapshot is in, and after a Gap."""

    __slots__ = ("digest", "system", "tenant", "whole")

    def __init__(self) -> None:
        self.tenant = Stream()
        self.system = Stream()
        self.digest = ""
        self.whole = False

    def take(self, document: Mapping[str, Any]) -> bool:
        """Apply a feed document; whether anything is new. Raises Gap."""
        try:
            system = document.get("system")
            if not isinstance(system, Mapping):
                raise Gap("the system feed is missing")
            news = [self.system.take(system), self.tenant.take(document)]
            self.digest = _text(document, "policy_digest")
        except Gap:
            self.whole = False
            raise
        if not self.whole:
            self.whole = bool(self.tenant.epoch and self.system.epoch)
        return any(news)

    def beat(self, document: Mapping[str, Any]) -> None:
        """A heartbeat: it says that nothing came after what we have. Raises Gap when it knows more or less."""
        if not self.whole or _count(document, "seq") != self.tenant.seq:
            self.whole = False
            raise Gap("the heartbeat's number is not ours")
        self.digest = _text(document, "policy_digest")

    def lose(self) -> None:
        """Forget nothing, trust nothing: only a snapshot makes the feed whole again."""
        self.whole = False

    def position(self) -> dict[str, str | int]:
        """The query that continues this feed, or asks for a snapshot of both."""
        if not self.whole:
            return {"epoch": "", "after": 0, "system_epoch": "", "system_after": 0}
        return {
            "epoch": self.tenant.epoch,
            "after": self.tenant.seq,
            "system_epoch": self.system.epoch,
            "system_after": self.system.seq,
        }

    def withdrawn_keys(self) -> list[str]:
        """The kids of signing keys that the system feed withdrew."""
        return [mark[4:] for mark in self.system.until if mark.startswith("key:")]


def _merge(until: dict[str, int], reasons: dict[str, str], entry: Any) -> None:
    mark = _text(entry, "mark")
    reasons.setdefault(mark, _text(entry, "reason"))
    until[mark] = max(_count(entry, "until"), until.get(mark, 0))


def _text(part: Any, name: str) -> str:
    value = part.get(name) if isinstance(part, Mapping) else None
    if type(value) is str:
        return value
    raise Gap(f"{name} is missing")


def _count(part: Any, name: str) -> int:
    value = part.get(name) if isinstance(part, Mapping) else None
    if type(value) is int and value >= 0:
        return value
    raise Gap(f"{name} is missing")
