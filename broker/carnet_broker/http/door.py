"""A door: one method of one path, who may come in, what it brings, and the handler that asks one use case.

The order is the same at every door: the bearer first, then the query, then the body, so that nobody unknown makes the
broker parse anything. A handler answers a response or a refusal; doors are also what the OpenAPI document is made from.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.http.errors import problem
from carnet_broker.http.intake import bearer, json_object, query
from carnet_broker.http.limits import DEFAULT
from carnet_broker.http.patience import Patience
from carnet_broker.http.refusal_log import RefusalLog
from carnet_broker.service.facade import Service
from carnet_broker.service.principals import Bearer, Principal

__all__ = ["Ask", "Body", "Door", "Doors", "Nothing", "Query", "get", "post", "route"]


class Body(BaseModel):
    """A JSON body: exact types, no unknown member."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"  # bodies carry tokens, passphrases and arguments


class Query(BaseModel):
    """Query parameters, read from text; no unknown one."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Nothing(Query):
    """No body, or no query."""


C = TypeVar("C")
B = TypeVar("B", bound=BaseModel)
Q = TypeVar("Q", bound=BaseModel)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask(Generic[C, B, Q]):
    """One request at a door. token: the bearer as it was sent."""

    request: Request = field(repr=False)
    token: str = field(repr=False)
    caller: C
    body: B = field(repr=False)
    query: Q

    @property
    def trace(self) -> str:
        return str(self.request.state.trace)

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def header(self, name: str) -> str | None:
        return self.request.headers.get(name)

    async def patient(self, use: Callable[[float], Awaitable[T]], seconds: float) -> T:
        """Wait in the use case, but not longer than the server lives: on shutdown it is asked again without a wait. A
        caller who has too many requests waiting already is answered at once."""
        stopping: asyncio.Event = self.request.app.state.stopping
        if seconds <= 0 or stopping.is_set():
            return await use(0)
        with self.held() as granted:
            return await self._waited(use, seconds, stopping) if granted else await use(0)

    def held(self) -> AbstractContextManager[bool]:
        """Whether this request may be held open; it counts as held inside the block."""
        patience: Patience = self.request.app.state.patience
        return patience.held(cast(Claims | Principal, self.caller))

    async def _waited(self, use: Callable[[float], Awaitable[T]], seconds: float, stopping: asyncio.Event) -> T:
        asking = asyncio.ensure_future(use(seconds))
        stopped = asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait({asking, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else await use(0)
        finally:
            stopped.cancel()
            asking.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Door(Generic[C, B, Q]):
    """accept: the kinds of bearer; empty = nobody is asked who they are. cap: most bytes of a body."""

    method: str
    path: str
    handler: Callable[[Ask[C, B, Q]], Awaitable[Response | Refusal]]
    summary: str
    accept: frozenset[Bearer] = frozenset()
    body: type[B] | None = None
    query: type[Q] | None = None
    cap: int = DEFAULT.body_default
    status: int = 200


Doors = list[Door[Any, Any, Any]]
Handler = Callable[[Ask[Any, Any, Any]], Awaitable[Response | Refusal]]


def get(
    path: str, handler: Handler, summary: str, accept: Collection[Bearer], query: type[BaseModel] | None = None
) -> Door[Any, Any, Any]:
    """A door that shows something."""
    return Door(method="GET", path=path, handler=handler, summary=summary, accept=frozenset(accept), query=query)


def post(
    path: str,
    handler: Handler,
    summary: str,
    accept: Collection[Bearer],
    body: type[BaseModel] | None = None,
    *,
    cap: int = DEFAULT.body_default,
    status: int = 200,
) -> Door[Any, Any, Any]:
    """A door that changes something. cap: most bytes of the body. status: of the usual answer."""
    return Door(
        method="POST",
        path=path,
        handler=handler,
        summary=summary,
        accept=frozenset(accept),
        body=body,
        cap=cap,
        status=status,
    )


def route(service: Service, doors: Doors, log: RefusalLog) -> Route:
    """One route for all methods of a path. log: is told of callers who proved nothing."""
    by_method = {door.method: door for door in doors}

    async def serve(request: Request) -> Response:
        door = by_method["GET" if request.method == "HEAD" else request.method]
        answer = await _through(service, door, request, log)
        return problem(answer, request.state.trace) if isinstance(answer, Refusal) else answer

    return Route(doors[0].path, serve, methods=list(by_method))


async def _through(
    service: Service, door: Door[Any, Any, Any], request: Request, log: RefusalLog
) -> Response | Refusal:
    token, caller = "", None
    if door.accept:
        sent = bearer(request)
        if isinstance(sent, Refusal):
            return sent
        token, caller = sent, await service.caller(sent, door.accept)
        if isinstance(caller, Refusal):
            log.note(door.path, caller.reason, request.state.trace)
            return caller
    asked = _query(door, request)
    if isinstance(asked, Refusal):
        return asked
    body = await _body(door, request)
    if isinstance(body, Refusal):
        return body
    return await door.handler(Ask(request, token, caller, body, asked))


def _query(door: Door[Any, Any, Q], request: Request) -> Q | Refusal:
    model = door.query or cast(type[Q], Nothing)
    if not request.url.query and door.query is None:
        return model()
    values = query(request, model.model_fields)
    return values if isinstance(values, Refusal) else _validated(model, values)


async def _body(door: Door[Any, B, Any], request: Request) -> B | Refusal:
    if door.body is None:
        return cast(B, Nothing())
    value = await json_object(request, door.cap)
    if isinstance(value, Refusal):
        return value
    if "tenant" in value and "tenant" not in door.body.model_fields:
        return Refusal(Reason.TENANT_MISMATCH)
    return _validated(door.body, value)


def _validated(model: type[T], value: dict[str, Any]) -> T | Refusal:
    try:
        return cast(T, cast(type[BaseModel], model).model_validate(value))
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        return Refusal(Reason.REQUEST_INVALID, f"{where}: {first['msg']}" if _plain(where) else first["msg"])


def _plain(where: str) -> bool:
    """Whether the place of a fault may be repeated: names that a caller made up are not, they may be anything."""
    return where.isascii() and where.replace("_", "").replace(".", "").isalnum()
