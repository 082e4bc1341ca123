"""An issuer's keys, fetched when they are needed and kept when they cannot be.

A kid that nobody published must cost the issuer nothing: unknown kids trigger at most one fetch per 10 s, whatever
their number; in between they are simply unknown. A fetch that fails or brings a bad document takes no good key away.
Before the first that worked nothing can be verified at all, so that one is tried again sooner.
"""

from collections.abc import Callable, Iterable
from threading import Lock

from carnet.reasons import Refusal
from carnet.token.keyset import KeySet, VerifyKey, parse_jwks

__all__ = ["COOLDOWN", "FIRST", "MAX_AGE", "KeyCache"]

COOLDOWN = 10.0  # seconds between two fetches, once one has worked
FIRST = 0.4  # seconds between two fetches before
MAX_AGE = 300.0  # seconds after which a known kid, too, makes the cache look for a newer set


class KeyCache:
    """A `Keys` in front of an issuer. Thread-safe; who asks for a known kid never waits for another's fetch.

    fetch: answers the JWKS document (parsed JSON) within its own time-out; whatever it raises counts as a failure.
    mono: seconds of a monotonic clock.
    """

    __slots__ = ("_fetch", "_fetched", "_fetching", "_keys", "_mono", "_problem", "_tried", "_withdrawn")

    def __init__(self, fetch: Callable[[], object], mono: Callable[[], float]) -> None:
        self._fetch = fetch
        self._mono = mono
        self._fetching = Lock()
        self._keys = KeySet()
        self._withdrawn: frozenset[str] = frozenset()
        self._tried: float | None = None
        self._fetched: float | None = None
        self._problem = ""

    @property
    def current(self) -> KeySet:
        """The keys as last known; empty before the first fetch that worked."""
        return self._keys

    @property
    def problem(self) -> str:
        """Why the last fetch failed, one sentence; empty when it worked."""
        return self._problem

    def find(self, kid: str) -> VerifyKey | None:
        key = self._keys.find(kid)
        if key is None:
            self.refresh()
        elif not self._fresh() and self._fetching.acquire(blocking=False):
            try:
                self._attempt()
            finally:
                self._fetching.release()
        return self._keys.find(kid)

    def refresh(self) -> bool:
        """Fetch, unless that was tried within the last 10 s (0.4 s before the first success). True when it brought the
        issuer's keys just now."""
        with self._fetching:
            return self._attempt()

    def withdraw(self, kids: Iterable[str]) -> None:
        """Never accept these keys again, whatever the issuer publishes."""
        with self._fetching:
            self._withdrawn |= frozenset(kids)
            self._keys = self._keys.without(self._withdrawn)

    def __repr__(self) -> str:
        return f"KeyCache({self._keys!r})"

    def _fresh(self) -> bool:
        return self._fetched is not None and self._mono() - self._fetched < MAX_AGE

    def _attempt(self) -> bool:
        now = self._mono()
        pause = FIRST if self._fetched is None else COOLDOWN
        if self._tried is not None and now - self._tried < pause:
            return False
        self._tried = now
        return self._load(now)

    def _load(self, now: float) -> bool:
        try:
            found = parse_jwks(self._fetch())
        except Exception as fault:  # noqa: BLE001 - whatever a transport raises, the last good keys stay
            self._problem = f"the issuer's keys could not be fetched: {type(fault).__name__}"
            return False
        if isinstance(found, Refusal):
            self._problem = f"the issuer's keys are not usable: {found.detail}"
            return False
        self._keys = found.without(self._withdrawn)
        self._fetched = now
        self._problem = ""
        return True
