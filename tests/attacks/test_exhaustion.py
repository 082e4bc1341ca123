"""One token that holds as many connections as it can get: whoever revokes must still be heard."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from carnet_broker.http.patience import Patience
from carnet_broker.runner import BrokerServer
from carnet_broker.service.principals import Kind, Principal
from tests.http.world import World

CONNECTIONS = 200  # what `limits()` of these tests allows


@contextmanager
def streams(url: str, token: str, count: int) -> Iterator[list[bytes]]:
    """So many connections that ask for the feed as a stream; the first bytes of each answer."""
    host, port = url.removeprefix("http://").split(":")
    head = f"GET /v1/feed HTTP/1.1\r\nhost: {host}:{port}\r\nauthorization: Bearer {token}\r\n"
    with ExitStack() as stack:
        answers = []
        for _ in range(count):
            opened = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            opened.sendall(f"{head}accept: text/event-stream\r\n\r\n".encode())
            answers.append(opened.recv(1024))
        yield answers


def test_a_child_that_holds_streams_does_not_keep_an_operator_from_revoking(server: BrokerServer, world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    token = child["tokens"]["crm"]["access_token"]
    session = world.session()
    with streams(server.url, token, CONNECTIONS + 20) as answers:
        held = sum(b"text/event-stream" in answer for answer in answers)
        assert held == CONNECTIONS // 4
        with World(server.url) as other:
            body = {"mark": f"dlg:{child['id']}", "reason": "stop it"}
            assert other.post("/v1/revocations", session, body).status_code == 200
            assert other.get("/v1/feed", other.guard()).status_code == 200


def test_who_gets_no_stream_is_answered_like_a_poll(server: BrokerServer, world: World) -> None:
    token = world.spawn(world.root()["access_token"]).json()["tokens"]["crm"]["access_token"]
    with streams(server.url, token, CONNECTIONS // 4):
        headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
        answer = world.http.get("/v1/feed", headers=headers)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["snapshot"] is True


def test_nobody_and_not_all_together_are_held_beyond_their_share() -> None:
    patience = Patience(100)
    with ExitStack() as stack:
        for share, kind in ((50, Kind.HOST), (25, Kind.OPERATOR)):
            who = Principal(kind=kind, tenant="t", name=kind, client=kind)
            granted = [stack.enter_context(patience.held(who)) for _ in range(60)]
            assert sum(granted) == share
        third = Principal(kind=Kind.OPERATOR, tenant="t", name="third")
        assert not stack.enter_context(patience.held(third))
    assert len(patience) == 0
    with patience.held(third) as granted_again:
        assert granted_again
