"""The connection watchdog: uvicorn's HTTP/1.1 protocol with limits in front of the parser.

uvicorn bounds neither the head of a request, nor the time a request may take to arrive, nor connections that never send
one. This protocol refuses: a head over the limit in bytes or lines, a body over the limit whatever it is declared as,
a body declared by two means, transfer codings other than chunked, protocol upgrades, a request that is not complete in
time, and connections beyond the maximum (the longest idle one makes room first). It writes no log line: a flood of bad
requests must not become a flood of lines.
"""

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from carnet.reasons import Reason
from carnet_broker.http.errors import raw_problem
from carnet_broker.http.limits import DEFAULT, Limits

__all__ = ["LimitedConfig", "LimitedProtocol"]


class LimitedConfig(Config):
    """uvicorn's configuration with our protocol and its limits."""

    def __init__(self, app: Callable[..., Any], limits: Limits = DEFAULT, **options: Any) -> None:
        super().__init__(app, http=LimitedProtocol, ws="none", timeout_keep_alive=int(limits.idle_seconds), **options)
        self.limits = limits


class _Stage(Enum):
    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    REFUSED = "refused"


class _TooMuch(Exception):
    """Raised in a parser callback to stop the parser; never leaves this module."""

    def __init__(self, reason: Reason, status: int, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.status, self.detail = reason, status, detail


class LimitedProtocol(HttpToolsProtocol):
    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = cast(LimitedConfig, config).limits
        self._stage = _Stage.IDLE
        self._fed = self._head = self._lines = self._body = 0
        self._problem: _TooMuch | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    # connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self.timeout_keep_alive_task = self.loop.call_later(self._limits.idle_seconds, self.timeout_keep_alive_handler)
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._refuse(_TooMuch(Reason.UNAVAILABLE, 503, "too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._idle_since = self.loop.time()

    def is_idle(self) -> bool:
        """No request is being read or answered."""
        return self._stage is _Stage.IDLE and (self.cycle is None or self.cycle.response_complete)

    def _make_room(self) -> bool:
        mine = [c for c in self.connections if isinstance(c, LimitedProtocol) and c is not self and c.is_idle()]
        if not mine:
            return False
        min(mine, key=lambda connection: connection._idle_since).transport.abort()
        return True

    # bytes in

    def data_received(self, data: bytes) -> None:
        if self._stage is _Stage.REFUSED:
            return
        self._unset_keepalive_if_required()
        self._start_clock()
        try:
            self.parser.feed_data(data)  # pyright: ignore[reportOptionalMemberAccess]
        except httptools.HttpParserUpgrade:
            self._problem = _TooMuch(Reason.REQUEST_INVALID, 400, "protocol upgrades are not supported")
        except httptools.HttpParserError:
            self._problem = self._problem or _TooMuch(Reason.REQUEST_INVALID, 400, "the request is not HTTP/1.1")
        if self._stage is _Stage.HEAD and self._problem is None:
            self._count_fed(len(data))
        if self._problem is not None:
            self._refuse(self._problem)

    def _count_fed(self, count: int) -> None:
        # The parser reports a header only when it is whole, so bytes of an unfinished one are counted as they come.
        self._fed += count
        if self._fed > self._limits.head_bytes:
            self._problem = _head_too_large()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._stage = _Stage.HEAD
        self._fed = self._head = self._lines = self._body = 0

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._check_framing()
        self._stage = _Stage.BODY
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        if self._body > self._limits.body:
            self._stop(_TooMuch(Reason.REQUEST_TOO_LARGE, 413, f"the body exceeds {self._limits.body} bytes"))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stage = _Stage.IDLE
        self._stop_clock()
        super().on_message_complete()

    def _count_head(self, count: int) -> None:
        self._head += count
        if self._head > self._limits.head_bytes or self._lines > self._limits.head_lines:
            self._stop(_head_too_large())

    def _check_framing(self) -> None:
        lengths = [value for name, value in self.headers if name == b"content-length"]
        codings = [value for name, value in self.headers if name == b"transfer-encoding"]
        if (lengths and codings) or len(lengths) > 1 or len(codings) > 1:
            self._stop(_TooMuch(Reason.REQUEST_INVALID, 400, "the length of the body is declared twice"))
        if codings and codings[0].lower() != b"chunked":
            self._stop(_TooMuch(Reason.REQUEST_INVALID, 400, "no transfer coding but chunked is supported"))
        if lengths and (not lengths[0].isdigit() or len(lengths[0]) > 12 or int(lengths[0]) > self._limits.body):
            self._stop(_TooMuch(Reason.REQUEST_TOO_LARGE, 413, f"the body exceeds {self._limits.body} bytes"))
        if self.parser.should_upgrade():  # pyright: ignore[reportOptionalMemberAccess]
            self._stop(_TooMuch(Reason.REQUEST_INVALID, 400, "protocol upgrades are not supported"))
        if len(self.pipeline) >= self._limits.pipelined:
            self._stop(_TooMuch(Reason.REQUEST_INVALID, 400, "too many requests were sent before an answer"))

    def _stop(self, problem: _TooMuch) -> None:
        self._problem = problem
        raise problem

    # time

    def _start_clock(self) -> None:
        if self._clock is None:
            self._clock = self.loop.call_later(self._limits.request_seconds, self._too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self) -> None:
        self._clock = None
        if self._stage is _Stage.IDLE and not self.is_idle():
            return  # blank lines after a request that is being answered: clients of old send them
        seconds = f"{self._limits.request_seconds:g}"
        self._refuse(_TooMuch(Reason.REQUEST_INVALID, 408, f"the request was not complete within {seconds} s"))

    # the way out

    def _refuse(self, problem: _TooMuch) -> None:
        """Answer if the peer can tell to which request the answer belongs, then close after a short linger."""
        reading_body = self._stage is _Stage.BODY
        self._stage = _Stage.REFUSED
        self._stop_clock()
        self._unset_keepalive_if_required()
        cycle = self.cycle
        mine = cycle is None or cycle.response_complete or (reading_body and not cycle.response_started)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.transport.is_closing():
            return
        if mine and not self.pipeline:
            self.transport.write(raw_problem(problem.reason, problem.status, problem.detail))
            self.transport.write_eof()
            self.flow.resume_reading()
            self._clock = self.loop.call_later(self._limits.linger_seconds, self.transport.close)
        else:
            self.transport.close()


def _head_too_large() -> _TooMuch:
    return _TooMuch(Reason.REQUEST_TOO_LARGE, 431, "the head of the request exceeds its limit")
