"""What the sweep writes down, the sealer links, and journals ship."""

import sqlite3
from pathlib import Path

import pytest

from carnet.audit import Record
from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet_broker.core.rows import Approval, Call, PolicyInForce
from carnet_broker.service.requests import RecordBatch, Verdict
from carnet_broker.service.views import AuditCheck, DelegationView
from carnet_broker.store.base import Index, Where
from tests.service.world import ADA, GUARD, PARENT, PAY_GUARD, RISKY, ROOT, TRACE, VERA, World, good, registry

pytestmark = pytest.mark.anyio
REFUND = {"amount": 5, "customer_id": "cust_1"}


async def sweep(world: World) -> int:
    return await world.service.sweep(world.clock.now())


async def test_a_time_out_is_written_with_its_mark_and_its_call(world: World) -> None:
    _, token = await world.approved(await world.root())
    made = await world.called(token, "refund", REFUND)
    assert made.call_id is not None
    assert made.approval_id is not None
    world.clock.advance(119)
    await sweep(world)
    assert await world.audit("timed_out") == []
    world.clock.advance(1)
    assert await sweep(world) > 0
    row = await world.store.get(Call, "acme", made.call_id)
    approval = await world.store.get(Approval, "acme", made.approval_id)
    assert row is not None
    assert approval is not None
    assert (row.state.value, approval.state.value, approval.shown) == ("refused", "timed_out", None)
    assert good(await world.call(token, "refund", REFUND), Refusal).reason is Reason.APPROVAL_TIMED_OUT
    assert [line.reason for line in await world.audit("ended")] == ["approval_timed_out"]


async def test_an_approved_call_lapses_and_a_missing_outcome_becomes_unknown(world: World) -> None:
    _, token = await world.approved(await world.root())
    waits = await world.called(token, "refund", REFUND)
    ran = await world.called(token, "refund", {**REFUND, "amount": 1})
    assert waits.call_id is not None
    assert waits.approval_id is not None
    assert ran.call_id is not None
    assert ran.approval_id is not None
    await world.approve(waits.approval_id)
    await world.approve(ran.approval_id)
    assert (await world.called(token, "refund", {**REFUND, "amount": 1})).decision == "allow"
    world.clock.advance(300)
    await sweep(world)
    lapsed = await world.store.get(Call, "acme", waits.call_id)
    assert lapsed is not None
    assert (lapsed.state.value, lapsed.reason) == ("refused", "approval_lapsed")
    world.clock.advance(59)
    await sweep(world)
    assert await world.audit("outcome_unknown") == []
    world.clock.advance(1)
    await sweep(world)
    lost = await world.store.get(Call, "acme", ran.call_id)
    assert lost is not None
    assert lost.state.value == "unknown"
    child = await world.store.find(Record, "acme", Where(index=Index.RECORDS), None, 1000)
    assert [line.outcome for line in child.rows if line.kind == "outcome_unknown"] == ["unknown"]


async def test_each_fallen_delegation_has_one_ended_record_with_its_cause(world: World) -> None:
    root = await world.root()
    views = [await world.child(root) for _ in range(4)]
    await world.service.end(root, views[0].id, "completed", TRACE)
    await world.service.revoke(ROOT, "agent:worker", None, "incident", False, TRACE)
    for _ in range(3):
        await sweep(world)
    lines = await world.audit("ended")
    found = {line.delegation: (line.reason, line.actor, line.cause) for line in lines}
    assert len(lines) == 4
    assert found[views[0].id] == ("completed", "agent:support", f"dlg:{views[0].id}")
    assert {found[view.id] for view in views[1:]} == {("revoked", "operator:root", "agent:worker")}


async def test_a_runs_end_is_written_once_for_everything_below_it(world: World) -> None:
    root = await world.root()
    view = await world.child(root)
    world.clock.advance(3600)
    await sweep(world)
    assert await sweep(world) == 0
    lines = [line for line in await world.audit("ended") if line.delegation is not None]
    assert {(line.delegation, line.reason) for line in lines} == {(root.txn, "expired"), (view.id, "expired")}
    assert len(lines) == 2


async def test_a_swept_restart_repeats_nothing(world: World) -> None:
    root = await world.root()
    await world.child(root)
    await world.service.end(root, root.txn, "run_closed", TRACE)
    await sweep(world)
    before = len(await world.audit())
    world.context.swept.clear()
    assert await sweep(world) == 0
    assert len(await world.audit()) == before


async def test_a_new_history_rule_counts_from_its_activation_and_an_old_one_keeps_its_time(world: World) -> None:
    one = "history: [{match: {tool: search}, max: 5, decision: deny}]\n"
    root = await world.root()
    token = (await world.child(root)).tokens["desk"].access_token
    world.clock.advance(10)
    world.context.registries = {"acme": registry(one)}
    await world.service.activate_policy("acme")
    first = await world.store.find(PolicyInForce, "acme", Where(index=Index.POLICIES), None, 1)
    assert set(first.rows[0].history.values()) == {world.clock.now()}
    made = await world.called(token, "search", {"query": "a"})
    assert (made.decision, made.reason) == ("require_approval", "history_recent")
    world.clock.advance(10)
    world.context.registries = {"acme": registry(one + "approvals: {timeout: 9}\n")}
    await world.service.activate_policy("acme")
    await world.service.activate_policy("acme")
    second = await world.store.find(PolicyInForce, "acme", Where(index=Index.POLICIES), None, 10)
    assert [row.history for row in second.rows[:2]] == [first.rows[0].history] * 2
    assert len(second.rows) == 3
    fresh = (await world.child(await world.root())).tokens["desk"].access_token
    assert (await world.called(fresh, "search", {"query": "a"})).decision == "allow"


async def sealed(world: World) -> AuditCheck:
    root = await world.root()
    for _ in range(3):
        await world.child(root)
    assert await world.service.seal("acme") > 0
    await world.child(root)
    assert await world.service.seal("acme") > 0
    return good(await world.service.verify_audit(VERA), AuditCheck)


async def test_an_untouched_log_verifies_and_names_its_unsealed_tail(world: World) -> None:
    check = await sealed(world)
    assert (check.ok, check.unsealed, check.sealed) == (True, 0, check.records)
    await world.root()
    check = good(await world.service.verify_audit(VERA), AuditCheck)
    assert (check.ok, check.unsealed) == (True, 1)
    for _ in range(3):
        await world.service.rotate_keys(ROOT, TRACE)
    for key in world.context.keys.states:
        if key.state.value == "retiring":
            world.context.keys.retire(key.kid)
    assert good(await world.service.verify_audit(VERA), AuditCheck).ok
    lines = [line async for line in await world.service.export(VERA)]  # type: ignore[union-attr]
    assert [line["record"]["seq"] for line in lines if "record" in line] == list(range(1, check.records + 4))
    assert sum(1 for line in lines if "checkpoint" in line) == 2


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("UPDATE record SET body = CAST(replace(CAST(body AS TEXT), 'allow', 'deny') AS BLOB) WHERE seq = 3", "edited"),
        ("UPDATE record SET body = CAST('nonsense' AS BLOB) WHERE seq = 3", "read"),
        ("UPDATE record SET body = CAST('{}' AS BLOB) WHERE seq = 3", "read"),
        ("UPDATE record SET seq = CASE seq WHEN 3 THEN -4 ELSE -3 END WHERE seq IN (3, 4)", "edited"),
        ("DELETE FROM record WHERE seq = 3", "missing"),
        ("UPDATE record SET body = (SELECT body FROM record WHERE seq = 2) WHERE seq = 3", "edited"),
        ("DELETE FROM record WHERE seq = (SELECT max(seq) FROM record)", "cut"),
        ("DELETE FROM checkpoint WHERE seq = (SELECT max(seq) FROM checkpoint)", "checkpoint"),
        ("UPDATE checkpoint SET signature = replace(signature, '.', '.e30')", "checkpoint"),
        ("UPDATE checkpoint SET head = (SELECT head FROM checkpoint ORDER BY seq LIMIT 1)", "checkpoint"),
    ],
)
async def test_whoever_writes_to_the_file_is_found_out(world: World, tmp_path: Path, what: str, told: str) -> None:
    assert (await sealed(world)).ok
    with sqlite3.connect(tmp_path / "carnet.db") as conn:
        for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            conn.execute(f"DROP TRIGGER {name}")
        conn.execute("PRAGMA foreign_keys = OFF")
        conn.execute("PRAGMA ignore_check_constraints = ON")
        assert conn.execute(what).rowcount > 0
        conn.execute("UPDATE record SET seq = -seq WHERE seq < 0")
    conn.close()
    check = good(await world.service.verify_audit(VERA), AuditCheck)
    assert not check.ok
    assert told in (check.problem or "")


def line(call: str, at: int, **more: object) -> dict[str, object]:
    return {"kind": "call_intent", "call": call, "at": at, "tool": "search", "decision": "allow", **more}


async def test_journals_are_kept_once_in_order_and_gaps_are_audited(world: World, clock: ManualClock) -> None:
    now = clock.now()
    batch = RecordBatch(journal="j1", first=1, lines=(line("call_1", now), line("call_2", now)))
    assert await world.service.records(GUARD, batch) == 3
    assert await world.service.records(GUARD, batch) == 3
    longer = RecordBatch(journal="j1", first=2, lines=(line("call_2", now), line("call_3", now)))
    assert await world.service.records(GUARD, longer) == 4
    assert [row.call for row in await world.audit("call_intent")] == ["call_1", "call_2", "call_3"]
    late = RecordBatch(journal="j1", first=7, lines=(line("call_7", now),))
    assert await world.service.records(GUARD, late) == 8
    gap = (await world.audit("journal_gap"))[-1]
    assert (gap.facts["from"], gap.facts["to"]) == (4, 6)
    assert await world.service.records(PAY_GUARD, RecordBatch(journal="j1", first=1, lines=batch.lines)) == 3
    assert good(await world.service.guards(VERA), object).guards == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "run_opened"},
        {"kind": "call_intent", "at": "now"},
        {"kind": "call_intent", "at": 0},
        {"kind": "call_intent", "tool": 5},
        {"kind": "call_intent", "tool": "x" * 400},
    ],
)
async def test_a_line_that_is_no_record_of_a_call_is_refused(world: World, bad: dict[str, object]) -> None:
    batch = RecordBatch(journal="j1", first=1, lines=({"at": 5, **bad},))
    assert good(await world.service.records(GUARD, batch), Refusal).reason is Reason.REQUEST_INVALID


async def test_a_child_reports_for_itself_alone(world: World) -> None:
    view = await world.child(await world.root())
    child = await world.claims(view.tokens["desk"].access_token)
    own = RecordBatch(journal="j2", first=1, lines=(line("call_1", 5, delegation=view.id),))
    assert await world.service.records(child, own) == 2
    other = RecordBatch(journal="j2", first=2, lines=(line("call_1", 5, delegation="dlg_other"),))
    assert isinstance(await world.service.records(child, other), Refusal)
    assert isinstance(await world.service.records(PARENT, own), Refusal)


async def test_readiness_names_what_is_wrong(world: World) -> None:
    assert list(await world.service.problems()) == []
    world.context.registries = {"acme": registry("approvals: {timeout: 9}\n")}
    assert any("policy" in problem for problem in await world.service.problems())


async def test_a_pending_child_that_is_denied_is_shown_as_such(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    await world.service.answer(ADA, view.approval.id, Verdict.DENY, "no", None, TRACE)
    await sweep(world)
    assert good(await world.service.show(root, view.id, 0), DelegationView).reason == "approval_denied"
    assert [one.reason for one in await world.audit("ended")] == ["approval_denied"]


async def test_a_row_that_cannot_be_read_does_not_stop_the_sweep(world: World, tmp_path: Path) -> None:
    root = await world.root()
    first = await world.child(root, ("refund",), task=RISKY)
    second = await world.child(root, ("refund",), task={**RISKY, "resource_count": 6})
    assert first.approval is not None
    assert second.approval is not None
    with sqlite3.connect(tmp_path / "carnet.db") as conn:
        conn.execute("DROP TRIGGER approval_moves")
        conn.execute("UPDATE approval SET body = CAST('{}' AS BLOB) WHERE id = ?", (first.approval.id,))
    conn.close()
    world.clock.advance(120)
    await sweep(world)
    assert [line.approval for line in await world.audit("timed_out")] == [second.approval.id]
