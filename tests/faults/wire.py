"""One kept-alive connection to a server, with as little between as possible: load must come from few cores."""

import base64
import json
import socket
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from tests.faults.scene import OPERATOR, PASSPHRASE, SECRETS, TENANT

__all__ = ["Answer", "Gone", "Wire"]

Answer = tuple[int, dict[str, Any]]


class Gone(Exception):
    """The server did not answer: whether it acted is unknown."""


class Wire:
    """Not thread-safe. Raises Gone when the server dies or does not answer in `timeout` seconds."""

    def __init__(self, port: int, timeout: float = 20.0) -> None:
        self._port, self._timeout = port, timeout
        self._connection: HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def post(self, path: str, token: str, body: Mapping[str, Any], **headers: str) -> Answer:
        sent = {"authorization": f"Bearer {token}", "content-type": "application/json", **headers}
        return self._ask("POST", path, json.dumps(body).encode(), sent)

    def get(self, path: str, token: str = "") -> Answer:
        return self._ask("GET", path, None, {"authorization": f"Bearer {token}"} if token else {})

    def form(self, path: str, client: str, **fields: str) -> Answer:
        basic = base64.b64encode(f"{client}:{SECRETS[client]}".encode()).decode()
        sent = {"authorization": f"Basic {basic}", "content-type": "application/x-www-form-urlencoded"}
        return self._ask("POST", path, urlencode(fields).encode(), sent)

    def root(self) -> dict[str, Any]:
        """A new run of the agent `lead`."""
        return _good(self.form("/oauth2/token", "lead-app", grant_type="client_credentials"))

    def guard(self, client: str = "desk-server") -> str:
        answer = self.form("/oauth2/token", client, grant_type="client_credentials", scope="guard")
        return str(_good(answer)["access_token"])

    def session(self) -> str:
        body = {"tenant": TENANT, "operator": OPERATOR, "passphrase": PASSPHRASE}
        return str(_good(self.post("/v1/sessions", "none", body))["access_token"])

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        try:
            if self._connection is None:
                self._connection = HTTPConnection("127.0.0.1", self._port, timeout=self._timeout)
                self._connection.connect()
                self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connection.request(method, path, body, dict(headers))
            answer = self._connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException) as fault:
            self.close()
            raise Gone(str(fault)) from None
        return answer.status, json.loads(data) if data else {}


def _good(answer: Answer) -> dict[str, Any]:
    status, body = answer
    assert status == 200, body
    return body
