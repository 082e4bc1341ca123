"""A tool server, or a child, that writes into the audit log what others did."""

from typing import Any

from tests.http.world import World


def line(**more: Any) -> dict[str, Any]:
    return {"kind": "call_intent", "at": 1, "tool": "search", "decision": "allow", "call": "call_forged", **more}


def report(world: World, token: str, journal: str, *lines: dict[str, Any]) -> int:
    return world.post("/v1/records", token, {"journal": journal, "first": 1, "lines": list(lines)}).status_code


def records(world: World, **query: str) -> list[dict[str, Any]]:
    found = world.get("/v1/audit", world.session(), **query).json()["records"]
    return [row for row in found if row["kind"] == "call_intent"]


def test_a_guard_reports_nothing_about_a_delegation_without_a_tool_of_its_host(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    whose = {"delegation": child["id"], "run": child["run"], "agent": "reader", "client": "support-app"}
    assert report(world, world.guard("pay-server"), "pay1", line(**whose)) == 200
    assert records(world, delegation=child["id"]) == []
    assert records(world, run=child["run"]) == []


def test_whose_call_it_was_is_what_the_broker_knows(world: World) -> None:
    root, other = world.root(), world.root()
    child = world.spawn(root["access_token"]).json()
    forged = line(
        delegation=child["id"],
        run=other["run_id"],
        agent="support",
        client="key-app",
        level=2,
        chain=[["dlg_x", "support", "key-app"]],
    )
    assert report(world, world.guard(), "crm1", forged) == 200
    assert records(world, run=other["run_id"]) == []
    (kept,) = records(world, delegation=child["id"])
    assert (kept["run"], kept["agent"], kept["client"]) == (child["run"], "reader", "support-app")
    assert (kept["level"], kept["host"], kept["actor"]) == (0, "crm", "guard:crm-server")
    assert [link[0] for link in kept["chain"]] == [root["run_id"], child["id"]]


def test_a_child_puts_nothing_on_record_for_another_run_or_agent(world: World) -> None:
    victim = world.root()
    child = world.spawn(world.root()["access_token"]).json()
    token = child["tokens"]["crm"]["access_token"]
    assert report(world, token, "self1", line(run=victim["run_id"], agent="support")) == 200
    assert records(world, run=victim["run_id"]) == []
    assert report(world, token, "self2", line(delegation=victim["run_id"])) == 400


def test_a_record_names_no_operator_broker_or_policy_as_its_actor(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    sent = line(delegation=child["id"], actor="operator:ada", kind="answered", tenant="other", seq=1)
    assert report(world, world.guard(), "crm2", sent) == 400
    assert report(world, world.guard(), "crm3", {**sent, "kind": "call_intent"}) == 200
    (kept,) = records(world, delegation=child["id"])
    assert (kept["actor"], kept["tenant"]) == ("guard:crm-server", "main")
    assert kept["seq"] > 1


def test_another_guards_journal_is_out_of_reach(world: World) -> None:
    child = world.spawn(world.root()["access_token"]).json()
    token = child["tokens"]["crm"]["access_token"]
    far = {"journal": "shared1", "first": 2**52, "lines": [line()]}
    assert world.post("/v1/records", world.guard("pay-server"), far).status_code == 200
    assert world.post("/v1/records", token, far).status_code == 200
    own = {"journal": "shared1", "first": 1, "lines": [line(delegation=child["id"])]}
    assert world.post("/v1/records", world.guard(), own).json() == {"next": 2}
    assert len(records(world, delegation=child["id"])) == 1
