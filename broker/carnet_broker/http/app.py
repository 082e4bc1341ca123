"""The broker's ASGI application: every door and endpoint, made from a service. Nothing global, nothing at import."""

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from carnet.clock import SystemClock
from carnet.reasons import Reason, Refusal
from carnet_broker.http.delegations import Delegations
from carnet_broker.http.discovery import Discovery
from carnet_broker.http.door import Doors, route
from carnet_broker.http.feed import FeedDoors
from carnet_broker.http.followers import Followers
from carnet_broker.http.frame import Frame, refused
from carnet_broker.http.guards import Guards
from carnet_broker.http.limits import DEFAULT, Limits
from carnet_broker.http.oauth import OAuth
from carnet_broker.http.openapi import describe_doors
from carnet_broker.http.operators import Operators
from carnet_broker.http.pace import Pace
from carnet_broker.http.patience import Patience
from carnet_broker.http.refusal_log import RefusalLog
from carnet_broker.http.render import dumps
from carnet_broker.service.facade import Service

__all__ = ["create_app"]


def create_app(
    service: Service,
    *,
    issuer: str,
    limits: Limits = DEFAULT,
    fallen: Callable[[], list[str]] = list,
    notices: Callable[[], list[str]] = list,
    clock: Callable[[], float] | None = None,
    hosts: frozenset[str] | None = None,
) -> FastAPI:
    """issuer: the public base URL, exactly as configured. fallen: names of background tasks that have ended.
    notices: what is not as it should be and yet no reason to stop, one sentence each.
    clock: monotonic seconds. hosts: the only Host headers that are answered, None for any.

    `app.state.stopping` is an event that ends streams and waits; whoever runs the server sets it first.
    """
    app = FastAPI(title="Carnet", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.stopping = asyncio.Event()
    app.state.patience = Patience(limits.connections)
    ticks = clock or SystemClock().mono
    doors = _doors(service, ticks)
    log = RefusalLog(ticks)
    tokens = OAuth(service, Pace(ticks, burst=limits.tokens_burst, rate=limits.tokens_rate), log)
    app.router.routes.extend(tokens.routes())
    app.router.routes.extend(_routes(service, doors, log))
    app.router.routes.extend(Discovery(service, issuer, fallen, notices).routes())
    app.router.routes.append(_openapi(describe_doors(doors, issuer)))
    app.add_exception_handler(HTTPException, _missed)
    app.add_middleware(Frame, limits=limits, prefix=urlsplit(issuer).path.rstrip("/"), hosts=hosts)
    return app


def _doors(service: Service, clock: Callable[[], float]) -> Doors:
    attempts = Pace(clock, burst=60, rate=1)
    return [
        *Guards(service).doors(),
        *FeedDoors(service, Followers(service, clock)).doors(),
        *Delegations(service).doors(),
        *Operators(service, attempts).doors(),
    ]


def _routes(service: Service, doors: Doors, log: RefusalLog) -> list[Route]:
    order = {door.path: index for index, door in reversed(list(enumerate(doors)))}
    ordered = sorted(doors, key=lambda door: order[door.path])
    return [route(service, list(group), log) for _, group in groupby(ordered, key=lambda door: door.path)]


def _openapi(document: dict[str, Any]) -> Route:
    body = dumps(document)

    async def serve(_: Request) -> Response:
        return Response(body, media_type="application/json")

    return Route("/openapi.json", serve, methods=["GET"])


async def _missed(request: Request, fault: Exception) -> Response:
    """No such path, or no such method of it."""
    status = fault.status_code if isinstance(fault, HTTPException) else 404
    if status == 405:
        allowed = {"allow": ", ".join(_methods(request))}
        answer = refused(request.url.path, Refusal(Reason.METHOD_NOT_ALLOWED), request.state.trace)
        answer.headers.update(allowed)
        return answer
    return refused(request.url.path, Refusal(Reason.NOT_FOUND, "there is nothing at this path"), request.state.trace)


def _methods(request: Request) -> list[str]:
    found: set[str] = set()
    for candidate in request.app.router.routes:
        if isinstance(candidate, Route) and candidate.matches(request.scope)[0] is not Match.NONE:
            found |= candidate.methods or set()
    return sorted(found)
