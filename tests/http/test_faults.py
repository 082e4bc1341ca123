"""When something breaks inside, or somebody comes too often: a fixed text outside, the place in the log."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carnet.reasons import Reason
from carnet_broker import logs
from carnet_broker.http.frame import Frame
from carnet_broker.http.limits import Limits
from carnet_broker.http.refusal_log import RefusalLog
from carnet_broker.runner import BrokerServer
from carnet_broker.store.base import Unavailable
from tests.http.world import World, make_broker


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    lines = io.StringIO()
    logs.configure("info", lines)
    yield lines
    root.handlers[:], root.level = handlers, level


def framed(fault: BaseException | float, path: str = "/v1/calls") -> tuple[int, dict[str, str], Any]:
    """What the frame answers for an application that breaks with this fault, or sleeps so long."""
    sent: list[Any] = []

    async def broken(_scope: Any, _receive: Any, _send: Any) -> None:
        if isinstance(fault, BaseException):
            raise fault
        await asyncio.sleep(fault)

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "headers": []}
    asyncio.run(Frame(broken, Limits(handling_seconds=0.05))(scope, receive, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, json.loads(sent[1]["body"])


def test_a_fault_is_a_fixed_text_outside_and_a_place_in_the_log(log: io.StringIO) -> None:
    status, headers, body = framed(ValueError("canary-secret"))
    assert (status, body["reason"]) == (500, "internal_error")
    assert headers["carnet-trace-id"] == body["trace_id"]
    line = json.loads(log.getvalue())
    assert (line["fault"], line["trace_id"]) == ("ValueError", body["trace_id"])
    assert "canary" not in json.dumps(body) + log.getvalue()


def test_below_oauth_a_fault_is_an_oauth_error() -> None:
    assert framed(ValueError("x"), "/oauth2/token")[2]["error"] == "server_error"
    assert framed(Unavailable("x"), "/oauth2/token")[2]["error"] == "temporarily_unavailable"


def test_a_store_that_does_not_answer_is_a_503_with_a_time_to_retry() -> None:
    status, headers, body = framed(Unavailable("canary-address"))
    assert (status, body["reason"], headers["retry-after"]) == (503, "unavailable", "1")
    assert "canary" not in json.dumps(body)


def test_an_answer_that_is_not_ready_in_time_is_a_503() -> None:
    assert framed(5.0)[0] == 503


def test_a_closed_store_is_unavailable_at_every_door(tmp_path: Path) -> None:
    with BrokerServer(lambda issuer: make_broker(tmp_path, issuer)) as server, World(server.url) as world:
        root, guard, session = world.root()["access_token"], world.guard(), world.session()
        asyncio.run_coroutine_threadsafe(server.broker.context.store.close(), server.loop).result(10)
        for token, path in ((root, "/v1/delegations/x"), (guard, "/v1/feed"), (session, "/v1/audit")):
            answer = world.get(path, token)
            assert (answer.status_code, answer.json()["reason"]) == (503, "unavailable"), path
        assert world.form("/oauth2/token", "support-app", grant_type="client_credentials").status_code == 503
        assert world.http.get("/healthz").status_code == 200
        assert world.http.get("/readyz").status_code == 503


def test_a_client_that_asks_for_tokens_without_end_is_slowed_down_and_others_are_not(tmp_path: Path) -> None:
    slow = Limits(tokens_burst=5, tokens_rate=0.1)
    with BrokerServer(lambda i: make_broker(tmp_path, i), limits=slow) as server, World(server.url) as world:
        run = world.root()["run_id"]
        fields = {"grant_type": "client_credentials", "run_id": run}
        answers = [world.form("/oauth2/token", "support-app", **fields) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 429]
        found = answers[-1]
        assert (found.status_code, found.json()["error"]) == (429, "temporarily_unavailable")
        assert found.headers["retry-after"] == "1"
        assert world.guard()


def test_callers_who_prove_nothing_are_logged_within_a_budget(log: io.StringIO) -> None:
    now = [0.0]
    notes = RefusalLog(lambda: now[0])
    for _ in range(1000):
        notes.note("/v1/calls", Reason.TOKEN_SIGNATURE, "0" * 32)
    notes.note("/v1/calls", Reason.TOKEN_EXPIRED, "0" * 32)
    now[0] = 2.0
    notes.note("/v1/calls", Reason.TOKEN_SIGNATURE, "0" * 32)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert len(lines) == 12
    assert lines[-1]["left_out"] == 990
    assert lines[-1]["reason"] == "token_signature"
