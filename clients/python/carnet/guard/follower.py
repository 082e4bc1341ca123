"""The guard's ears: one thread that keeps policy, keys and revocations up to date and says when the guard may decide.

It reads the broker's event stream; where that can't be had it polls (fit for small fleets: 200 polling guards cost a
broker a third of a core). Each connection starts with what is missing: policy, keys, a snapshot or the entries since.
"""

import logging
import random
import threading
from collections.abc import Callable

from carnet.errors import CarnetError, ConfigError, Unavailable
from carnet.guard.feed import Gap
from carnet.guard.freshness import Anchor
from carnet.guard.loading import Loading
from carnet.guard.session import Session
from carnet.guard.state import State
from carnet.guard.stream import NoStream, events

__all__ = ["Follower"]

_POLL = 0.4  # seconds; the longest that a poll may be held back
_ACK = 3.0  # seconds between acknowledgements when nothing new came
_PAUSES = (0.05, 0.1, 0.2, 0.4)  # seconds before the next try to connect, by tries without success
_STREAM_AGAIN = 60.0  # seconds of polling after which a stream is tried again
_SLOW = 0.4  # seconds to the first event; with more, all that this stream will say counts as too old
_log = logging.getLogger("carnet.guard")


class Follower:
    """news: called in the follower's thread after marks, keys or policy changed."""

    def __init__(self, session: Session, state: State, host: str | None, news: Callable[[], None]) -> None:
        self._session, self._state, self._news = session, state, news
        self._loading = Loading(session, state, host)
        self._stopped = threading.Event()
        self._nudged = threading.Event()
        self._acknowledged: tuple[int, float] = (-1, 0.0)
        self._poll_until = 0.0
        self._random = random.SystemRandom()
        self._thread = threading.Thread(target=self._run, name="carnet-follower", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it does so at its next event, within half a second of a healthy broker."""
        self._stopped.set()
        self._nudged.set()

    def nudge(self) -> None:
        """Connect now instead of at the end of a pause: something that was missing is there."""
        self._nudged.set()

    def join(self, seconds: float) -> None:
        """Wait for the thread's end."""
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def want_keys(self) -> bool:
        """A token names an unknown key: fetch the issuer's keys now, at most every 10 s; whether they are new."""
        return self._loading.refresh_keys()

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            try:
                self._connect()
                failures = 0
            except Exception as fault:  # noqa: BLE001 - whatever happens here, the guard refuses and this thread lives on
                self._lost(fault)
                failures += 1
                pause = _PAUSES[min(failures, len(_PAUSES)) - 1]
                self._nudged.wait(pause * self._random.uniform(0.5, 1.0))
                self._nudged.clear()

    def _lost(self, fault: Exception) -> None:
        if isinstance(fault, CarnetError | Gap):
            self._state.problem = str(fault)
            self._state.fault = fault if isinstance(fault, ConfigError) else None
        else:
            self._state.problem = f"the follower failed ({type(fault).__name__})"
            _log.error("the follower failed", exc_info=fault)
        if isinstance(fault, Gap):
            self._state.feed.lose()
        self._state.told()

    def _connect(self) -> None:
        self._loading.all()
        mono = self._state.clock.mono()
        if mono < self._poll_until:
            self._poll()
            return
        try:
            self._follow()
        except NoStream:
            self._poll_until = mono + _STREAM_AGAIN

    def _follow(self) -> None:
        """Read one stream to its end; one that began slowly only to its first event, for a new one is fresher."""
        clock, anchor, slow = self._state.clock, None, False
        sent = clock.mono()
        for name, document in events(self._session, self._state.feed.position()):
            if self._stopped.is_set():
                return
            mono = _seconds(document.get("mono"))
            if anchor is None:
                anchor = Anchor(sent, mono)
                slow = clock.mono() - sent > _SLOW
            if not anchor.holds(mono, clock.mono()):
                raise Unavailable("our clock and the broker's have moved apart; the feed is followed anew")
            changed = False
            if name == "beat":
                self._state.feed.beat(document)
            else:
                changed = self._state.feed.take(document)
            self._heard(anchor.as_of(mono), document.get("now"), changed)
            if slow:
                return

    def _poll(self) -> None:
        sent = self._state.clock.mono()
        document = self._session.poll(self._state.feed.position(), _POLL)
        changed = self._state.feed.take(document)
        self._acknowledged = (self._state.feed.tenant.seq, sent)
        self._heard(sent, document.get("now"), changed)

    def _heard(self, as_of: float, now: object, changed: bool) -> None:
        if type(now) is not int:
            raise Gap("an event carries no wall clock of the broker")
        state = self._state
        if changed:
            self._loading.withdraw_keys()
            state.changed()
        state.freshness.heard(as_of, now, state.clock.mono())  # last: who finds this fresh must find what it speaks of
        if state.book is None or state.feed.digest != state.book.digest:
            self._loading.policy()
            changed = True
        state.problem = ""
        state.told()
        if changed:
            self._news()
        self._acknowledge()
        self._loading.keys_in_time()

    def _acknowledge(self) -> None:
        """Say what was applied; that nobody hears it must not make the guard any less fresh."""
        feed, mono = self._state.feed, self._state.clock.mono()
        seq, at = self._acknowledged
        if feed.tenant.seq == seq and mono - at < _ACK:
            return
        self._acknowledged = (feed.tenant.seq, mono)
        try:
            self._session.acknowledge(feed.tenant.epoch, feed.tenant.seq)
        except CarnetError as fault:
            _log.debug("the broker did not take the acknowledgement: %s", fault)


def _seconds(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise Gap("an event carries no time of the broker")
