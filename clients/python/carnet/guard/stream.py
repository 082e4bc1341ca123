"""The broker's event stream (`text/event-stream`), read line by line."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from carnet.errors import Unavailable
from carnet.guard.feed import Gap
from carnet.guard.session import Session
from carnet.wire.answer import problem

__all__ = ["NoStream", "events"]

_SILENCE = 2.0  # seconds without a heartbeat (one comes every 0.2 s) after which the link counts as dead
_LONGEST = 256 * 1024 * 1024  # characters of one event; a snapshot may hold a million marks


class NoStream(Exception):
    """The broker, or something in between, does not stream."""


def events(session: Session, position: Mapping[str, str | int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, document) of each event until the stream ends. Raises NoStream, Refused, Unavailable or Gap."""
    import httpx2

    token = session.bearer.token()
    headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
    query = {**position, "instance": session.instance}
    channel = session.channel
    limits = httpx2.Timeout(5.0, read=_SILENCE)
    try:
        with channel.client().stream(
            "GET", f"{channel.url}/v1/feed", params=query, headers=headers, timeout=limits
        ) as answer:
            if answer.status_code != 200:
                answer.read()
                if answer.status_code == 401:
                    session.bearer.spoiled(token)
                raise problem(answer.status_code, answer.headers, answer.content)
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                raise NoStream
            yield from _parsed(answer.iter_lines())
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as fault:
        raise Unavailable(f"the feed of {channel.url} broke off ({type(fault).__name__})") from None


def _parsed(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    name, size = "", 0
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield name, _document("\n".join(data))
            name, data, size = "", [], 0
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            size += len(line)
            if size > _LONGEST:
                raise Gap("an event of the feed is too long")
            data.append(line[5:].removeprefix(" "))


def _document(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise Gap("an event of the feed is no JSON") from None
    if not isinstance(found, dict):
        raise Gap("an event of the feed is no object")
    return found
