"""FastAPI as a tool server: `guard.install(app)` before the first route, `@guard.tool` below each route decorator.

An app-wide dependency runs before every other and refuses an endpoint that no guard owns and a tool outside the token's
scope, before any of the endpoint's own dependencies does anything. What FastAPI's dependencies can't cover (mounts,
plain Starlette routes) keeps the application from starting, unless its full path template is named in `unguarded=`.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterator, MutableMapping
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, compile_path
from starlette.websockets import WebSocket

from carnet.adapters.answers import challenge, problem_of
from carnet.adapters.edge import Edge
from carnet.audit import Kind
from carnet.current import Holder, current_child
from carnet.errors import ConfigError, Interrupted, Refused, Unavailable, refused
from carnet.guard.binding import Frozen
from carnet.guard.guard import Guard
from carnet.reasons import Reason, Refusal

__all__ = ["install"]


def install(guard: Guard, app: FastAPI, unguarded: Collection[str] = ()) -> None:
    """Put the guard into an application. ConfigError if a route stands there already: it would have no gate."""
    documentation = _documentation(app)
    if any(id(route) not in documentation for route in app.routes):
        raise ConfigError("install the guard before the first route: routes made earlier would have no gate")
    opened = _Open(guard, app, unguarded, documentation)
    # A closure, because FastAPI's dependency_overrides can switch off a dependency that others can name.
    gate = Depends(_gate(guard, opened))
    app.router.dependencies.insert(0, gate)  # before those that the application was made with
    app.add_middleware(Edge, guard=guard, opened=opened.passes, check=_check(app, gate, opened), place=opened.place)
    told: Any = _told  # one handler for requests and websockets, which Starlette's annotation does not know
    for kind in (Refused, Unavailable, Interrupted):
        app.add_exception_handler(kind, told)


class _Open:
    """Which requests need no token: documentation pages, and the templates that were named. endpoints: ids of the
    functions that routes with these very templates call; another route that only matches the same path is not open.
    routes: all there are, with their full templates."""

    def __init__(self, guard: Guard, app: FastAPI, unguarded: Collection[str], documentation: Collection[int]) -> None:
        self._guard = guard
        self.documentation = documentation
        self.templates = frozenset(unguarded)
        bad = [template for template in unguarded if not template.startswith("/")]
        if bad:
            raise ConfigError(f"unguarded= takes full path templates such as /status/{{id}}, not {bad}")
        self._patterns: list[re.Pattern[str]] = [compile_path(template)[0] for template in unguarded]
        pages = (app.openapi_url, app.docs_url, app.redoc_url, app.swagger_ui_oauth2_redirect_url)
        self._pages = frozenset(page for page in pages if page is not None)
        self.endpoints: frozenset[int] = frozenset()
        self.routes: list[tuple[BaseRoute, str]] = []

    def passes(self, scope: MutableMapping[str, Any]) -> bool:
        path = _path(scope)
        page = path in self._pages and scope.get("method") in ("GET", "HEAD")
        return page or any(pattern.match(path) for pattern in self._patterns)

    def place(self, scope: MutableMapping[str, Any]) -> str:
        """What a request is for: a tool's name, else a route's template; never the path that was asked for."""
        path, endpoint, method = _path(scope), scope.get("endpoint"), scope.get("method")
        for route, template in self.routes:
            own = getattr(route, "endpoint", None)
            takes = getattr(route, "methods", None) or (method,)
            if (endpoint is own if endpoint is not None else method in takes) and compile_path(template)[0].match(path):
                return self._guard.owned(own) or template
        return self._guard.owned(endpoint) or ""


def _path(scope: MutableMapping[str, Any]) -> str:
    """The path below where the application is mounted, which is what its route templates describe."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(root + "/") else path


def _documentation(app: FastAPI) -> frozenset[int]:
    """The routes that FastAPI makes for its documentation: they exist before any other."""
    pages = {app.openapi_url, app.docs_url, app.redoc_url, app.swagger_ui_oauth2_redirect_url}
    plain = (route for route in app.routes if not isinstance(route, APIRoute | Mount))
    return frozenset(id(route) for route in plain if getattr(route, "path", None) in pages)


def _gate(guard: Guard, opened: _Open) -> Callable[[HTTPConnection], Any]:
    async def carnet_gate(connection: HTTPConnection) -> None:
        endpoint = connection.scope.get("endpoint")
        if id(endpoint) in opened.endpoints and opened.passes(connection.scope):  # its other routes are not open
            return
        tool, holder = guard.owned(endpoint), current_child()
        if tool is None:
            refusal = Refusal(Reason.UNGUARDED_ROUTE)
        elif holder is None or tool not in holder.tools:
            refusal = Refusal(Reason.SCOPE_MISSING, f"the token's scope does not cover {tool}")
        else:
            return
        if holder is not None:
            await _turn_away(guard, holder, tool, opened.place(connection.scope), refusal)
        raise refused(refusal)

    return carnet_gate


async def _turn_away(guard: Guard, holder: Holder, tool: str | None, place: str, refusal: Refusal) -> None:
    """Put what the gate refuses on record; the arguments were not read yet."""
    dispatch = (await guard.astarted()).dispatch
    if tool is not None:
        dispatch.turn_tool_away(holder, tool, Frozen({}, (), {}), refusal)
    else:
        dispatch.turn_away(holder.token(""), place, refusal, kind=Kind.UNGUARDED, trace=holder.trace)


def _check(app: FastAPI, gate: Any, opened: _Open) -> Callable[[], None]:
    """Looks the routes through whenever they are others than before: some are added after the first request."""
    seen: list[BaseRoute] = []

    def check() -> None:
        walked = list(_walk(app.router, "", gate, behind=False))
        found = [route for route, _, _ in walked]
        if len(found) == len(seen) and all(map(operator.is_, found, seen)):
            return
        for route, path, behind in walked:
            _coverable(route, path, opened, behind=behind)
        named = (route for route, path, _ in walked if path in opened.templates)
        opened.endpoints = frozenset(id(getattr(route, "endpoint", route)) for route in named)
        opened.routes = [(route, path) for route, path, _ in walked]
        seen[:] = found

    return check


def _walk(router: Any, prefix: str, gate: Any, *, behind: bool) -> Iterator[tuple[BaseRoute, str, bool]]:
    """Every route with its full path template and whether the gate is among its dependencies, those of included routers
    and of front-end folders too. behind: whether the gate stands before all of this router."""
    for route in (*router.routes, *getattr(router, "_low_priority_routes", ())):
        included = getattr(route, "original_router", None)
        if included is None:
            own = any(one is gate for one in getattr(route, "dependencies", ()))
            yield route, prefix + str(getattr(route, "path", "")), behind or own
        else:
            context: Any = getattr(route, "include_context")  # noqa: B009 - FastAPI's own, without a type
            inner = behind or any(one is gate for one in context.dependencies)
            yield from _walk(included, prefix + str(getattr(context, "prefix", "")), gate, behind=inner)


def _coverable(route: BaseRoute, path: str, opened: _Open, *, behind: bool) -> None:
    if id(route) in opened.documentation:
        return
    template = f"{path}/{{path:path}}" if isinstance(route, Mount) else path
    if template in opened.templates:
        return
    if not isinstance(route, APIRoute | APIWebSocketRoute):
        raise ConfigError(
            f"{type(route).__name__} {path or route!r} can't be guarded: FastAPI's dependencies do not reach it; make "
            f"it a FastAPI route, or name {template!r} in unguarded="
        )
    if not behind:
        raise ConfigError(
            f"{type(route).__name__} {path!r} was put into the list of routes by hand, so the gate is not among its "
            f"dependencies; use the application's own methods or include_router, or name {template!r} in unguarded="
        )


async def _told(connection: Request | WebSocket, fault: Exception) -> Response | None:
    if isinstance(connection, WebSocket):
        await connection.close(1008)
        return None
    if not isinstance(fault, Refused | Unavailable | Interrupted):
        raise fault
    status, headers, body = problem_of(fault)
    if isinstance(fault, Refused) and fault.reason is Reason.SCOPE_MISSING:
        headers["www-authenticate"] = challenge(None, "insufficient_scope")
    return Response(body, status, headers)
