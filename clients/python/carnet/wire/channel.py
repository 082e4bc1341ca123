"""The blocking connection of one owner to the broker: one pooled client, made on first use, safe for threads."""

import os
import random
import threading
import time
from typing import TYPE_CHECKING, Any

from carnet.errors import Unavailable
from carnet.wire.answer import Body, document
from carnet.wire.ask import Ask
from carnet.wire.place import base
from carnet.wire.retry import pauses

if TYPE_CHECKING:
    import httpx2

__all__ = ["Channel"]

_CONNECTIONS, _KEPT = 256, 64  # more than a guard has threads, so that a call never waits for a connection


class Channel:
    """url: the broker's address. timeout: seconds for one sending, besides what the ask waits for."""

    def __init__(self, url: str, *, timeout: float, transport: "httpx2.BaseTransport | None" = None) -> None:
        self.url = base(url)
        self._timeout = timeout
        self._transport = transport
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._client: httpx2.Client | None = None
        self._random = random.SystemRandom()

    def send(self, ask: Ask) -> dict[str, Any]:
        """The answer's document. Raises Refused or Unavailable; tries again where that is safe."""
        pausing, until = pauses(ask, self._random.random), time.monotonic() + self._timeout
        while True:
            try:
                return self._once(ask)
            except Unavailable as failed:
                pause = next(pausing, None)
                if pause is None or time.monotonic() + pause > until:
                    raise
                time.sleep(max(pause, min(failed.retry_after or 0.0, 1.0)))

    def _once(self, ask: Ask) -> dict[str, Any]:
        import httpx2

        timeout = (ask.timeout if ask.timeout is not None else self._timeout) + ask.wait
        body = Body(time.monotonic() + timeout)
        try:
            with self.client().stream(
                ask.method,
                self.url + ask.path,
                headers=ask.headers(),
                params=dict(ask.query) or None,
                json=ask.json,
                data=dict(ask.form) if ask.form is not None else None,
                timeout=timeout,
            ) as answer:
                for part in answer.iter_bytes():
                    body.add(part, time.monotonic())
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as failed:
            raise Unavailable(f"the broker at {self.url} did not answer ({type(failed).__name__})") from None
        return document(answer.status_code, answer.headers, body.whole())

    def client(self) -> "httpx2.Client":
        """The pooled HTTP client; made on first use because its TLS context costs 50 ms."""
        if self._pid != os.getpid():
            self.forget()
        with self._lock:
            if self._client is None:
                import httpx2

                limits = httpx2.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_KEPT)
                self._client = httpx2.Client(timeout=self._timeout, transport=self._transport, limits=limits)
            return self._client

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def forget(self) -> None:
        """Drop the connections without closing them: after a fork they belong to the parent process too."""
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._client = None
