"""What every answer gets: a trace id, no-store, a deadline, and an answer even when something breaks.

Plain ASGI in front of the routes. A fault is logged with its type and place; what the caller reads is one fixed text.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import Response

from carnet import trace as tracing
from carnet.reasons import Reason, Refusal
from carnet_broker.http.errors import oauth_error, problem
from carnet_broker.http.limits import Limits
from carnet_broker.store.base import Unavailable

__all__ = ["Frame", "refused"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_LOG = logging.getLogger("carnet.http")
_OAUTH_PATHS = "/oauth2/"


def refused(path: str, refusal: Refusal, trace: str) -> Response:
    """The refusal in the language of the path: OAuth JSON below /oauth2/, problem details elsewhere."""
    return oauth_error(refusal) if path.startswith(_OAUTH_PATHS) else problem(refusal, trace)


class Frame:
    """ASGI middleware. `scope["state"]` gets `trace` (32 hex digits) and `deadline`, which a stream may move.

    prefix: the path of the issuer, "" for none. Paths below it mean the same as without it, so that the URLs in the
    metadata work whether or not a proxy takes the prefix away. hosts: the Host headers that are answered, None for any;
    a broker on loopback names its own, so that no web page can reach it under a name of its choice (DNS rebinding).
    """

    def __init__(
        self,
        app: Callable[[Scope, Receive, Send], Awaitable[None]],
        limits: Limits,
        prefix: str = "",
        hosts: frozenset[str] | None = None,
    ) -> None:
        self._app = app
        self._limits = limits
        self._hosts = hosts
        self._prefix = f"{prefix}/" if prefix else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._prefix and scope["path"].startswith(self._prefix):
            scope["path"] = scope["path"][len(self._prefix) - 1 :]
        trace = _trace_id(scope)
        sender = _Sender(send, trace)
        try:
            async with asyncio.timeout(self._limits.handling_seconds) as deadline:
                scope.setdefault("state", {}).update(trace=trace, deadline=deadline)
                if self._hosts is not None and not _names_us(scope, self._hosts):
                    await self._fail(scope, receive, sender, Refusal(Reason.FORBIDDEN, "this broker has another name"))
                    return
                if b"%" in scope.get("raw_path", b""):  # no path of ours needs it, so a path has one spelling
                    await self._fail(scope, receive, sender, Refusal(Reason.NOT_FOUND))
                    return
                await self._app(scope, receive, sender)
        except TimeoutError:
            await self._fail(scope, receive, sender, Refusal(Reason.UNAVAILABLE, "no answer was ready in time"))
        except Unavailable:
            await self._fail(scope, receive, sender, Refusal(Reason.UNAVAILABLE))
        except Exception:  # noqa: BLE001 - the last line: whatever breaks is an answer, and is logged
            _LOG.exception("fault", extra={"fields": {"path": scope["path"], "trace_id": trace}})
            await self._fail(scope, receive, sender, Refusal(Reason.INTERNAL))

    async def _fail(self, scope: Scope, receive: Receive, sender: "_Sender", refusal: Refusal) -> None:
        if sender.started:  # half an answer is out: only breaking the connection tells the peer
            raise ConnectionAbortedError("the answer could not be completed")
        await refused(scope["path"], refusal, sender.trace)(scope, receive, sender)


class _Sender:
    """Adds the headers that every answer has."""

    def __init__(self, send: Send, trace: str) -> None:
        self._send = send
        self.trace = trace
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = list(message.get("headers", ()))
            headers.append((b"carnet-trace-id", self.trace.encode()))
            if not any(name == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            headers.append((b"x-content-type-options", b"nosniff"))
            message["headers"] = headers
        await self._send(message)


def _names_us(scope: Scope, hosts: frozenset[str]) -> bool:
    """Whether Host, and Origin where a browser sends one, name this broker."""
    named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
    return len(named) == 1 and {*named, *(origin.removeprefix("http://") for origin in origins)} <= hosts


def _trace_id(scope: Scope) -> str:
    """The caller's trace id if it sent exactly one well-formed traceparent, else a new one."""
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"]
    sent = tracing.extract(found) if found else None
    return sent.trace_id if sent is not None else secrets.token_hex(16)
