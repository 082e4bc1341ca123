"""The story over the wire: open, spawn, call, approve, revoke; each answer as the interface page says."""

import json
import threading
from typing import Any

import pytest

from carnet_broker.runner import BrokerServer
from tests.http.world import PASSPHRASE, SECRETS, TASK, World

KEY = "0123456789abcdef0123456789abcdef"


def problem(answer: Any, status: int, reason: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["reason"] == reason
    assert body["type"] == f"urn:carnet:reason:{reason}"
    assert body["status"] == status
    assert body["trace_id"] == answer.headers["carnet-trace-id"]
    return body


# Runs and clients


def test_a_client_opens_a_run_and_renews_its_token(world: World) -> None:
    run = world.root()
    assert run["token_type"] == "Bearer"
    assert 0 < run["expires_in"] <= 900
    assert run["run_id"].startswith("dlg_")
    again = world.form("/oauth2/token", "support-app", grant_type="client_credentials", run_id=run["run_id"])
    assert again.status_code == 200
    assert again.json()["run_expires_at"] == run["run_expires_at"]
    assert again.headers["cache-control"] == "no-store"


def test_the_guard_of_a_host_gets_a_guard_token_and_no_run(world: World) -> None:
    answer = world.form("/oauth2/token", "crm-server", grant_type="client_credentials", scope="guard").json()
    assert answer["scope"] == "guard"
    assert answer["expires_in"] <= 900
    assert "run_id" not in answer


@pytest.mark.parametrize(
    ("client", "fields", "status", "error"),
    [
        ("support-app", {}, 400, "invalid_request"),
        ("support-app", {"grant_type": "password"}, 400, "unsupported_grant_type"),
        ("support-app", {"grant_type": "client_credentials", "scope": "search"}, 400, "invalid_scope"),
        ("support-app", {"grant_type": "client_credentials", "scope": "guard"}, 400, "invalid_scope"),
        ("crm-server", {"grant_type": "client_credentials"}, 400, "unauthorized_client"),
        ("support-app", {"grant_type": "client_credentials", "run_id": "dlg_nothing"}, 400, "invalid_grant"),
        (None, {"grant_type": "client_credentials"}, 401, "invalid_client"),
        (None, {"grant_type": "client_credentials", "client_id": "support-app"}, 401, "invalid_client"),
        (
            None,
            {"grant_type": "client_credentials", "client_id": "nobody", "client_secret": "x"},
            401,
            "invalid_client",
        ),
        (
            "support-app",
            {"grant_type": "client_credentials", "client_id": "support-app", "client_secret": "x"},
            400,
            "invalid_request",
        ),
    ],
)
def test_token_requests_are_refused_in_oauth_terms(
    world: World, client: str | None, fields: dict[str, str], status: int, error: str
) -> None:
    answer = world.form("/oauth2/token", client, **fields)
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text
    assert answer.headers["content-type"] == "application/json"


def test_every_failed_client_reads_the_same_text(world: World) -> None:
    wrong = [
        world.form(
            "/oauth2/token", None, grant_type="client_credentials", client_id=client, client_secret=secret
        ).content
        for client, secret in (("support-app", "wrong"), ("nobody", "wrong"), ("support-app", SECRETS["other-app"]))
    ]
    assert len(set(wrong)) == 1


def test_basic_authentication_is_answered_with_its_own_challenge(world: World) -> None:
    answer = world.http.post("/oauth2/token", data={"grant_type": "client_credentials"}, auth=("support-app", "wrong"))
    assert answer.headers["www-authenticate"].startswith("Basic ")


def test_a_secret_may_be_sent_in_the_form(world: World) -> None:
    fields = {"client_id": "support-app", "client_secret": SECRETS["support-app"]}
    assert world.form("/oauth2/token", None, grant_type="client_credentials", **fields).status_code == 200


def test_token_parameters_in_the_query_or_as_json_are_refused(world: World) -> None:
    auth = ("support-app", SECRETS["support-app"])
    query = world.http.post("/oauth2/token?grant_type=client_credentials", auth=auth)
    body = world.http.post("/oauth2/token", json={"grant_type": "client_credentials"}, auth=auth)
    assert query.json()["error"] == body.json()["error"] == "invalid_request"


# Delegations


def test_a_spawn_answers_an_active_child_with_its_tokens(world: World) -> None:
    answer = world.spawn(world.root()["access_token"])
    assert answer.status_code == 201, answer.text
    child = answer.json()
    assert child["state"] == "active"
    assert child["envelope"]["tools"] == ["search"]
    assert child["hosts"] == ["crm"]
    assert child["tokens"]["crm"]["audience"] == "https://crm.example"
    assert set(child) >= {
        "id",
        "run",
        "parent",
        "agent",
        "client",
        "reason",
        "approval",
        "start",
        "expires_at",
        "calls",
    }


def test_a_level_2_spawn_is_pending_until_a_person_approves_with_a_passphrase(world: World) -> None:
    root = world.root()["access_token"]
    answer = world.spawn(root, "clerk", task={**TASK, "reversible": False, "resource_count": 1, "tools": ["refund"]})
    assert answer.status_code == 202, answer.text
    child = answer.json()
    assert child["state"] == "pending"
    assert "tokens" not in child
    session = world.session()
    questions = world.get("/v1/approvals", session, state="pending").json()["approvals"]
    assert child["approval"]["id"] in {question["id"] for question in questions}
    path = f"/v1/approvals/{child['approval']['id']}"
    problem(world.post(f"{path}/answer", session, {"verdict": "approve"}), 403, "fresh_proof_required")
    seen: list[Any] = []
    waiting = threading.Thread(target=lambda: seen.append(world.get(f"/v1/delegations/{child['id']}", root, wait=10)))
    waiting.start()
    done = world.post(f"{path}/answer", session, {"verdict": "approve", "passphrase": PASSPHRASE, "note": "ok"})
    assert done.status_code == 200, done.text
    assert done.json()["state"] == "approved"
    waiting.join(timeout=10)
    assert seen[0].json()["state"] == "active"
    tokens = world.post(f"/v1/delegations/{child['id']}/tokens", root, {}).json()["tokens"]
    assert set(tokens) == {"pay"}
    assert world.get(path, session).json()["answered_by"]


def test_a_spawn_repeated_under_its_key_is_the_same_child(world: World) -> None:
    root = world.root()["access_token"]
    body = {"target": "reader", "task": {**TASK, "tools": ["search"]}}
    first = world.post("/v1/delegations", root, body, **{"idempotency-key": "one"})
    again = world.post("/v1/delegations", root, body, **{"idempotency-key": "one"})
    assert first.json()["id"] == again.json()["id"]
    other = world.post("/v1/delegations", root, {**body, "ttl": 60}, **{"idempotency-key": "one"})
    problem(other, 409, "idempotency_mismatch")


def test_a_child_cannot_spawn(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    problem(world.spawn(child["tokens"]["crm"]["access_token"]), 403, "depth_exceeded")


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"target": "stranger"}, 403, "target_not_allowed"),
        ({"task": {"touches_pii": False}}, 400, "task_invalid"),
        ({"task": {**TASK, "resource_count": "1"}}, 400, "task_invalid"),
        ({"task": {**TASK, "tools": ["refund"]}}, 403, "invalid_scope"),
        ({"tenant": "other"}, 400, "tenant_mismatch"),
        ({"more": 1}, 400, "invalid_request"),
        ({"ttl": "60"}, 400, "invalid_request"),
        ({"ttl": True}, 400, "invalid_request"),
        ({"hosts": "*"}, 400, "invalid_request"),
    ],
)
def test_a_spawn_that_is_not_granted_says_why(world: World, change: dict[str, Any], status: int, reason: str) -> None:
    problem(world.spawn(world.root()["access_token"], **change), status, reason)


def test_ending_a_child_is_told_and_its_token_is_dead(world: World) -> None:
    root = world.root()["access_token"]
    child = world.spawn(root).json()
    token = child["tokens"]["crm"]["access_token"]
    ended = world.post(f"/v1/delegations/{child['id']}/end", root, {"reason": "completed"})
    assert (ended.json()["state"], ended.json()["reason"]) == ("ended", "completed")
    answer = world.post(
        "/v1/calls", world.guard(), {"token": token, "tool": "search", "args": {"query": "x"}, "preview": True}
    )
    problem(answer, 401, "completed")


def test_the_token_of_an_ended_child_still_learns_why_and_nothing_else(world: World) -> None:
    root = world.root()["access_token"]
    child, sibling = world.spawn(root).json(), world.spawn(root).json()
    token = child["tokens"]["crm"]["access_token"]
    world.post(f"/v1/delegations/{child['id']}/end", root, {})
    told = world.get(f"/v1/delegations/{child['id']}", token).json()
    assert (told["state"], told["reason"]) == ("ended", "completed")
    assert world.get(f"/v1/delegations/{sibling['id']}", token).status_code in (401, 404)
    assert world.post(f"/v1/delegations/{child['id']}/tokens", token, {}).status_code == 401


def test_closing_the_run_ends_what_is_below(world: World) -> None:
    run = world.root()
    child = world.spawn(run["access_token"]).json()
    assert (
        world.http.post(
            f"/v1/delegations/{run['run_id']}/end", headers={"authorization": f"Bearer {run['access_token']}"}
        ).json()["reason"]
        == "run_closed"
    )
    view = world.get(f"/v1/delegations/{child['id']}", world.session()).json()
    assert (view["state"], view["reason"]) == ("ended", "run_closed")


# Calls


def call(world: World, guard: str, token: str, tool: str = "search", key: str | None = KEY, **more: Any) -> Any:
    body = {"token": token, "tool": tool, "args": {"query": "late order"}, **more}
    return world.post("/v1/calls", guard, body, **({"idempotency-key": key} if key else {}))


def test_a_call_is_decided_once_per_key_and_its_outcome_is_kept(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    guard, token = world.guard(), child["tokens"]["crm"]["access_token"]
    first = call(world, guard, token).json()
    assert (first["decision"], first["state"]) == ("allow", "running")
    assert first["policy"].keys() == {"id", "version", "digest"}
    assert "repeat" not in first
    again = call(world, guard, token).json()
    assert (again["call_id"], again["repeat"]) == (first["call_id"], True)
    status = world.get(f"/v1/calls/{first['call_id']}", guard).json()
    assert (status["state"], status["live"]) == ("running", True)
    done = world.post(f"/v1/calls/{first['call_id']}/outcome", guard, {"outcome": "done"})
    assert done.json() == {"state": "done"}


def test_a_preview_reserves_nothing_and_a_refusal_is_a_200(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    guard, token = world.guard(), child["tokens"]["crm"]["access_token"]
    preview = call(world, guard, token, key=None, preview=True).json()
    assert (preview["decision"], preview["call_id"], preview["state"]) == ("allow", None, None)
    denied = call(world, guard, token, args={"query": "x" * 300}, key="f" * 32)
    assert denied.status_code == 200
    assert denied.json()["decision"] == "deny"


def test_a_tool_of_another_host_is_refused(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    answer = call(world, world.guard("pay-server"), child["tokens"]["crm"]["access_token"])
    assert answer.status_code in (401, 403), answer.text


def test_a_guard_reads_why_a_childs_token_failed_and_a_stranger_does_not(world: World) -> None:
    guard = world.guard()
    told = call(world, guard, "not.a.token").json()
    assert told["reason"].startswith("token_")
    assert world.post("/v1/calls", "not.a.token", {}).json()["reason"] == "invalid_token"


def test_a_child_may_be_its_own_guard_with_its_own_token_only(world: World) -> None:
    root = world.root()["access_token"]
    one, two = (world.spawn(root).json()["tokens"]["crm"]["access_token"] for _ in range(2))
    assert call(world, one, one).json()["decision"] == "allow"
    problem(call(world, one, two, key="e" * 32), 400, "invalid_request")


def test_records_are_taken_in_order(world: World) -> None:
    answer = world.post("/v1/records", world.guard(), {"journal": "j1", "first": 1, "lines": [{"kind": "odd"}]})
    assert answer.status_code in (200, 400), answer.text


def test_a_guard_reads_the_policy_of_its_host(world: World) -> None:
    policy = world.get("/v1/policy", world.guard()).json()
    assert policy["host"]["name"] == "crm"
    assert policy["host"]["effects"]["tag"] == {"effect": "write", "resource_arg": "ticket"}
    assert policy["documents"][0]["name"] == "main.policy.yaml"
    assert policy["digest"]


# Revocation and introspection


def test_revoking_a_run_is_one_record_that_ends_everything_below(world: World) -> None:
    run = world.root()
    child = world.spawn(run["access_token"]).json()
    session = world.session()
    body = {"mark": f"dlg:{run['run_id']}", "reason": "incident"}
    dry = world.post("/v1/revocations", session, {**body, "dry_run": True}).json()
    assert set(dry["falls"]) == {run["run_id"], child["id"]}
    assert dry["guards"].keys() == {"total", "applied"}
    assert world.get(f"/v1/delegations/{child['id']}", session).json()["state"] == "active"
    done = world.post("/v1/revocations", session, body)
    assert done.status_code == 200, done.text
    tree = world.get(f"/v1/delegations/{run['run_id']}/tree", session).json()
    assert tree["state"] == "ended"
    assert [node["state"] for node in tree["children"]] == ["ended"]
    marks = [row["mark"] for row in world.get("/v1/revocations", session).json()["revocations"]]
    assert body["mark"] in marks


def test_revocation_by_the_client_is_quiet_and_immediate(world: World) -> None:
    run = world.root()
    token = run["access_token"]
    assert world.form("/oauth2/introspect", "support-app", token=token).json()["active"] is True
    for sent in (token, token, "nothing"):
        answer = world.form("/oauth2/revoke", "support-app", token=sent)
        assert (answer.status_code, answer.content) == (200, b"")
    assert world.form("/oauth2/introspect", "support-app", token=token).json() == {"active": False}


def test_introspection_shows_a_host_its_own_tokens_only(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    token = child["tokens"]["crm"]["access_token"]
    mine = world.form("/oauth2/introspect", "crm-server", token=token).json()
    assert mine["active"] is True
    assert mine["scope"] == "search"
    assert world.form("/oauth2/introspect", "pay-server", token=token).json() == {"active": False}


# Operators


def test_a_viewer_sees_and_may_not_act(world: World) -> None:
    session = world.session("vic")
    assert world.get("/v1/delegations", session).status_code == 200
    body = {"mark": "agent:reader", "reason": "no"}
    problem(world.post("/v1/revocations", session, body), 403, "forbidden")
    problem(world.post("/v1/keys/rotate", session, {}), 403, "forbidden")


def test_a_wrong_passphrase_is_refused_like_an_unknown_operator(world: World) -> None:
    answers = [
        world.http.post("/v1/sessions", json={"tenant": "main", "operator": name, "passphrase": "wrong"}).json()
        for name in ("vic", "nobody")
    ]
    for answer in answers:
        answer.pop("trace_id")
    assert answers[0] == answers[1]


def test_listings_are_paged(world: World) -> None:
    session = world.session()
    for _ in range(3):
        world.spawn(world.root()["access_token"])
    page = world.get("/v1/delegations", session, limit=2).json()
    assert len(page["delegations"]) <= 2
    assert page["next"]
    rest = world.get("/v1/delegations", session, limit=2, after=page["next"]).json()
    assert {row["id"] for row in rest["delegations"]}.isdisjoint({row["id"] for row in page["delegations"]})


def test_audit_is_searched_exported_and_verified(world: World) -> None:
    run = world.root()
    world.spawn(run["access_token"])
    session = world.session()
    records = world.get("/v1/audit", session, run=run["run_id"]).json()["records"]
    assert {"run_opened", "spawned"} <= {record["kind"] for record in records}
    lines = world.get("/v1/audit/export", session).text.splitlines()
    assert all(isinstance(json.loads(line), dict) for line in lines)
    assert world.get("/v1/audit/verify", session).json()["ok"] is True


def test_the_records_of_one_call_are_found_however_much_came_before(world: World) -> None:
    guard, root = world.guard(), world.root()["access_token"]
    token = world.spawn(root).json()["tokens"]["crm"]["access_token"]
    for n in range(12):
        made = call(world, guard, token, key=f"{n:032x}").json()["call_id"]
    world.post(f"/v1/calls/{made}/outcome", guard, {"outcome": "done"})
    found = world.get("/v1/audit", world.session(), call=made, limit=2).json()["records"]
    assert [(row["call"], row["kind"]) for row in found] == [(made, "call_decided"), (made, "call_outcome")]


def test_keys_are_listed_and_rotated_by_an_admin_where_they_sign_for_one_tenant(
    world: World, server: BrokerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.session()
    before = world.get("/v1/keys", session).json()
    context = server.broker.context
    monkeypatch.setattr(context, "registries", {"main": context.registries["main"]})
    after = world.post("/v1/keys/rotate", session, {})
    assert after.status_code == 200, after.text
    assert after.json()["active"] != before["active"]
    assert world.get("/v1/delegations", session).status_code == 200, "what the old key signed still verifies"


def test_guards_are_listed_with_how_far_they_follow(world: World, server: BrokerServer) -> None:
    guard = world.guard()
    feed = world.get("/v1/feed", guard).json()
    done = world.post("/v1/feed", guard, {"instance": "proc1", "epoch": feed["epoch"], "seq": feed["seq"]})
    assert done.status_code == 204
    listed = world.get("/v1/guards", world.session()).json()["guards"]
    assert "crm-server/proc1" in {row["guard"] for row in listed}
