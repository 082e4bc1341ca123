"""The revocation feed: long poll, server-sent events, and the acknowledgement of a guard process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from carnet.reasons import Refusal
from carnet_broker.http import render
from carnet_broker.http.bodies import AcknowledgeBody, FeedQuery
from carnet_broker.http.door import Ask, Doors, Nothing, get, post
from carnet_broker.http.errors import NO_STORE
from carnet_broker.http.feed_document import Position, document, event, position
from carnet_broker.http.followers import Followers, Link
from carnet_broker.http.guards import GUARDS, Guard, told
from carnet_broker.http.limits import DEFAULT
from carnet_broker.service.facade import Service

__all__ = ["STREAM_SECONDS", "FeedDoors"]

STREAM_SECONDS = 300.0
_LOOK_UP_SECONDS = 1.0  # how soon a stream without news notices a shutdown
_EVENTS = "text/event-stream"


class FeedDoors:
    def __init__(self, service: Service, followers: Followers) -> None:
        self._service = service
        self._followers = followers

    def doors(self) -> Doors:
        path = "/v1/feed"
        follow = "Revocations after a position; as server-sent events where text/event-stream is accepted"
        return [
            get(path, self.follow, follow, GUARDS, FeedQuery),
            post(path, self.acknowledge, "What a guard process applied", GUARDS, AcknowledgeBody, status=204),
        ]

    async def follow(self, ask: Ask[Guard, Nothing, FeedQuery]) -> Response | Refusal:
        asked = ask.query
        known = Position(asked.epoch, asked.after, asked.system_epoch, asked.system_after)
        stream = _EVENTS in (ask.header("accept") or "")
        mono = self._followers.clock()
        view = await self._followers.read(ask.caller, known, 0 if stream else asked.wait, asked.instance)
        if isinstance(view, Refusal):
            return told(ask, view)
        first = document(view, mono)
        return _Events(self._followers, ask, first, position(view)) if stream else render.json_answer(first)

    async def acknowledge(self, ask: Ask[Guard, AcknowledgeBody, Nothing]) -> Response | Refusal:
        body = ask.body
        refused = await self._service.acknowledge(ask.caller, body.instance, body.epoch, body.seq)
        return told(ask, refused) if isinstance(refused, Refusal) else Response(status_code=204, headers=NO_STORE)


class _Events(Response):
    """A stream of events for one follower. It ends after 300 s, on shutdown, or when the follower stops reading."""

    media_type = _EVENTS

    def __init__(
        self, followers: Followers, ask: Ask[Guard, Nothing, FeedQuery], first: dict[str, object], known: Position
    ) -> None:
        super().__init__(headers=NO_STORE)
        del self.headers["content-length"]
        self._followers, self._ask, self._first, self._known = followers, ask, first, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._ask.held() as granted:
            if granted:
                await self._held(receive, send)
            else:  # a guard that gets no stream polls
                await render.json_answer(self._first)(scope, receive, send)

    async def _held(self, receive: Receive, send: Send) -> None:
        self._ask.request.state.deadline.reschedule(None)
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await self._stream(send, gone)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:  # the follower does not read: without an end to the answer the server drops the connection
            return
        finally:
            gone.cancel()
            self._followers.leave(id(self), self._ask.caller)

    async def _stream(self, send: Send, gone: asyncio.Task[None]) -> None:
        clock = self._followers.clock
        end = clock() + STREAM_SECONDS
        async for payload in self._events():
            if gone.done() or clock() >= end:
                return
            async with asyncio.timeout(DEFAULT.write_seconds):
                await send({"type": "http.response.body", "body": payload, "more_body": True})

    async def _events(self) -> AsyncIterator[bytes]:
        yield event("feed", self._first)
        link = self._followers.join(id(self), self._ask.caller, self._known)
        stopping: asyncio.Event = self._ask.request.app.state.stopping
        while not stopping.is_set() and self._followers.follows(id(self), self._ask.caller):
            await _within(link.ready, _LOOK_UP_SECONDS)
            if link.next is not None:
                link = link.next
                if (payload := await self._payload(link)) is not None:
                    yield payload

    async def _payload(self, link: Link) -> bytes | None:
        """The shared bytes if this follower stood where they start; else its own reading of what it lacks."""
        if link.before == self._known and link.after is not None:
            self._known = link.after
            return link.payload
        mono = self._followers.clock()
        view = await self._followers.read(self._ask.caller, self._known, 0, None)
        if isinstance(view, Refusal):
            return None
        self._known = position(view)
        return event("feed", document(view, mono))


async def _within(ready: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ready.wait()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
