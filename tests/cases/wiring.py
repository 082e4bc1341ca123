"""The wire between the guard and the broker, in the runner's hand: counted, cut, held, or made to lose answers."""

import json
import threading
from contextvars import ContextVar
from urllib.parse import urlsplit

import httpx2

__all__ = ["Held", "Wire", "naming"]

CALLS, KEYS = "/v1/calls", "/.well-known/jwks.json"
naming: ContextVar[str | None] = ContextVar("named_approval", default=None)  # the approval that the next call names


class Held:
    """One call stopped between the broker's answer and the tool."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._go = threading.Event()

    def release(self) -> None:
        self._go.set()

    def pass_by(self) -> None:
        self.reached.set()
        self._go.wait(timeout=30)


class Wire(httpx2.BaseTransport):
    """A real transport that the runner can disturb."""

    def __init__(self) -> None:
        self._inner = httpx2.HTTPTransport()
        self.fetched_keys = 0
        self.keys_down = False
        self.lose_answers = False
        self.held: Held | None = None
        self.outside: list[str] = []  # requests to anybody but the broker
        self.broker = ""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if not str(request.url).startswith(self.broker):
            self.outside.append(urlsplit(str(request.url)).netloc)
        if path.endswith(KEYS):
            self.fetched_keys += 1
            if self.keys_down:
                raise httpx2.ConnectError("the key endpoint is down", request=request)
        decides = request.method == "POST" and path.endswith(CALLS)
        if decides and naming.get() is not None:
            request = _named(request, str(naming.get()))
        answer = self._inner.handle_request(request)
        if decides and self.lose_answers:
            answer.read()
            answer.close()
            raise httpx2.ReadError("the answer got lost", request=request)
        if decides and self.held is not None:
            held, self.held = self.held, None
            answer.read()
            held.pass_by()
        return answer

    def close(self) -> None:
        self._inner.close()


def _named(request: httpx2.Request, approval: str) -> httpx2.Request:
    """The same request, naming an approval, as a guard of another language may."""
    body = {**json.loads(request.read()), "approval_id": approval}
    headers = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
    return httpx2.Request(request.method, request.url, headers=headers, json=body, extensions=dict(request.extensions))
