"""What must not cross: secrets into any output, one tenant into another, malformed requests into a fault."""

import io
import json
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest

from carnet_broker import logs
from tests.http.world import PASSPHRASE, SECRETS, TASK, World

ROUTES = [
    ("GET", "/v1/delegations/{dlg}", None),
    ("GET", "/v1/delegations/{dlg}/tree", None),
    ("POST", "/v1/delegations/{dlg}/tokens", {}),
    ("POST", "/v1/delegations/{dlg}/end", {"reason": "completed"}),
    ("GET", "/v1/calls/{call}", None),
    ("POST", "/v1/calls/{call}/outcome", {"outcome": "done"}),
    ("GET", "/v1/approvals/{apr}", None),
    ("POST", "/v1/approvals/{apr}/answer", {"verdict": "deny"}),
    ("POST", "/v1/approvals/{apr}/answer", {"verdict": "approve", "passphrase": PASSPHRASE}),
]
UNKNOWN = {"dlg": "dlg_" + "a" * 26, "call": "call_" + "a" * 26, "apr": "apr_" + "a" * 26}


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    lines = io.StringIO()
    logs.configure("debug", lines)
    yield lines
    root.handlers[:], root.level = handlers, level


def ids(world: World) -> dict[str, str]:
    """Ids that exist, all of the tenant main."""
    root = world.root()["access_token"]
    child = world.spawn(root).json()
    body = {"token": child["tokens"]["crm"]["access_token"], "tool": "search", "args": {"query": "x"}}
    call = world.post("/v1/calls", world.guard(), body, **{"idempotency-key": "a" * 32}).json()
    task = {**TASK, "reversible": False, "resource_count": 1, "tools": ["refund"]}
    pending = world.spawn(root, "clerk", task=task).json()
    return {"dlg": child["id"], "call": call["call_id"], "apr": pending["approval"]["id"]}


def bearers(world: World) -> dict[str, str]:
    """Every kind of bearer that the tenant other has."""
    return {
        "root": world.root("other-app")["access_token"],
        "guard": world.guard("other-server"),
        "session": world.session(tenant="other"),
    }


def ask(world: World, method: str, path: str, token: str, body: Any) -> tuple[int, dict[str, Any]]:
    answer = world.http.request(method, path, json=body, headers={"authorization": f"Bearer {token}"})
    document = answer.json()
    document.pop("trace_id", None)
    return answer.status_code, document


def test_ids_of_another_tenant_read_as_if_there_were_none(world: World) -> None:
    foreign, mine = ids(world), bearers(world)
    for method, path, body in ROUTES:
        for kind, token in mine.items():
            theirs = ask(world, method, path.format(**foreign), token, body)
            nothing = ask(world, method, path.format(**UNKNOWN), token, body)
            assert theirs == nothing, (method, path, kind)
            assert theirs[0] in (401, 403, 404), (method, path, kind, theirs)


def test_listings_audit_and_revocations_show_the_own_tenant_only(world: World) -> None:
    foreign = ids(world)
    session = world.session(tenant="other")
    for path in ("/v1/delegations", "/v1/approvals?state=all", "/v1/audit", "/v1/audit/export", "/v1/revocations"):
        text = world.http.get(path, headers={"authorization": f"Bearer {session}"}).text
        assert not any(id in text for id in foreign.values()), path
    body = {"mark": f"dlg:{foreign['dlg']}", "reason": "not mine"}
    assert world.post("/v1/revocations", session, body).status_code == 404
    assert world.form("/oauth2/revoke", "other-app", token=world.root()["access_token"]).status_code == 200
    assert world.get(f"/v1/delegations/{foreign['dlg']}", world.session()).json()["state"] == "active"


def test_no_secret_is_in_any_answer_or_log_line(world: World, log: io.StringIO) -> None:
    guard, session, root = world.guard(), world.session(), world.root()["access_token"]
    child = world.spawn(root).json()["tokens"]["crm"]["access_token"]
    secrets = {PASSPHRASE, *SECRETS.values(), guard, session, root, child}
    texts = [
        _provoke(world, secret, where) for secret in secrets for where in ("form", "basic", "bearer", "body", "path")
    ]
    texts.append(log.getvalue())
    for secret in secrets:
        assert not any(secret in text for text in texts)
        assert not any(secret[-32:] in text for text in texts)


def _provoke(world: World, secret: str, where: str) -> str:
    """Send a secret where it does not belong; answer everything that came back."""
    if where == "form":
        answer = world.form(
            "/oauth2/token", None, grant_type=secret[:200], client_id="support-app", client_secret=secret
        )
    elif where == "basic":
        answer = world.http.post("/oauth2/introspect", data={"token": secret}, auth=("nobody", secret))
    elif where == "bearer":
        answer = world.post("/v1/delegations", secret, {"target": secret[:100], "task": {}, secret[:100]: 1})
    elif where == "body":
        answer = world.http.post("/v1/sessions", json={"operator": secret[:100], "passphrase": 7, secret: 1})
    else:
        answer = world.http.get(f"/v1/{secret}", params={secret[:50]: secret})
    assert answer.status_code < 500
    return answer.text + str(answer.headers)


PATHS = [
    "/oauth2/token", "/oauth2/revoke", "/oauth2/introspect", "/oauth2/authorize", "/v1/delegations", "/v1/calls",
    "/v1/delegations/x", "/v1/delegations/x/tokens", "/v1/delegations/x/end", "/v1/delegations/x/tree", "/v1/calls/x",
    "/v1/calls/x/outcome", "/v1/records", "/v1/feed", "/v1/policy", "/v1/sessions", "/v1/approvals", "/v1/approvals/x",
    "/v1/approvals/x/answer", "/v1/revocations", "/v1/audit", "/v1/keys", "/v1/keys/rotate", "/v1/guards", "/x",
]  # fmt: skip
NASTY: list[Any] = [
    None, True, False, 0, -1, 2**53, 2**63, 2**70, -(2**70), 1e308, "", "\x00", "\ud7ff", "a" * 5000, "é" * 200, [], {},
    [[[[]]]], {"a": {"b": {"c": 1}}}, "../..", "dlg_" + "a" * 26, "' OR 1=1 --", "%00", "{{7*7}}", "\r\nx: y",
]  # fmt: skip
MEMBERS = [
    "target", "task", "payload", "ttl", "hosts", "ceilings", "token", "tool", "args", "preview", "approval_id",
    "verdict", "outcome", "detail", "journal", "first", "lines", "instance", "epoch", "seq", "mark", "until", "reason",
    "dry_run", "operator", "passphrase", "tenant", "note",
]  # fmt: skip


def test_hundreds_of_malformed_requests_cause_no_fault(world: World) -> None:
    dice = random.Random(20261130)
    tokens = [*bearers(world).values(), world.root()["access_token"], world.guard(), world.session(), "x.y.z", "-"]
    for number in range(400):
        path, token = dice.choice(PATHS), dice.choice(tokens)
        members = dice.sample(MEMBERS, dice.randint(0, 8))
        body = {name: dice.choice(NASTY) for name in members}
        sent: dict[str, Any] = {"headers": {"authorization": f"Bearer {token}"}}
        shape = dice.randint(0, 4)
        if shape == 0:
            sent["content"] = json.dumps(body).encode()[: dice.randint(0, 200)]
        elif shape == 1:
            sent["data"] = {name: str(value)[:100] for name, value in body.items()}
        elif shape == 2:
            sent["params"] = {name: str(value)[:100] for name, value in body.items()}
        else:
            sent["json"] = body
        answer = world.http.request(dice.choice(["GET", "POST", "POST", "PUT", "DELETE"]), path, **sent)
        assert answer.status_code < 500, (number, path, body, answer.text)
        assert answer.headers["content-type"] != "text/plain; charset=utf-8" or answer.content == b""


VALID: list[tuple[str, str, dict[str, Any]]] = [
    (
        "root",
        "/v1/delegations",
        {"target": "reader", "task": TASK, "payload": None, "ttl": 60, "hosts": ["*"], "ceilings": {}},
    ),
    ("root", "/v1/delegations", {"target": "reader", "task": {**TASK, "tools": ["search"]}}),
    ("root", "/v1/delegations/{dlg}/tokens", {"hosts": ["crm"]}),
    ("root", "/v1/delegations/{dlg}/end", {"reason": "completed"}),
    ("guard", "/v1/calls", {"token": "{child}", "tool": "search", "args": {"query": "x"}, "approval_id": "apr_x"}),
    ("guard", "/v1/calls/{call}/outcome", {"outcome": "done", "detail": ""}),
    ("guard", "/v1/records", {"journal": "j", "first": 1, "lines": [{"kind": "intent", "n": 1}]}),
    ("guard", "/v1/feed", {"instance": "a", "epoch": "e", "seq": 1}),
    ("session", "/v1/approvals/{apr}/answer", {"verdict": "deny", "note": "no", "passphrase": "x"}),
    ("session", "/v1/revocations", {"mark": "agent:clerk", "until": None, "reason": "x", "dry_run": True}),
]


def test_one_odd_member_in_a_good_request_causes_no_fault(world: World) -> None:
    found = ids(world)
    root = world.root()["access_token"]
    child = world.spawn(root).json()
    found |= {"dlg": child["id"], "child": child["tokens"]["crm"]["access_token"]}
    tokens = {"root": root, "guard": world.guard(), "session": world.session()}
    for number, (kind, path, body) in enumerate(VALID):
        for name, odd in ((name, odd) for name in body for odd in NASTY):
            changed = {**body, name: odd}
            changed = {key: found["child"] if value == "{child}" else value for key, value in changed.items()}
            key = f"{number}{name}{NASTY.index(odd)}"
            answer = world.post(path.format(**found), tokens[kind], changed, **{"idempotency-key": key})
            assert answer.status_code < 500, (path, name, odd, answer.text)
        for fact, odd in ((fact, odd) for fact in body.get("task", {}) for odd in NASTY):
            answer = world.post(path, root, {**body, "task": {**body["task"], fact: odd}})
            assert answer.status_code < 500, (fact, odd, answer.text)


@pytest.mark.parametrize("path", ["/v1/delegations", "/v1/calls", "/v1/revocations"])
def test_two_credentials_in_one_request_are_refused(world: World, path: str) -> None:
    headers = [("authorization", "Bearer a.b.c"), ("authorization", "Bearer d.e.f")]
    assert world.http.post(path, json={}, headers=headers).status_code == 400


def test_a_token_in_the_query_or_in_a_form_is_not_a_credential(world: World) -> None:
    token = world.root()["access_token"]
    assert world.http.get("/v1/delegations", params={"access_token": token}).status_code == 401
    assert world.http.post("/v1/delegations", data={"access_token": token}).status_code == 401
