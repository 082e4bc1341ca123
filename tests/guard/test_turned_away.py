"""Refusals made before there was a call: each is on record wherever the token proved whose request it was."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel

from carnet import Guard, Refused
from carnet.testing import CarnetBroker

Answer = tuple[int, str]


class Order(BaseModel):
    amount: float
    customer: str


def build(guard: Guard) -> FastAPI:
    app = FastAPI()
    guard.install(app)

    @app.get("/search")
    @guard.tool
    def search(query: str) -> str:
        return query

    @app.post("/refund")
    @guard.tool
    def refund(order: Order) -> float:
        return order.amount

    inner = APIRouter(prefix="/part")

    @inner.get("/{id}")
    def part(id: str) -> str:
        return id

    app.include_router(inner, prefix="/in")
    return app


@pytest.fixture(params=[True, False], ids=["journal", "no journal"])
def guard(carnet_broker: CarnetBroker, request: pytest.FixtureRequest) -> Guard:
    return carnet_broker.bind(Guard("desk"), journal=request.param)


@pytest.fixture
def ask(guard: Guard) -> Iterator[Callable[..., Answer]]:
    with TestClient(build(guard)) as client:

        def asked(method: str, path: str, token: str, **more: Any) -> Answer:
            answer = client.request(method, path, headers={"authorization": f"Bearer {token}"}, **more)
            return answer.status_code, answer.json()["reason"] if answer.is_error else ""

        yield asked


def on_record(broker: CarnetBroker, again: Callable[[], object] = int, **filters: str) -> list[dict[str, Any]]:
    """What a search of the audit finds within 5 s. again: what is tried before each search (a revocation takes a moment
    to reach the guard; what falls meanwhile is the broker's to refuse, or an outcome)."""
    until = time.monotonic() + 5
    found: list[dict[str, Any]] = []
    while not found and time.monotonic() < until:
        again()
        found = broker.records(decision="deny", **filters)
        time.sleep(0.05)
    return found


def test_a_tool_outside_the_scope(carnet_broker: CarnetBroker, ask: Callable[..., Answer]) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        body = {"amount": 5, "customer": "c"}
        assert ask("POST", "/refund", child.token("desk"), json=body) == (403, "scope_missing")
        (record,) = on_record(carnet_broker, tool="refund", delegation=child.id)
    assert (record["kind"], record["reason"], record["agent"]) == ("call_decided", "scope_missing", "reader")
    assert child.trace is not None
    assert (record["host"] or "desk", record["trace_id"]) == ("desk", child.trace.trace_id)


def test_an_endpoint_that_no_guard_owns(carnet_broker: CarnetBroker, ask: Callable[..., Answer]) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        for id in ("7", "8"):
            assert ask("GET", f"/in/part/{id}", child.token("desk")) == (403, "unguarded_route")
        found = on_record(carnet_broker, reason="unguarded_route")
        assert {record["delegation"] for record in found} == {child.id}
        assert {(record["kind"], record["tool"]) for record in found} == {("unguarded", "/in/part/{id}")}


def test_a_root_token(carnet_broker: CarnetBroker, ask: Callable[..., Answer]) -> None:
    with carnet_broker.run() as run:
        assert ask("GET", "/search?query=a", run._bearer())[0] == 401
        (record,) = on_record(carnet_broker, reason="root_token")
        named = record["run"] or record["facts"]["claimed"]["run"]
        assert (named, record["tool"], record["kind"]) == (run.id, "search", "call_decided")


def test_the_token_of_a_child_that_ended(carnet_broker: CarnetBroker, ask: Callable[..., Answer]) -> None:
    with carnet_broker.run() as run:
        child = run.spawn("reader", _task())
        token = child.token("desk")
        child.end()
        (record, *_) = on_record(
            carnet_broker, lambda: ask("GET", "/search?query=a", token), reason="completed", delegation=child.id
        )
    assert (record["delegation"], record["kind"]) == (child.id, "call_decided")


def test_who_proves_no_tenant_leaves_no_record(carnet_broker: CarnetBroker, ask: Callable[..., Answer]) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        head, payload, signature = child.token("desk").split(".")
        forged = f"{head}.{payload}.{signature[:-8]}AAAAAAAA"
        assert ask("GET", "/search?query=a", forged)[0] == 401
        assert ask("GET", "/in/part/7", "a.b.c")[0] == 401
    assert carnet_broker.records(decision="deny") == []


def test_a_call_in_process_of_a_child_that_ended(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> None:
        return

    with carnet_broker.child(tools=["search"]) as child:
        search("a")
        child.end()

        def again() -> None:
            with contextlib.suppress(Refused):
                search("b")

        (record, *_) = on_record(carnet_broker, again, reason="completed", delegation=child.id)
    assert (record["delegation"], set(record["args"])) == (child.id, {"query"})


def test_arguments_that_do_not_fit_the_tool(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: Annotated[str, "text"], limit: int = 5) -> None:
        raise AssertionError("must not run")

    with carnet_broker.child(tools=["search"]) as child:

        def again() -> None:
            with pytest.raises(Refused, match="arguments_invalid"):
                search(7)  # type: ignore[arg-type]

        (record, *_) = on_record(carnet_broker, again, reason="arguments_invalid")
    assert (record["delegation"], record["tool"]) == (child.id, "search")


def test_a_preview_leaves_none(carnet_broker: CarnetBroker, guard: Guard) -> None:
    with carnet_broker.child(tools=["search"]) as child:
        child.end()
        for _ in range(20):
            with contextlib.suppress(Refused):
                guard.preview("search", {"query": "a"})
            time.sleep(0.02)
        with pytest.raises(Refused, match="completed"):
            guard.preview("search", {"query": "a"})
    assert carnet_broker.records(tool="search") == []


def _task() -> Any:
    from carnet import Task

    return Task(touches_pii=False, touches_secrets=False, reversible=True, resource_count=1, tools=["search"])
