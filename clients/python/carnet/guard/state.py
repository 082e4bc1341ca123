"""The guard's shared state: what it has loaded and heard, whether that suffices to decide, and who waits for it."""

import threading
import time
from collections.abc import Callable

from carnet.clock import Clock
from carnet.errors import ConfigError
from carnet.guard.book import Book
from carnet.guard.feed import Feed
from carnet.guard.freshness import Freshness
from carnet.reasons import Reason, Refusal
from carnet.token.cache import VerifiedCache
from carnet.token.keyset import KeySet

__all__ = ["State"]


class State:
    """Written by the follower's thread, read by every call. A change wakes those that wait."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.feed = Feed()
        self.freshness = Freshness()
        self.keys = KeySet()
        self.book: Book | None = None
        self.cache: VerifiedCache | None = None
        self.fault: ConfigError | None = None  # a set-up that can't work, found out at the broker
        self.generation = 0  # grows after each change of marks, keys or book
        self.problem = "nothing was heard from the broker yet"
        self._changed = threading.Condition()

    def load(self, book: Book) -> None:
        """Put a newly loaded book in force."""
        before = self.book
        if before is None or _place(before) != _place(book):
            self.cache = VerifiedCache(issuer=book.issuer, audience=book.audience, host=book.host, tenant=book.tenant)
        self.book, self.fault = book, None
        self.changed()

    def changed(self) -> None:
        """Marks, keys or book are other ones now: what was looked up before must be looked up again."""
        self.generation += 1

    def told(self) -> None:
        """Something changed, or was heard: wake whoever waits for it."""
        with self._changed:
            self._changed.notify_all()

    def lacking(self, level: int, mono: float | None = None) -> Refusal | None:
        """Why nothing can be decided at this level now (`mono` of our clock), or None.

        Ask this before reading marks, keys or `generation`: what is read after it is at least as new as what was found
        fresh. The other way round, a stale guard that hears again in between would pass with what it knew before."""
        book, feed = self.book, self.feed
        if book is None or self.cache is None or not len(self.keys):
            return Refusal(Reason.NOT_READY, f"the guard is not ready: {self.problem}")
        if not feed.whole:
            return Refusal(Reason.STALE, f"the revocation feed is broken and being reloaded: {self.problem}")
        if feed.digest != book.digest:
            return Refusal(Reason.STALE, "the policy in force is not loaded yet")
        age = (self.clock.mono() if mono is None else mono) - self.freshness.as_of
        if age > book.budgets.get(level, 0.0):
            why = self.problem or "it no longer answers"
            return Refusal(
                Reason.STALE, f"what is revoked was last heard {_shown(age)} ago; the broker is unavailable: {why}"
            )
        return None

    def await_change(self, done: Callable[[], bool], seconds: float) -> bool:
        """Block until `done()` or for so many seconds of real time; what `done()` is then."""
        until = time.monotonic() + seconds
        with self._changed:
            while not done():
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.05))
        return True

    def now(self) -> int:
        """The broker's Unix time, estimated."""
        return self.freshness.wall(self.clock.mono())


def _place(book: Book) -> tuple[str, ...]:
    """What tokens are verified against."""
    return book.issuer, book.audience, book.host, book.tenant


def _shown(seconds: float) -> str:
    return "never" if seconds == float("inf") else f"{seconds:.1f} s"
