"""The ASGI edge of a guarded application: no request passes without exactly one good token, and inside it is the
current child. Start-up checks run here: lifespan and first request come this way whatever the server."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from carnet.adapters.answers import Answer, metadata, metadata_url, problem_of, unauthorised
from carnet.adapters.bearer import Bearer
from carnet.current import entered
from carnet.errors import ConfigError, Refused
from carnet.guard.guard import Guard
from carnet.guard.setup import Works
from carnet.reasons import CATALOGUE, Reason, Refusal
from carnet.trace import Trace, extract

__all__ = ["Edge"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_WELL_KNOWN = "/.well-known/oauth-protected-resource"


class Edge:
    """opened: whether a path needs no token. check: raises ConfigError when a route exists that no guard can own.
    place: the name of the tool that a request would reach, or the template of its route, for the audit."""

    def __init__(
        self,
        app: App,
        guard: Guard,
        opened: Callable[[Scope], bool],
        check: Callable[[], None],
        place: Callable[[Scope], str],
    ) -> None:
        self._app, self._guard, self._opened, self._check, self._place = app, guard, opened, check, place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
            return
        self._check()
        if scope["type"] == "http" and scope["path"].startswith(_WELL_KNOWN):
            await _answer(send, scope, await self._metadata(scope))
            return
        if self._opened(scope):
            with entered(None):
                await self._app(scope, receive, send)
            return
        works = await self._started()
        token, refusal = _presented(scope)
        claims = refusal or await works.dispatch.aidentify(token)
        if isinstance(claims, Refused):
            why = Refusal(claims.reason, claims.detail)
            works.dispatch.turn_away(token, self._place(scope), why, trace=_trace(scope))
            await _answer(send, scope, self._refused(works, claims, presented=token != ""))
            return
        with entered(Bearer(token, claims, _trace(scope))):
            await self._app(scope, receive, send)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check and start before the application does; a failure is told to the server, which then does not serve."""
        told: list[MutableMapping[str, Any]] = [await receive()]
        try:
            self._check()
            await self._started()
        except ConfigError as fault:
            await send({"type": "lifespan.startup.failed", "message": str(fault)})
            raise

        async def replayed() -> MutableMapping[str, Any]:
            return told.pop() if told else await receive()

        async def closing(message: MutableMapping[str, Any]) -> None:
            if message["type"].startswith("lifespan.shutdown."):
                await self._close()  # before the server hears of it: it waits for nothing after that
            await send(message)

        try:
            await self._app(scope, replayed, closing)
        finally:
            await self._close()

    async def _close(self) -> None:
        import anyio

        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._guard.close)

    async def _started(self) -> Works:
        works = await self._guard.astarted()
        if works.speaks_for_child:
            raise ConfigError(
                "a tool server's guard needs a client of its own: set CARNET_CLIENT_ID and its key or secret"
            )
        return works

    def _refused(self, works: Works, fault: Refused, *, presented: bool) -> Answer:
        book = works.state.book
        audience = None if book is None else book.audience
        if CATALOGUE[fault.reason].status >= 500:
            return problem_of(fault)
        if fault.reason is Reason.REQUEST_INVALID:
            return unauthorised(fault, audience, "invalid_request")
        return unauthorised(fault, audience, "invalid_token" if presented else None)

    async def _metadata(self, scope: Scope) -> Answer:
        book = (await self._started()).state.book
        if book is None:
            return problem_of(Refused(Reason.NOT_READY))
        url = metadata_url(book.audience)
        path = "" if url is None else "/" + url.partition("://")[2].partition("/")[2]
        if scope["path"] not in (path, _WELL_KNOWN) or scope["method"] not in ("GET", "HEAD"):
            return 404, {"cache-control": "no-store"}, b""
        return 200, {"content-type": "application/json"}, metadata(book.issuer, book.audience, book.tools)


def _presented(scope: Scope) -> tuple[str, Refused | None]:
    """The one bearer token of the request (RFC 6750 §2.1), or why there is none. Never from the query or the body."""
    sent = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    if not sent:
        return "", Refused(Reason.TOKEN_MISSING)
    if len(sent) > 1:
        return "-", Refused(Reason.REQUEST_INVALID, "the request carries more than one Authorization header")
    scheme, _, token = sent[0].partition(b" ")
    if scheme.lower() != b"bearer":
        return "", Refused(Reason.TOKEN_MISSING, "the Authorization header carries no Bearer token")
    return token.strip(b" ").decode("latin-1"), None


def _trace(scope: Scope) -> Trace | None:
    return extract(list(_texts(scope, b"traceparent")), list(_texts(scope, b"tracestate")))


def _texts(scope: Scope, wanted: bytes) -> Iterable[str]:
    return (value.decode("latin-1") for name, value in scope["headers"] if name.lower() == wanted)


async def _answer(send: Send, scope: Scope, answer: Answer) -> None:
    status, headers, body = answer
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": str(status)})
        return
    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})
