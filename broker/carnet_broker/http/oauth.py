"""The OAuth endpoints: token, revocation, introspection. RFC 6749 JSON, never problem details."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from carnet.reasons import Reason, Refusal
from carnet_broker.http import render
from carnet_broker.http.client_auth import authenticate
from carnet_broker.http.errors import NO_STORE, oauth_error
from carnet_broker.http.intake import form
from carnet_broker.http.limits import DEFAULT
from carnet_broker.http.pace import Pace
from carnet_broker.http.refusal_log import RefusalLog
from carnet_broker.service.facade import Service
from carnet_broker.service.principals import Principal

__all__ = ["OAuth"]

Fields = Mapping[str, str]
Handler = Callable[[Principal, Fields, str], Awaitable[Response | Refusal]]
_GUARD_SCOPE = "guard"


class OAuth:
    """pace: how often one client may ask for tokens. log: is told of clients that proved nothing."""

    def __init__(self, service: Service, pace: Pace, log: RefusalLog) -> None:
        self._service = service
        self._pace = pace
        self._log = log

    def routes(self) -> list[Route]:
        return [
            Route("/oauth2/token", self._authenticated(self.token), methods=["POST"]),
            Route("/oauth2/revoke", self._authenticated(self.revoke), methods=["POST"]),
            Route("/oauth2/introspect", self._authenticated(self.introspect), methods=["POST"]),
            Route("/oauth2/authorize", self.authorize, methods=["GET", "POST"]),
        ]

    def _authenticated(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            answer = await self._answer(handler, request)
            basic = request.headers.get("authorization", "")[:6].lower() == "basic "
            return oauth_error(answer, basic=basic) if isinstance(answer, Refusal) else answer

        return serve

    async def _answer(self, handler: Handler, request: Request) -> Response | Refusal:
        fields = await form(request, DEFAULT.body_default)
        if isinstance(fields, Refusal):
            return fields
        who = await authenticate(self._service, request, fields)
        if isinstance(who, Refusal):
            self._log.note(request.url.path, who.reason, request.state.trace)
            return who
        return await handler(who, fields, request.state.trace)

    async def token(self, who: Principal, fields: Fields, trace: str) -> Response | Refusal:
        if "grant_type" not in fields:
            return Refusal(Reason.REQUEST_INVALID, "grant_type is missing")
        if fields["grant_type"] != "client_credentials":
            return Refusal(Reason.GRANT_UNSUPPORTED)
        if not self._pace.allow(who.client):
            return Refusal(Reason.TOO_MANY_REQUESTS)
        scope = fields.get("scope")
        if scope is None:
            made = await self._service.open_run(who, fields.get("run_id"), trace)
        elif scope == _GUARD_SCOPE and "run_id" not in fields:
            made = await self._service.guard_token(who, trace)
        else:
            return Refusal(Reason.SCOPE_NOT_GRANTABLE, "the only scope that can be asked for is guard")
        return made if isinstance(made, Refusal) else _no_cache(render.json_answer(render.issued(made)))

    async def revoke(self, who: Principal, fields: Fields, trace: str) -> Response | Refusal:
        if "token" not in fields:
            return Refusal(Reason.REQUEST_INVALID, "token is missing")
        refused = await self._service.revoke_token(who, fields["token"], trace)
        return refused if isinstance(refused, Refusal) else Response(status_code=200, headers=NO_STORE)

    async def introspect(self, who: Principal, fields: Fields, _: str) -> Response | Refusal:
        if "token" not in fields:
            return Refusal(Reason.REQUEST_INVALID, "token is missing")
        return _no_cache(render.json_answer(await self._service.introspect(who, fields["token"])))

    async def authorize(self, _: Request) -> Response:
        """No code flow exists here. The endpoint answers because clients refuse metadata that does not name one."""
        text = "this server has no authorization endpoint flow: use client_credentials at the token endpoint"
        body = {"error": "unsupported_response_type", "error_description": text}
        return render.json_answer(body, 400)


def _no_cache(response: Response) -> Response:
    response.headers["pragma"] = "no-cache"
    return response
