"""What a guard is set up with, and what it runs on once it has started."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from carnet.clock import Clock, SystemClock
from carnet.current import Holder
from carnet.errors import ConfigError, Refused
from carnet.guard.dispatch import Dispatch
from carnet.guard.follower import Follower
from carnet.guard.journal import Journal
from carnet.guard.lanes import Lanes
from carnet.guard.running import RunningCalls
from carnet.guard.session import Bearer, ChildBearer, OwnBearer, Session
from carnet.guard.shipper import Shipper
from carnet.guard.state import State
from carnet.guard.upkeep import Upkeep
from carnet.reasons import Reason
from carnet.wire.channel import Channel
from carnet.wire.credential import Credential
from carnet.wire.settings import read

if TYPE_CHECKING:
    import httpx2

__all__ = ["Setup", "Works", "started"]

_TIMEOUT = 5.0  # seconds for one request to the broker
_SETTLE = 1.0  # seconds for what is queued to reach the disk before the last round of shipping
_LAST = 2.5  # seconds for that round: a server that is told to end must end, and files wait for the next guard


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """As the constructor was told; what is None is read from the environment on first use."""

    host: str | None = None
    url: str | None = None
    credential: Credential | None = None
    journal: Path | None = None
    max_wait: float | None = None
    transport: "httpx2.BaseTransport | None" = None
    clock: Clock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Works:
    """A started guard's parts."""

    channel: Channel
    bearer: Bearer
    state: State
    journal: Journal | None
    upkeep: Upkeep
    follower: Follower
    dispatch: Dispatch

    @property
    def speaks_for_child(self) -> bool:
        """Whether the guard has no client of its own and speaks with the current child's token."""
        return isinstance(self.bearer, ChildBearer)

    def stop(self) -> None:
        """End the threads, ship what can be shipped, close files and connections."""
        self.follower.stop()
        if self.journal is not None:
            self.journal.settle(_SETTLE)
        self.upkeep.stop(_LAST)
        if self.journal is not None:
            self.journal.close()
        self.follower.join(1.0)
        self.channel.close()

    def forked(self) -> None:
        """In a forked child: leave the parent's files and connections alone."""
        self.channel.forget()
        if self.journal is not None:
            self.journal.forked()


def started(setup: Setup) -> Works:
    """Make and start the parts. ConfigError when the set-up lacks something."""
    settings = read()
    url = setup.url or settings.url
    if url is None:
        raise ConfigError("the guard has no broker: set CARNET_URL or Guard(url=...)")
    host = setup.host or settings.host
    clock = setup.clock or SystemClock()
    channel = Channel(url, timeout=_TIMEOUT, transport=setup.transport)
    credential = setup.credential or Credential.of(settings)
    bearer: Bearer = OwnBearer(channel, credential, clock) if credential is not None else ChildBearer()
    if credential is None and host is None:
        raise ConfigError("a guard without a client of its own must name its host: Guard('name') or CARNET_HOST")
    folder = setup.journal or (Path(settings.journal) if settings.journal else None)
    if credential is None:
        folder = None  # a child's token ships lines of that child only, and is gone before they are shipped
    state = State(clock)
    session = Session(channel, bearer, secrets.token_hex(8))
    journal = Journal(folder, _owner(url, credential)) if folder is not None else None
    upkeep = Upkeep(Shipper(journal, session.records) if journal is not None else None)
    running = RunningCalls(state)
    follower = Follower(session, state, host, running.sweep)
    tokens = _tokens(state, bearer, host, follower.nudge)
    dispatch = Dispatch(
        state, Lanes(session, state, journal, upkeep), running, tokens, follower.want_keys, setup.max_wait
    )
    upkeep.start()
    follower.start()
    return Works(
        channel=channel,
        bearer=bearer,
        state=state,
        journal=journal,
        upkeep=upkeep,
        follower=follower,
        dispatch=dispatch,
    )


def _owner(url: str, credential: Credential | None) -> str:
    """Names the files of one client at one broker, in a folder that guards of several hosts may share."""
    client = "" if credential is None else credential.client_id
    return sha256(f"{url}\n{client}".encode()).hexdigest()[:16]


def _tokens(state: State, bearer: Bearer, host: str | None, nudge: Callable[[], None]) -> Callable[[Holder], str]:
    """How a call finds the current child's token for this host. A guard without a client speaks with that token too."""

    def of(holder: Holder) -> str:
        name = state.book.host if state.book is not None else host
        try:
            token = holder.token(name) if name is not None else ""
        except ConfigError as fault:  # a child that is still pending has none
            raise Refused(Reason.TOKEN_MISSING, str(fault)) from None
        if isinstance(bearer, ChildBearer) and bearer.offer(token):
            nudge()
        return token

    return of
