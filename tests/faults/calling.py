"""Clients that call tools over HTTP as children, each call under a name of its own, until the tool server dies."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from tests.faults.acks import AckLog
from tests.faults.traffic import Client
from tests.faults.wire import Gone, Wire

__all__ = ["Called", "Calls", "call", "calling", "children"]

ARGUMENT = {"search": "query", "tag": "ticket"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One call. name: the value of its argument, so that every record of it can be found. Times: monotonic seconds."""

    name: str
    tool: str
    started: float
    ended: float
    status: int
    reason: str


@dataclass(eq=False)
class Calls:
    """What came of the calls that were answered. pause: seconds between two calls of one client."""

    made: list[Called] = field(default_factory=list)
    pause: float = 0.0

    @property
    def allowed(self) -> list[Called]:
        return [call for call in self.made if call.status == 200]


def children(broker_port: int) -> dict[str, tuple[str, str]]:
    """tool -> (delegation, token for the host desk) of a child that may use it: search locally, tag at the broker."""
    with Wire(broker_port) as wire:
        client = Client(wire, AckLog(time.monotonic), "", "")
        root = client.run()
        reader = client.spawn(root, "reader", ["search"])
        writer = client.spawn(root, "writer", ["tag"])
    made = {"search": reader, "tag": writer}
    return {tool: (child["id"], child["tokens"]["desk"]["access_token"]) for tool, child in made.items()}


def call(wire: Wire, tool: str, name: str, token: str) -> Called:
    """Call a tool as its child. Raises Gone when the server dies meanwhile."""
    started = time.monotonic()
    status, answer = wire.post(f"/{tool}", token, {ARGUMENT[tool]: name})
    reason = str(answer.get("reason", ""))
    return Called(name=name, tool=tool, started=started, ended=time.monotonic(), status=status, reason=reason)


@contextmanager
def calling(port: int, tokens: dict[str, tuple[str, str]], *, each: int = 2, pause: float = 0.0) -> Iterator[Calls]:
    """Call every tool from `each` clients at once while the body runs."""
    calls, ended = Calls(pause=pause), threading.Event()
    threads = [
        threading.Thread(target=_caller, args=(port, tool, f"{tool}-{n}", token, calls, ended), daemon=True)
        for tool, (_, token) in tokens.items()
        for n in range(each)
    ]
    for thread in threads:
        thread.start()
    try:
        yield calls
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads), "a caller hangs"


def _caller(port: int, tool: str, prefix: str, token: str, calls: Calls, ended: threading.Event) -> None:
    try:
        with Wire(port) as wire:
            for n in count():
                if ended.wait(calls.pause):
                    return
                calls.made.append(call(wire, tool, f"{prefix}-{n}", token))
    except Gone:
        return
