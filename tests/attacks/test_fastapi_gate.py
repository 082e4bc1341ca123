"""Somebody without a token looks for a way past the gate of a guarded application: paths that are open for others."""

from collections.abc import Iterator

import pytest
from fastapi import APIRouter, BackgroundTasks, FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel

from carnet import Guard
from carnet.testing import CarnetBroker


class Label(BaseModel):
    ticket: str
    label: str = "urgent"


def build(guard: Guard) -> FastAPI:
    app = FastAPI()
    guard.install(app, unguarded=["/items/{id}", "/in/part/{id}"])
    ran: list[str] = []
    app.state.ran = ran

    @app.get("/items/{id}")
    def item(id: str) -> str:
        return id

    @app.post("/items/purge")
    def purge() -> None:
        ran.append("purge")

    @app.post("/tag")
    @guard.tool
    def tag(order: Label, tasks: BackgroundTasks) -> str:
        tasks.add_task(ran.append, "later")
        ran.append(order.label)
        return order.label

    inner = APIRouter(prefix="/part")

    @inner.get("/{id}")
    def part(id: str) -> str:
        return id

    @inner.post("/purge")
    def forgotten_part() -> None:
        ran.append("part")

    app.include_router(inner, prefix="/in")

    @app.post("/{anything}")
    def forgotten(anything: str) -> None:
        ran.append(anything)

    return app


@pytest.fixture
def app(carnet_broker: CarnetBroker) -> FastAPI:
    return build(carnet_broker.bind(Guard("desk")))


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as made:
        yield made


@pytest.mark.parametrize(
    "path", ["/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect", "/items/purge", "/in/part/purge"]
)
def test_a_route_that_nobody_guards_is_closed_where_an_open_path_matches_too(
    app: FastAPI, client: TestClient, path: str
) -> None:
    assert client.post(path).status_code in (401, 403)
    assert app.state.ran == []


def test_what_was_named_stays_open(app: FastAPI, client: TestClient) -> None:
    assert client.get("/items/7").json() == "7"
    assert client.get("/in/part/7").json() == "7"
    assert client.get("/docs").status_code == 200


@pytest.mark.parametrize(
    "path", ["//tag", "/tag/", "/%74ag", "/tag%2f", "/TAG", "/tag;x", "/items/../tag", "/docs/..%2ftag", "/tag%00"]
)
def test_no_spelling_of_a_tools_path_runs_it_without_a_token(app: FastAPI, client: TestClient, path: str) -> None:
    client.post(path, json={"ticket": "t"})
    client.request("HEAD", path)
    client.request("OPTIONS", path)
    assert app.state.ran == []


def test_the_credential_is_the_one_header_and_nothing_else(
    carnet_broker: CarnetBroker, app: FastAPI, client: TestClient
) -> None:
    with carnet_broker.child(tools=["tag"]) as child:
        token = child.token("desk")
        body = {"ticket": "t"}
        for sent in (
            client.post(f"/tag?access_token={token}", json=body),
            client.post("/tag", json={**body, "access_token": token}),
            client.post("/tag", json=body, headers={"cookie": f"authorization=Bearer {token}"}),
            client.post("/tag", json=body, headers={"authorization": token}),
            client.post("/tag", json=body, headers={"authorization": f"Bearer {token}, Bearer {token}"}),
            client.post("/tag", json=body, headers={"x-forwarded-authorization": f"Bearer {token}"}),
            client.post("/tag", json=body, headers=[("authorization", f"Bearer {token}")] * 2),
        ):
            assert sent.status_code == 401
        assert app.state.ran == []
        assert client.post("/tag", json=body, headers={"authorization": f"bEARER {token}"}).json() == "urgent"


def test_members_that_the_model_drops_and_defaults_are_what_the_policy_sees(
    carnet_broker: CarnetBroker, app: FastAPI, client: TestClient
) -> None:
    with carnet_broker.child(tools=["tag"]) as child:
        headers = {"authorization": f"Bearer {child.token('desk')}"}
        assert client.post("/tag", json={"ticket": "t", "label": "x", "force": True}, headers=headers).json() == "x"
    calls = [row for row in carnet_broker.records(tool="tag") if row["kind"] == "call_decided"]
    assert calls
    assert calls[-1]["args"].keys() == {"ticket", "label"}


def test_a_refused_call_leaves_no_background_task(
    carnet_broker: CarnetBroker, app: FastAPI, client: TestClient
) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        answer = client.post("/tag", json={"ticket": "t"}, headers={"authorization": f"Bearer {child.token('desk')}"})
    assert answer.status_code == 403
    assert app.state.ran == []
