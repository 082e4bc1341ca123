"""Routes that came into a guarded application another way, and requests that say one thing twice."""

from collections.abc import Iterator

import pytest
from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute
from fastapi.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from carnet import ConfigError, Guard, current_child
from carnet.testing import CarnetBroker


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def app(carnet_broker: CarnetBroker, ran: list[str]) -> FastAPI:
    app = FastAPI(dependencies=[Depends(lambda: ran.append("early"))])
    guard = carnet_broker.bind(Guard("desk"))
    guard.install(app, unguarded=["/open"])

    def shared() -> None:
        ran.append("shared")

    app.post("/open")(shared)
    app.post("/admin")(shared)

    @app.get("/search")
    @guard.tool
    def search(query: str, limit: int = 5) -> str:
        child = current_child()
        ran.append(f"{query} {limit}")
        return child.id if child is not None else ""

    @app.websocket("/line")
    async def line(socket: WebSocket) -> None:
        ran.append("line")
        await socket.accept()

    return app


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as made:
        yield made


@pytest.mark.parametrize("way", ["append", "extend", "replace", "nested", "socket"])
def test_a_route_that_was_put_into_the_list_by_hand_has_no_gate_and_does_not_serve(
    carnet_broker: CarnetBroker, app: FastAPI, client: TestClient, ran: list[str], way: str
) -> None:
    def purge() -> None:
        ran.append("purge")

    with carnet_broker.child(tools=["search"]) as child:
        headers = {"authorization": f"Bearer {child.token('desk')}"}
        assert client.get("/search?query=a", headers=headers).status_code == 200
        ran.clear()
        router = APIRouter()
        router.post("/purge")(purge)
        if way == "append":
            app.router.routes.append(APIRoute("/purge", purge, methods=["POST"]))
        elif way == "extend":
            app.router.routes.extend(router.routes)
        elif way == "replace":
            app.router.routes[-1] = APIRoute("/purge", purge, methods=["POST"])
        elif way == "socket":
            app.router.routes.append(APIWebSocketRoute("/purge", purge))
        else:
            outer = APIRouter()
            outer.include_router(router)
            app.router.routes.extend(outer.routes)
        with pytest.raises(ConfigError, match="gate"):
            client.post("/purge", headers=headers)
    assert ran == []


def test_an_included_router_that_grows_later_is_behind_the_gate(
    carnet_broker: CarnetBroker, app: FastAPI, client: TestClient, ran: list[str]
) -> None:
    router, inner = APIRouter(), APIRouter()
    router.include_router(inner, prefix="/in")
    app.include_router(router)
    inner.post("/purge")(lambda: ran.append("purge"))
    router.routes.append(APIRoute("/purge", lambda: ran.append("purge"), methods=["POST"]))
    with carnet_broker.child(tools=["search"]) as child:
        headers = {"authorization": f"Bearer {child.token('desk')}"}
        assert [client.post(path, headers=headers).status_code for path in ("/in/purge", "/purge")] == [403, 403]
    assert ran == []


def test_a_function_that_is_open_in_one_place_is_not_open_in_another(
    carnet_broker: CarnetBroker, client: TestClient, ran: list[str]
) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        answer = client.post("/admin", headers={"authorization": f"Bearer {child.token('desk')}"})
    assert answer.json()["reason"] == "unguarded_route"
    assert ran == [], "nor did a dependency of the application itself run"
    assert client.post("/open").status_code == 200


def test_a_socket_that_nobody_guards_is_closed(carnet_broker: CarnetBroker, client: TestClient, ran: list[str]) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        for headers in ({}, {"authorization": f"Bearer {child.token('desk')}"}):
            with pytest.raises(WebSocketDisconnect), client.websocket_connect("/line", headers=headers):
                raise AssertionError("open")
    assert ran == []


@pytest.mark.parametrize(
    ("query", "status"),
    [("limit=51&limit=1", 200), ("limit=1&limit=51", 403), ("limit=5e1", 422), ("limit=%2B50", 200), ("limit=٥٠", 422)],
)
def test_what_is_sent_twice_or_oddly_is_judged_as_the_tool_gets_it(
    carnet_broker: CarnetBroker, client: TestClient, ran: list[str], query: str, status: int
) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        headers = {"authorization": f"Bearer {child.token('desk')}"}
        assert client.get(f"/search?query=a&query=b&{query}", headers=headers).status_code == status
    assert all(int(line.split()[-1]) <= 50 for line in ran if line != "early")


def test_no_request_sees_the_child_of_another(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with carnet_broker.child(tools=["search"]) as first, carnet_broker.child(tools=["search"]) as second:
        for child in (first, second, first):
            answer = client.get("/search?query=a", headers={"authorization": f"Bearer {child.token('desk')}"})
            assert answer.json() == child.id
        assert client.get("/search?query=a").status_code == 401
