"""Every credential at every door that is not its own, and doors held open with somebody else's."""

import itertools
import time
from typing import Any

import pytest

from carnet_broker.composition import Broker
from carnet_broker.runner import BrokerServer
from tests.http.world import TASK, World

_NUMBER = itertools.count(1)


def key() -> dict[str, str]:
    return {"idempotency-key": f"{next(_NUMBER):032x}"}


def call(world: World, bearer: str, token: str, tool: str = "search", **more: Any) -> Any:
    body = {"token": token, "tool": tool, "args": {"query": "x"}, **more}
    return world.post("/v1/calls", bearer, body, **key())


def crm(world: World, root: str, **more: Any) -> tuple[dict[str, Any], str]:
    child = world.spawn(root, **more).json()
    return child, child["tokens"]["crm"]["access_token"]


def test_a_child_that_knows_its_parents_key_spawns_and_learns_nothing(world: World) -> None:
    root = world.root()["access_token"]
    body = {"target": "reader", "task": {**TASK, "tools": ["search"]}, "hosts": ["*"]}
    assert world.post("/v1/delegations", root, body, **{"idempotency-key": "order-1"}).status_code == 201
    _, token = crm(world, root)
    answer = world.post("/v1/delegations", token, body, **{"idempotency-key": "order-1"})
    assert answer.status_code == 403
    assert answer.json()["reason"] == "depth_exceeded"
    assert "id" not in answer.json()


def test_a_key_of_another_run_or_client_gives_nothing_of_it(world: World) -> None:
    body = {"target": "reader", "task": {**TASK, "tools": ["search"]}, "hosts": ["*"]}
    made = [
        world.post("/v1/delegations", world.root()["access_token"], body, **{"idempotency-key": "same"}).json()["id"]
        for _ in range(2)
    ]
    assert made[0] != made[1]


def test_a_repeated_key_gives_no_token_once_the_delegation_has_fallen(world: World) -> None:
    root = world.root()["access_token"]
    body = {"target": "reader", "task": {**TASK, "tools": ["search"]}, "hosts": ["*"]}
    first = world.post("/v1/delegations", root, body, **{"idempotency-key": "k"}).json()
    world.post("/v1/revocations", world.session(), {"mark": f"dlg:{first['id']}", "reason": "x"})
    again = world.post("/v1/delegations", root, body, **{"idempotency-key": "k"}).json()
    assert (again["id"], again["state"]) == (first["id"], "ended")
    assert not again.get("tokens")


def test_a_root_token_is_for_nothing_but_its_tree(world: World) -> None:
    root = world.root()
    token, guard = root["access_token"], world.guard()
    assert call(world, guard, token).json()["reason"] == "root_token"
    assert call(world, token, token).status_code == 401
    for path in ("/v1/feed", "/v1/policy", "/v1/approvals", "/v1/audit", "/v1/keys", "/v1/guards", "/v1/revocations"):
        assert world.get(path, token).status_code == 401, path
    lines = {"journal": "j", "first": 1, "lines": [{"kind": "call_intent", "at": 1}]}
    assert world.post("/v1/records", token, lines).status_code == 401
    assert world.post(f"/v1/delegations/{root['run_id']}/tokens", token, {}).json()["reason"] == "invalid_target"


def test_guard_and_session_tokens_are_no_childs_token(world: World) -> None:
    guard = world.guard()
    for foreign in (guard, world.session()):
        assert call(world, guard, foreign).status_code == 401
        assert world.spawn(foreign).status_code == 401
        assert world.form("/oauth2/introspect", "crm-server", token=foreign).json() == {"active": False}


def test_introspection_tells_a_host_nothing_of_other_hosts_runs_and_tenants(world: World) -> None:
    root = world.root()["access_token"]
    _, token = crm(world, root)
    for client in ("pay-server", "other-app", "other-server"):
        assert world.form("/oauth2/introspect", client, token=token).json() == {"active": False}
        assert world.form("/oauth2/introspect", client, token=root).json() == {"active": False}
    assert world.form("/oauth2/introspect", "crm-server", token=root).json() == {"active": False}


def test_a_host_or_a_stranger_ends_no_delegation_by_its_token(world: World) -> None:
    child, token = crm(world, world.root()["access_token"])
    for client in ("crm-server", "pay-server", "other-app"):
        assert world.form("/oauth2/revoke", client, token=token).status_code == 200
    assert world.get(f"/v1/delegations/{child['id']}", token).json()["state"] == "active"


def test_a_sibling_reads_ends_and_calls_nothing_of_the_other(world: World) -> None:
    root = world.root()["access_token"]
    victim, _ = crm(world, root)
    _, token = crm(world, root)
    made = call(world, world.guard(), victim["tokens"]["crm"]["access_token"]).json()
    assert world.get(f"/v1/delegations/{victim['id']}", token).status_code == 404
    assert world.post(f"/v1/delegations/{victim['id']}/end", token, {}).status_code == 404
    assert world.post(f"/v1/delegations/{victim['run']}/end", token, {}).status_code == 404
    assert world.get(f"/v1/calls/{made['call_id']}", token).status_code == 404
    assert world.post(f"/v1/calls/{made['call_id']}/outcome", token, {"outcome": "failed"}).status_code == 404
    assert call(world, token, victim["tokens"]["crm"]["access_token"]).status_code == 400


def test_another_guard_reports_no_outcome_and_opens_no_call_with_a_token_it_saw(world: World) -> None:
    _, token = crm(world, world.root()["access_token"])
    pay = world.guard("pay-server")
    assert call(world, pay, token).status_code == 401
    made = call(world, world.guard(), token).json()
    assert world.post(f"/v1/calls/{made['call_id']}/outcome", pay, {"outcome": "failed"}).status_code == 404
    assert world.get(f"/v1/calls/{made['call_id']}", pay).status_code == 404


@pytest.mark.parametrize("odd", ["{id}/", "{id}/search", "{id} ", "{id}\x00", "{id}\n", "../{id}", "{id}.x"])
def test_a_mark_that_would_kill_nothing_is_refused(world: World, odd: str) -> None:
    child, token = crm(world, world.root()["access_token"])
    session = world.session()
    for kind in ("dlg", "token"):
        mark = f"{kind}:{odd.format(id=child['id'])}"
        answer = world.post("/v1/revocations", session, {"mark": mark, "reason": "stop it"})
        ended = world.get(f"/v1/delegations/{child['id']}", token).json()["state"] == "ended"
        assert (answer.status_code == 200) is ended, (mark, answer.text)
        if ended:
            child, token = crm(world, world.root()["access_token"])


def test_a_revocation_is_not_taken_back_by_an_earlier_end(world: World) -> None:
    session = world.session()
    now = world.get("/v1/policy", world.guard()).json()["now"]
    later = {"mark": "agent:clerk", "until": now + 60, "reason": "hold"}
    assert world.post("/v1/revocations", session, later).status_code == 200
    root = world.root()["access_token"]
    clerk = {"task": {**TASK, "reversible": False, "tools": ["refund"]}}
    for until in (None, now + 30):
        body = {"mark": "agent:clerk", "reason": "lower"} | ({} if until is None else {"until": until})
        world.post("/v1/revocations", session, body)
        assert world.spawn(root, "clerk", **clerk).json()["reason"] == "revoked"
    for until in (0, 1, now - 1, "never", True, 1.5, -1):
        body = {"mark": "agent:clerk", "until": until, "reason": "undo"}
        assert world.post("/v1/revocations", session, body).status_code == 400
    assert world.spawn(root, "clerk", **clerk).json()["reason"] == "revoked"


def test_an_admin_of_one_tenant_turns_no_keys_that_sign_for_another(world: World) -> None:
    session = world.session(tenant="other")
    before = world.get("/v1/keys", session).json()
    for _ in range(3):
        answer = world.post("/v1/keys/rotate", session, {})
        assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden")
        assert "where they are kept" in answer.json()["detail"]
    assert world.get("/v1/keys", session).json() == before


def test_an_admin_of_one_tenant_withdraws_no_key_that_signs_for_another(server: BrokerServer, world: World) -> None:
    session, root = world.session(tenant="other"), world.root()["access_token"]
    _, token = crm(world, root)
    active = world.get("/v1/keys", session).json()["active"]
    server.broker.context.keys.rotate(int(time.time()))
    answer = world.post("/v1/revocations", session, {"mark": f"key:{active}", "reason": "mine too"})
    assert answer.status_code == 403
    assert call(world, world.guard(), token).json()["decision"] == "allow"


def test_a_token_of_a_withdrawn_key_learns_nothing_at_any_door(server: BrokerServer, world: World) -> None:
    child, token = crm(world, world.root()["access_token"])
    broker: Broker = server.broker
    whole = broker.context.registries
    broker.context.registries = {"main": whole["main"]}
    try:
        session = world.session()
        active = world.get("/v1/keys", session).json()["active"]
        world.post("/v1/keys/rotate", session, {})
        session = world.session()
        body = {"mark": f"key:{active}", "reason": "leaked"}
        assert world.post("/v1/revocations", session, body).status_code == 200
        assert world.get(f"/v1/delegations/{child['id']}", token).status_code == 401
        assert call(world, world.guard(), token).json()["reason"] == "token_key"
    finally:
        broker.context.registries = whole
