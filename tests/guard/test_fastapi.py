"""A guarded FastAPI application: who gets in, what is refused, what keeps it from starting."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Request, WebSocket
from fastapi.testclient import TestClient
from pydantic import BaseModel
from starlette.responses import Response
from starlette.routing import Route
from starlette.websockets import WebSocketDisconnect

from carnet import ConfigError, Guard, current_child
from carnet.testing import CarnetBroker


class Order(BaseModel):
    amount: float
    customer: str


def build(guard: Guard) -> FastAPI:
    app = FastAPI()
    guard.install(app, unguarded=["/status/{part}"])
    touched: list[str] = []
    app.state.touched = touched

    def database() -> Iterator[str]:
        touched.append("database")
        yield "db"

    @app.get("/search")
    @guard.tool(context=["db"])
    async def search(
        query: str, request: Request, db: Annotated[str, Depends(database)], limit: int = 5
    ) -> dict[str, Any]:
        child = current_child()
        assert child is not None
        return {"query": query, "db": db, "path": request.url.path, "agent": child.agent}

    @app.post("/refund")
    @guard.tool
    def refund(order: Order) -> dict[str, float]:
        return {"paid": order.amount}

    nested = APIRouter(prefix="/nested")

    @nested.get("/bare")
    def bare(db: Annotated[str, Depends(database)]) -> str:
        return "reached"

    @nested.get("/status/{part}")
    def decoy() -> str:
        return "reached"

    app.include_router(nested)

    @app.get("/status/{part}")
    def status(part: str) -> dict[str, Any]:
        return {"part": part, "child": current_child()}

    @app.websocket("/ws")
    async def ws(socket: WebSocket) -> None:
        await socket.accept()

    return app


@pytest.fixture
def guard(carnet_broker: CarnetBroker) -> Guard:
    return carnet_broker.bind(Guard("desk"))


@pytest.fixture
def client(guard: Guard) -> Iterator[TestClient]:
    with TestClient(build(guard)) as made:
        yield made


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_good_token_calls_its_tool_as_the_current_child(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        answer = client.get("/search", params={"query": "a"}, headers=bearer(child.token("desk")))
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"query": "a", "db": "db", "path": "/search", "agent": "reader"}
    assert current_child() is None


def test_no_token_is_challenged_without_an_error(client: TestClient) -> None:
    answer = client.get("/search")
    assert answer.status_code == 401
    metadata = "http://desk.example/.well-known/oauth-protected-resource"
    assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}"'
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("sent", ["a.b.c", "", "x" * 5000])
def test_a_bad_token_is_told_nothing_but_that(client: TestClient, sent: str) -> None:
    answer = client.get("/search", headers=bearer(sent))
    assert answer.status_code == 401
    if sent:
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert answer.json()["reason"] == "invalid_token"


def test_two_authorization_headers_are_refused(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        twice = [("authorization", f"Bearer {child.token('desk')}")] * 2
        assert client.get("/search", params={"query": "a"}, headers=twice).status_code == 401
        in_query = client.get("/search", params={"query": "a", "access_token": child.token("desk")})
        assert in_query.status_code == 401


def test_the_token_of_another_host_is_refused(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with carnet_broker.child(tools=["invoice"], level=0) as child:
        assert client.get("/search", headers=bearer(child.token("books"))).status_code == 401


def test_an_endpoint_that_no_guard_owns_is_refused_before_its_dependencies(
    carnet_broker: CarnetBroker, client: TestClient
) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        for path in ("/nested/bare", "/nested/status/x"):
            answer = client.get(path, headers=bearer(child.token("desk")))
            assert answer.status_code == 403
            assert answer.json()["reason"] == "unguarded_route"
            assert "www-authenticate" not in answer.headers
    assert client.app.state.touched == []  # type: ignore[attr-defined]


def test_a_tool_outside_the_scope_is_refused(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        answer = client.post("/refund", json={"amount": 5, "customer": "c"}, headers=bearer(child.token("desk")))
    assert (answer.status_code, answer.json()["reason"]) == (403, "scope_missing")


def test_a_policys_no_is_a_problem_without_a_challenge(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with carnet_broker.child(tools=["refund"], level=2) as child:
        token = bearer(child.token("desk"))
        denied = client.post("/refund", json={"amount": 60.0, "customer": "c"}, headers=token)
        assert (denied.status_code, denied.json()["reason"]) == (403, "policy_deny")
        assert "www-authenticate" not in denied.headers
        pending = client.post("/refund", json={"amount": 5.0, "customer": "c"}, headers=token)
        assert (pending.status_code, pending.json()["reason"]) == (403, "approval_pending")
        assert pending.headers["retry-after"] == "1"
        carnet_broker.approve(pending.json()["approval_id"])
        done = client.post("/refund", json={"amount": 5.0, "customer": "c"}, headers=token)
        assert done.json() == {"paid": 5.0}


def test_pages_and_named_templates_pass_without_a_token(client: TestClient) -> None:
    assert client.get("/openapi.json").status_code == 200
    assert client.get("/docs").status_code == 200
    assert client.get("/status/x").json() == {"part": "x", "child": None}
    assert client.get("/nested/status/x").status_code == 401


def test_the_resource_describes_itself(client: TestClient, carnet_broker: CarnetBroker) -> None:
    answer = client.get("/.well-known/oauth-protected-resource").json()
    assert answer["resource"] == "http://desk.example"
    assert answer["authorization_servers"] == [carnet_broker.url]
    assert answer["scopes_supported"] == ["lookup", "refund", "search", "tag"]
    assert client.get("/.well-known/oauth-protected-resource/other").status_code == 404


def test_a_websocket_needs_a_guarded_endpoint_too(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws"):
        pass
    with carnet_broker.child(tools=["search"]) as child:
        token = bearer(child.token("desk"))
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/ws", headers=token):
            pass


def test_a_revoked_child_is_out(carnet_broker: CarnetBroker, client: TestClient) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        token = bearer(child.token("desk"))
        assert client.get("/search", params={"query": "a"}, headers=token).status_code == 200
        child.end()
        for _ in range(200):
            answer = client.get("/search", params={"query": "a"}, headers=token)
            if answer.status_code != 200:
                break
        assert (answer.status_code, answer.json()["reason"]) == (401, "completed")


def test_the_schema_shows_the_tools_own_signature(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {item["name"] for item in paths["/search"]["get"]["parameters"]} == {"query", "limit"}
    assert "carnet" not in str(paths)


def test_overrides_can_not_switch_the_gate_off(carnet_broker: CarnetBroker, client: TestClient) -> None:
    app: Any = client.app
    for dependency in app.router.dependencies:
        assert dependency.dependency.__name__ not in vars(__import__("carnet.adapters.fastapi", fromlist=["x"]))


def test_a_guard_comes_before_the_first_route(guard: Guard) -> None:
    app = FastAPI()

    @app.get("/early")
    def early() -> str:
        return "early"

    with pytest.raises(ConfigError, match="before the first route"):
        guard.install(app)


@pytest.mark.parametrize("kind", ["mount", "route", "nested"])
def test_what_no_dependency_reaches_keeps_the_application_from_starting(guard: Guard, kind: str) -> None:
    app = FastAPI()
    guard.install(app)

    async def plain(request: Request) -> Response:
        return Response()

    if kind == "mount":
        app.mount("/sub", FastAPI())
    elif kind == "route":
        app.router.routes.append(Route("/plain", plain))
    else:
        router = APIRouter()
        router.add_route("/plain", plain)
        app.include_router(router)
    with pytest.raises(ConfigError, match="can't be guarded"), TestClient(app):
        pass
    with pytest.raises(ConfigError, match="can't be guarded"):
        TestClient(app).get("/anything")


def test_a_tool_server_needs_a_client_of_its_own(carnet_broker: CarnetBroker) -> None:
    guard = Guard("desk", url=carnet_broker.url)
    app = FastAPI()
    guard.install(app)
    with pytest.raises(ConfigError, match="client of its own"), TestClient(app):
        pass
    guard.close()
