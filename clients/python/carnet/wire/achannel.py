"""The asynchronous connection of one owner to the broker; says and does what `wire.channel` does."""

import random
import time
from typing import TYPE_CHECKING, Any

from carnet.errors import Unavailable
from carnet.wire.answer import Body, document
from carnet.wire.ask import Ask
from carnet.wire.place import base
from carnet.wire.retry import pauses

if TYPE_CHECKING:
    import httpx2

__all__ = ["AsyncChannel"]


class AsyncChannel:
    """url: the broker's address. timeout: seconds for one sending, besides what the ask waits for."""

    def __init__(self, url: str, *, timeout: float, transport: "httpx2.AsyncBaseTransport | None" = None) -> None:
        self.url = base(url)
        self._timeout = timeout
        self._transport = transport
        self._client: httpx2.AsyncClient | None = None
        self._random = random.SystemRandom()

    async def send(self, ask: Ask) -> dict[str, Any]:
        """The answer's document. Raises Refused or Unavailable; tries again where that is safe."""
        import anyio

        pausing, until = pauses(ask, self._random.random), time.monotonic() + self._timeout
        while True:
            try:
                return await self._once(ask)
            except Unavailable as failed:
                pause = next(pausing, None)
                if pause is None or time.monotonic() + pause > until:
                    raise
                await anyio.sleep(max(pause, min(failed.retry_after or 0.0, 1.0)))

    async def _once(self, ask: Ask) -> dict[str, Any]:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(timeout=self._timeout, transport=self._transport)
        timeout = (ask.timeout if ask.timeout is not None else self._timeout) + ask.wait
        body = Body(time.monotonic() + timeout)
        try:
            async with self._client.stream(
                ask.method,
                self.url + ask.path,
                headers=ask.headers(),
                params=dict(ask.query) or None,
                json=ask.json,
                data=dict(ask.form) if ask.form is not None else None,
                timeout=timeout,
            ) as answer:
                async for part in answer.aiter_bytes():
                    body.add(part, time.monotonic())
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as failed:
            raise Unavailable(f"the broker at {self.url} did not answer ({type(failed).__name__})") from None
        return document(answer.status_code, answer.headers, body.whole())

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
