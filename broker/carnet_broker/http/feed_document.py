"""The feed as it goes on the wire, and what a follower needs of it next."""

from dataclasses import dataclass
from typing import Any

from carnet_broker.http.render import dumps
from carnet_broker.service.views import FeedView
from carnet_broker.store.base import Feed

__all__ = ["Position", "beat", "document", "event", "position"]


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where a follower knows the tenant's feed and the system feed."""

    epoch: str
    seq: int
    system_epoch: str
    system_seq: int


def position(view: FeedView) -> Position:
    return Position(view.feed.epoch, view.feed.seq, view.system.epoch, view.system.seq)


def document(view: FeedView, mono: float) -> dict[str, Any]:
    """mono: this process's monotonic clock in seconds, read before the store was."""
    return {
        **_part(view.feed),
        "system": _part(view.system),
        "policy_digest": view.feed.policy_digest,
        "now": view.feed.now,
        "mono": mono,
    }


def _part(feed: Feed) -> dict[str, Any]:
    entries = [{"seq": e.seq, "mark": e.mark, "until": e.until, "reason": e.reason} for e in feed.entries]
    return {"epoch": feed.epoch, "seq": feed.seq, "snapshot": feed.snapshot, "entries": entries}


def beat(view: FeedView, mono: float) -> bytes:
    """The heartbeat event: the broker has just read its store and nothing but this is new."""
    feed = view.feed
    body = {"seq": feed.seq, "mono": mono, "policy_digest": feed.policy_digest, "now": feed.now}
    return event("beat", body)


def event(name: str, body: Any) -> bytes:
    """One server-sent event (HTML living standard §9.2); JSON without line breaks is one data line."""
    return b"event: " + name.encode() + b"\ndata: " + dumps(body) + b"\n\n"
