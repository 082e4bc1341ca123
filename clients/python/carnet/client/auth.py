"""`child.auth(host)`: puts a child's token on requests to that host, and on no others."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import cast

import httpx2

from carnet.errors import CarnetError, ConfigError
from carnet.wire.answer import token_refused
from carnet.wire.place import origin

__all__ = ["ChildAuth", "allowed_origin"]

Origin = tuple[str, str, int]
Renew = Callable[[], str] | Callable[[], Awaitable[str]]


class ChildAuth(httpx2.Auth):
    """For both kinds of client. token: the child's token now. renew: fetches it anew, over the broker's own connection,
    for the tool's client must never carry the run's token. span: the traceparent of a new span of the run's trace, for
    requests that carry none yet."""

    def __init__(self, token: Callable[[], str], renew: Renew, allowed: Origin, span: Callable[[], str]) -> None:
        self._token, self._renew, self._allowed, self._span = token, renew, allowed, span

    def sync_auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Send; after a 401 `invalid_token` (a key was rotated) send once more with a fetched token."""
        answer = yield self._signed(request, self._token())
        if not _stale(answer) or inspect.iscoroutinefunction(self._renew):
            return
        try:
            token = cast(Callable[[], str], self._renew)()
        except CarnetError:
            return  # there is no other token: the host's answer says why
        yield self._signed(request, token)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """As `sync_auth_flow`."""
        answer = yield self._signed(request, self._token())
        if not _stale(answer):
            return
        try:
            token = await self._renewed()
        except CarnetError:
            return
        yield self._signed(request, token)

    async def _renewed(self) -> str:
        if inspect.iscoroutinefunction(self._renew):
            return str(await self._renew())
        import anyio

        return await anyio.to_thread.run_sync(cast(Callable[[], str], self._renew))

    def _signed(self, request: httpx2.Request, token: str) -> httpx2.Request:
        asked = origin(str(request.url))
        if asked != self._allowed:
            scheme, host, port = self._allowed
            raise ConfigError(
                f"{request.url.scheme}://{request.url.host} is not {scheme}://{host}:{port}: a child's token goes to "
                "its host only; pass auth(host, origin=...) where the host is reached under another address"
            )
        request.headers["authorization"] = f"Bearer {token}"
        if "traceparent" not in request.headers:
            request.headers["traceparent"] = self._span()
        return request


def allowed_origin(audience: str, given: str | None) -> Origin:
    """Where tokens of this audience may go. ConfigError when that can't be told."""
    found = origin(given if given is not None else audience)
    if found is None:
        what = given if given is not None else audience
        raise ConfigError(f"{what!r} is no http(s) address: pass auth(host, origin='https://...')")
    return found


def _stale(answer: httpx2.Response) -> bool:
    return token_refused(answer.status_code, answer.headers)
