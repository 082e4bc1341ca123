"""Fetches what a guard must have before it may decide: the policy in force, the host's facts, the issuer's keys."""

from carnet.errors import CarnetError, ConfigError, Unavailable
from carnet.guard.book import read_book
from carnet.guard.session import Session
from carnet.guard.state import State
from carnet.token.keycache import KeyCache
from carnet.wire.place import is_loopback, origin

__all__ = ["Loading"]

_KEYS_EVERY = 240.0  # seconds; before the cache would call its keys old


class Loading:
    """Called in the follower's thread, but for `refresh_keys`, which any call may need."""

    def __init__(self, session: Session, state: State, host: str | None) -> None:
        self._session, self._state, self._host = session, state, host
        self._keys = KeyCache(self._fetch_keys, state.clock.mono)
        self._keys_at: float | None = None

    def all(self) -> None:
        """Load what is missing. Raises Refused or Unavailable."""
        if self._state.book is None:
            self.policy()
        if not len(self._state.keys):
            self.refresh_keys()
            if not len(self._state.keys):
                raise Unavailable(self._keys.problem or "the issuer's keys are not fetched yet")

    def policy(self) -> None:
        """Load the policy in force. A guard of a development issuer must stand on the same machine as that issuer."""
        book = read_book(self._session.policy())
        if self._host is not None and book.host != self._host:
            raise ConfigError(f"the guard was made for host {self._host}, but its client is that of host {book.host}")
        if _is_dev(book.issuer) and not _same_loopback(book.issuer, self._session.channel.url):
            raise ConfigError(
                f"{book.issuer} is a development issuer; it is accepted only as one's own loopback CARNET_URL"
            )
        self._state.load(book)

    def refresh_keys(self) -> bool:
        """Fetch the keys unless that was tried within the last 10 s; whether the set is another one now."""
        before = self._state.keys.kids
        self._keys.refresh()
        self._state.keys = self._keys.current
        self._keys_at = self._state.clock.mono()
        return self._state.keys.kids != before

    def withdraw_keys(self) -> None:
        """Never accept again what the system feed withdrew."""
        self._keys.withdraw(self._state.feed.withdrawn_keys())
        self._state.keys = self._keys.current

    def keys_in_time(self) -> None:
        """Look for new keys every few minutes, so that a rotation costs no call a round trip."""
        if self._keys_at is not None and self._state.clock.mono() - self._keys_at > _KEYS_EVERY:
            self.refresh_keys()

    def _fetch_keys(self) -> object:
        try:
            return self._session.keys()
        except CarnetError as fault:
            raise OSError(str(fault)) from None


def _is_dev(issuer: str) -> bool:
    return issuer.startswith("http://")


def _same_loopback(issuer: str, url: str) -> bool:
    return is_loopback(issuer) and origin(issuer) == origin(url)
