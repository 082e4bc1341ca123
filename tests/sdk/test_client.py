"""Runs and children, blocking and asynchronous, against a real broker."""

import asyncio
import threading
import time
from typing import Any

import httpx2
import pytest

from carnet import ApprovalPending, AsyncBroker, Broker, ConfigError, Credential, Refused, Task, current_child
from carnet.reasons import Reason
from carnet.testing import CarnetBroker


def task(tools: list[str] | None = None, *, reversible: bool = True, count: int = 1) -> Task:
    given = None if tools is None else tuple(tools)
    return Task(touches_pii=False, touches_secrets=False, reversible=reversible, resource_count=count, tools=given)


def test_spawn_brings_every_token(carnet_broker: CarnetBroker) -> None:
    with carnet_broker.run() as run:
        assert run.id.startswith("dlg_")
        assert run.agent == "support"
        child = run.spawn("reader", task(["search"]))
        assert (child.state, child.level, child.agent) == ("active", 0, "reader")
        assert child.tools == {"search"}
        assert child.token("desk").count(".") == 2
        with pytest.raises(Refused) as caught:
            child.token("books")
        assert caught.value.reason is Reason.SCOPE_MISSING
        assert child.expires_at is not None
        assert child.token("desk") not in repr(child)


def test_leaving_a_child_ends_it_and_leaving_a_run_ends_all(carnet_broker: CarnetBroker) -> None:
    with carnet_broker.run() as run:
        first, second = run.spawn("reader", task(["search"])), run.spawn("reader", task(["search"]))
        with first:
            assert current_child() is first
        assert current_child() is None
        assert (first.state, first.reason) == ("ended", Reason.COMPLETED)
        again = run.child(second.id).wait()
        assert again.state == "active"
    ended = {row["delegation"]: row["reason"] for row in carnet_broker.records() if row["kind"] == "ended"}
    assert (ended[first.id], ended[run.id]) == ("completed", "run_closed")


def test_an_exception_in_the_body_is_what_comes_out(carnet_broker: CarnetBroker) -> None:
    with pytest.raises(ZeroDivisionError), carnet_broker.run() as run, run.spawn("reader", task(["search"])):
        raise ZeroDivisionError
    broker = Broker("http://127.0.0.1:9", credential=Credential.secret("a", "x" * 32), timeout=0.2)
    run = broker.run()
    run._id, run._root = "dlg_x", ("token", time.monotonic() + 100)
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError
    broker.close()


@pytest.mark.parametrize(
    ("target", "facts", "reason"),
    [
        ("nobody", task(["search"]), Reason.TARGET_NOT_ALLOWED),
        ("reader", task(["refund"]), Reason.SCOPE_NOT_GRANTABLE),
    ],
)
def test_refusals_carry_their_reason(carnet_broker: CarnetBroker, target: str, facts: Task, reason: Reason) -> None:
    with carnet_broker.run() as run, pytest.raises(Refused) as caught:
        run.spawn(target, facts)
    assert caught.value.reason is reason
    assert caught.value.as_dict()["reason"] == reason.value


def test_the_same_key_gives_the_same_child(carnet_broker: CarnetBroker) -> None:
    with carnet_broker.run() as run:
        children = [run.spawn("reader", task(["search"]), idempotency_key="node-7") for _ in range(2)]
        assert children[0].id == children[1].id
        with pytest.raises(Refused) as caught:
            run.spawn("reader", task(["search"], count=2), idempotency_key="node-7")
        assert caught.value.reason is Reason.IDEMPOTENCY_MISMATCH


def test_a_level_2_child_waits_for_a_person(carnet_broker: CarnetBroker) -> None:
    with carnet_broker.run() as run:
        child = run.spawn("clerk", task(["refund"], reversible=False), wait=0)
        assert (child.state, child.level) == ("pending", 2)
        with pytest.raises(ConfigError, match="no tokens yet"):
            child.token("desk")
        with pytest.raises(ApprovalPending) as pending:
            run.spawn("clerk", task(["refund"], reversible=False), wait=0.05)
        assert pending.value.approval_id == child.approval_id
        assert child.approval_id is not None
        carnet_broker.approve(child.approval_id)
        assert child.wait().token("desk")
        assert child.expires_at is not None


@pytest.mark.parametrize(("deny", "reason"), [(True, Reason.APPROVAL_DENIED), (False, Reason.APPROVAL_TIMED_OUT)])
def test_a_no_and_silence_are_told_apart(carnet_broker: CarnetBroker, deny: bool, reason: Reason) -> None:
    def answer() -> None:
        while not carnet_broker.pending():
            time.sleep(0.01)
        if deny:
            carnet_broker.deny(carnet_broker.pending()[0])
        else:
            carnet_broker.clock.advance(61)

    with carnet_broker.run() as run:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Refused) as caught:
            run.spawn("clerk", task(["refund"], reversible=False))
        thread.join()
    assert caught.value.reason is reason


def test_a_run_is_rejoined_and_its_token_renewed(carnet_broker: CarnetBroker) -> None:
    first = carnet_broker.run()
    child = first.spawn("reader", task(["search"]))
    with carnet_broker.broker().run(run_id=first.id) as joined:
        assert joined.id == first.id
        again = joined.child(child.id).wait().token("desk")
        assert again.split(".")[:2] == child.token("desk").split(".")[:2], "the same claims, signed once more"
        carnet_broker.clock.advance(907)
        with pytest.raises(Refused):
            joined.child(child.id).wait()
        assert joined.spawn("reader", task(["search"])).state == "active"


def test_auth_sends_the_token_to_its_host_and_nowhere_else(carnet_broker: CarnetBroker) -> None:
    seen: list[Any] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        seen.append((request.url.host, request.headers.get("authorization")))
        return httpx2.Response(200)

    async def aserve(request: httpx2.Request) -> httpx2.Response:
        return serve(request)

    async def over(auth: httpx2.Auth, url: str) -> None:
        async with httpx2.AsyncClient(auth=auth, transport=httpx2.MockTransport(aserve)) as client:
            await client.get(url)

    with carnet_broker.run() as run:
        child = run.spawn("reader", task(["search"]))
        with httpx2.Client(auth=child.auth("desk"), transport=httpx2.MockTransport(serve)) as client:
            client.get("http://desk.example/search")
            for elsewhere in ("http://evil.example/", "https://desk.example/", "http://desk.example:81/"):
                with pytest.raises(ConfigError, match="goes to its host only"):
                    client.get(elsewhere)
        asyncio.run(over(child.auth("desk", origin="http://127.0.0.1:8000"), "http://127.0.0.1:8000/x"))
        with pytest.raises(ConfigError):
            asyncio.run(over(child.auth("desk"), "http://127.0.0.1:8000/x"))
        token = child.token("desk")
    assert seen == [("desk.example", f"Bearer {token}"), ("127.0.0.1", f"Bearer {token}")]


@pytest.mark.parametrize("status", [401, 403])
def test_an_invalid_token_is_fetched_anew_once(carnet_broker: CarnetBroker, status: int) -> None:
    asked = 0

    def serve(request: httpx2.Request) -> httpx2.Response:
        nonlocal asked
        asked += 1
        return httpx2.Response(status, headers={"www-authenticate": 'Bearer error="invalid_token"'})

    with carnet_broker.run() as run:
        child = run.spawn("reader", task(["search"]))
        with httpx2.Client(auth=child.auth("desk"), transport=httpx2.MockTransport(serve)) as client:
            assert client.get("http://desk.example/").status_code == status
    assert asked == (2 if status == 401 else 1)


def test_a_dead_child_gets_the_hosts_own_answer(carnet_broker: CarnetBroker) -> None:
    def serve(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(401, headers={"www-authenticate": 'Bearer error="invalid_token"'}, text="ended")

    async def aserve(request: httpx2.Request) -> httpx2.Response:
        return serve(request)

    async def over(auth: httpx2.Auth) -> str:
        async with httpx2.AsyncClient(auth=auth, transport=httpx2.MockTransport(aserve)) as client:
            return (await client.get("http://desk.example/")).text

    with carnet_broker.run() as run:
        child = run.spawn("reader", task(["search"]))
        auth = child.auth("desk")
        child.end()
        with httpx2.Client(auth=auth, transport=httpx2.MockTransport(serve)) as client:
            assert client.get("http://desk.example/").text == "ended"
        assert asyncio.run(over(auth)) == "ended"


def test_the_same_story_asynchronously(carnet_broker: CarnetBroker) -> None:
    async def story() -> None:
        async with carnet_broker.abroker() as broker, broker.run() as run:
            async with await run.spawn("reader", task(["search"])) as child:
                assert current_child() is child
                assert child.token("desk")
            assert child.reason is Reason.COMPLETED
            clerk = await run.spawn("clerk", task(["refund"], reversible=False), wait=0)
            assert clerk.approval_id is not None
            await asyncio.to_thread(carnet_broker.approve, clerk.approval_id)
            await clerk.wait()
            with clerk.use():
                assert current_child() is clerk
            assert clerk.state == "active"

    asyncio.run(story())


def test_a_cancelled_body_still_ends_its_child(carnet_broker: CarnetBroker) -> None:
    ended: list[str] = []

    async def story() -> None:
        async with carnet_broker.abroker() as broker, broker.run() as run:

            async def work() -> None:
                async with await run.spawn("reader", task(["search"])) as child:
                    ended.append(child.id)
                    await asyncio.sleep(30)

            job = asyncio.create_task(work())
            while not ended:
                await asyncio.sleep(0.01)
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            with pytest.raises(Refused) as caught:
                await run.child(ended[0]).wait()
            assert caught.value.reason is Reason.COMPLETED

    asyncio.run(story())


def test_one_run_is_shared_by_threads(carnet_broker: CarnetBroker) -> None:
    children: list[str] = []
    with carnet_broker.run() as run:

        def work() -> None:
            children.append(run.spawn("reader", task(["search"])).id)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(children)) == 6


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CARNET_URL", "CARNET_CLIENT_ID", "CARNET_CLIENT_KEY", "CARNET_CLIENT_SECRET_FILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="CARNET_CLIENT_ID"):
        Broker("http://127.0.0.1:9").run().__enter__()
    with pytest.raises(ConfigError, match="CARNET_URL"):
        Broker(credential=Credential.secret("a", "x" * 32)).run().__enter__()
    assert isinstance(AsyncBroker("http://127.0.0.1:9"), AsyncBroker)
