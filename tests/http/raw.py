"""HTTP over a bare socket: what no client library would send."""

import json
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Answer", "connect", "exchange", "read_answer"]


@dataclass(frozen=True)
class Answer:
    """status 0: the connection was closed without an answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def connect(url: str, timeout: float = 10) -> socket.socket:
    parts = urlsplit(url)
    sock = socket.create_connection((parts.hostname, parts.port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def read_answer(sock: socket.socket) -> Answer:
    """One answer; a reset counts as closed."""
    data = b""
    with suppress(ConnectionError):
        while b"\r\n\r\n" not in data:
            chunk = sock.recv(65536)
            if not chunk:
                break
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        headers = dict(_header(line) for line in head.split(b"\r\n")[1:])
        while len(body) < int(headers.get("content-length", 0)):
            chunk = sock.recv(65536)
            if not chunk:
                break
            body += chunk
        if head:
            return Answer(int(head.split(b" ")[1]), headers, body)
    return Answer(0, {}, b"")


def exchange(url: str, data: bytes, timeout: float = 10) -> Answer:
    """Send all bytes, if the server lets us, and read one answer."""
    with connect(url, timeout) as sock:
        with suppress(ConnectionError, TimeoutError):
            sock.sendall(data)
        return read_answer(sock)


def _header(line: bytes) -> tuple[str, str]:
    name, _, value = line.partition(b":")
    return name.decode().lower(), value.strip().decode()
