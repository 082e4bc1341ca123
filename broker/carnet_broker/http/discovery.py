"""Metadata (RFC 8414), keys (RFC 7517) and health: what anybody may read."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from carnet_broker.http import render
from carnet_broker.service.facade import Service

__all__ = ["Discovery", "metadata"]

_AUTH_METHODS = ["private_key_jwt", "client_secret_basic", "client_secret_post"]
_JWKS_SECONDS = 60


def metadata(issuer: str) -> dict[str, Any]:
    """The authorization server metadata. Everything in it is implemented; nothing implemented is missing.

    `authorization_endpoint` and `response_types_supported` are there because MCP clients refuse metadata without them;
    that endpoint always answers with an error.
    """
    base = issuer.removesuffix("/")
    auth = {"methods": _AUTH_METHODS, "algs": ["ES256"]}
    document: dict[str, Any] = {
        "issuer": issuer,
        "authorization_endpoint": f"{base}/oauth2/authorize",
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "response_types_supported": ["none"],
        "grant_types_supported": ["client_credentials"],
        "scopes_supported": ["guard"],
    }
    for name in ("token", "revocation", "introspection"):
        path = {"token": "token", "revocation": "revoke", "introspection": "introspect"}[name]
        document[f"{name}_endpoint"] = f"{base}/oauth2/{path}"
        document[f"{name}_endpoint_auth_methods_supported"] = auth["methods"]
        document[f"{name}_endpoint_auth_signing_alg_values_supported"] = auth["algs"]
    return document


class Discovery:
    """fallen: names of background tasks that have ended; a broker without its upkeep is not ready. notices: what does
    not make it unready."""

    def __init__(
        self, service: Service, issuer: str, fallen: Callable[[], list[str]], notices: Callable[[], list[str]]
    ) -> None:
        self._service = service
        self._metadata = render.dumps(metadata(issuer))
        self._path = urlsplit(issuer).path.rstrip("/")
        self._fallen, self._notices = fallen, notices

    def routes(self) -> list[Route]:
        # RFC 8414 §3.1 puts the well-known part between host and path; clients also try the OpenID forms, one of which
        # has the path in front: there the frame has taken it away.
        names = ("oauth-authorization-server", "openid-configuration")
        paths = {f"/.well-known/{name}{self._path}" for name in names}
        paths |= {f"/.well-known/{name}" for name in names}
        wellknown = [Route(path, self.metadata, methods=["GET"]) for path in sorted(paths)]
        return [
            *wellknown,
            Route("/.well-known/jwks.json", self.jwks, methods=["GET"]),
            Route("/healthz", self.health, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
        ]

    async def metadata(self, _: Request) -> Response:
        return Response(self._metadata, media_type="application/json")

    async def jwks(self, _: Request) -> Response:
        cached = {"cache-control": f"public, max-age={_JWKS_SECONDS}"}
        return Response(render.dumps(self._service.jwks()), headers=cached, media_type="application/jwk-set+json")

    async def health(self, _: Request) -> Response:
        return render.json_answer({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        problems = [f"the background task {name} has ended" for name in self._fallen()]
        problems += await self._service.problems()
        status = "not ready" if problems else "ready"
        return render.json_answer(
            {"status": status, "problems": problems, "notices": self._notices()}, 503 if problems else 200
        )
