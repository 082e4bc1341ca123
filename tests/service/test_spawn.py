"""Opening runs, spawning, minting and ending."""

from dataclasses import replace
from pathlib import Path

import pytest

from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet.token.names import MAX_COUNT
from carnet_broker.core.registry import Limits
from carnet_broker.service.principals import Bearer
from carnet_broker.service.requests import SpawnRequest, Verdict
from carnet_broker.service.views import ApprovalView, DelegationView, Fallen, Issued
from tests.service.world import (
    ADA,
    GUARD,
    OTHER,
    PARENT,
    QUIET,
    RISKY,
    ROOT,
    TRACE,
    World,
    build,
    good,
    on,
)

pytestmark = pytest.mark.anyio


async def test_a_run_is_opened_with_a_root_token_for_the_broker_alone(world: World) -> None:
    issued = good(await world.service.open_run(PARENT, None, TRACE), Issued)
    claims = await world.claims(issued.access_token)
    assert claims.is_root
    assert (claims.aud, claims.scope, claims.act) == (world.context.issuer, (), None)
    assert claims.exp - claims.iat == 900
    assert issued.run_expires_at == world.clock.now() + 3600
    assert [row.kind for row in await world.audit("run_opened")] == ["run_opened"]


async def test_a_guard_opens_no_run_and_an_agent_gets_no_guard_token(world: World) -> None:
    assert good(await world.service.open_run(GUARD, None, TRACE), Refusal).reason is Reason.FORBIDDEN
    assert good(await world.service.guard_token(PARENT, TRACE), Refusal).reason is Reason.SCOPE_NOT_GRANTABLE
    token = good(await world.service.guard_token(GUARD, TRACE), Issued)
    assert [(row.actor, row.facts["scope"]) for row in await world.audit("minted")] == [("guard:desk-guard", "guard")]
    assert [row.actor for row in await world.audit("mint_refused")] == ["agent:support"]
    assert await world.service.caller(token.access_token, {Bearer.GUARD}) == GUARD
    assert isinstance(await world.service.caller(token.access_token, {Bearer.ROOT, Bearer.CHILD}), Refusal)


async def test_a_run_is_renewed_by_its_client_until_its_fixed_end(world: World) -> None:
    run = good(await world.service.open_run(PARENT, None, TRACE), Issued)
    assert run.run is not None
    world.clock.advance(3000)
    renewed = good(await world.service.open_run(PARENT, run.run, TRACE), Issued)
    assert (renewed.expires_in, renewed.run_expires_at) == (600, run.run_expires_at)
    assert good(await world.service.open_run(OTHER, run.run, TRACE), Refusal).reason is Reason.NOT_FOUND
    world.clock.advance(600)
    assert good(await world.service.open_run(PARENT, run.run, TRACE), Refusal).reason is Reason.EXPIRED


async def test_a_closed_run_is_not_renewed(world: World) -> None:
    root = await world.root()
    await world.service.end(root, root.txn, "run_closed", TRACE)
    assert good(await world.service.open_run(PARENT, root.txn, TRACE), Refusal).reason is Reason.RUN_CLOSED


async def test_a_client_has_only_so_many_open_runs(world: World) -> None:
    most = world.context.registries["acme"].limits.max_open_runs
    runs = [await world.root() for _ in range(most)]
    assert good(await world.service.open_run(PARENT, None, TRACE), Refusal).reason is Reason.TOO_MANY_RUNS
    assert isinstance(await world.service.open_run(OTHER, None, TRACE), Issued)
    await world.service.end(runs[0], runs[0].txn, "run_closed", TRACE)
    assert isinstance(await world.service.open_run(PARENT, None, TRACE), Issued)


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_bound_on_open_runs_outlives_the_process_and_counts_what_lives(
    tmp_path: Path, clock: ManualClock, restarted: bool
) -> None:
    world = await build(tmp_path, clock, max_open_runs=3)
    for _ in range(3):
        await world.root()
    if restarted:
        world = await on(world.store, clock, limits=Limits(max_open_runs=3))
    assert good(await world.service.open_run(PARENT, None, TRACE), Refusal).reason is Reason.TOO_MANY_RUNS
    good(await world.service.revoke(ROOT, "client:support-app", None, "leaked", False, TRACE), Fallen)
    clock.advance(3)
    assert isinstance(await world.service.open_run(PARENT, None, TRACE), Issued)
    await world.store.close()


async def test_the_largest_count_that_a_task_may_state_fits_a_token(world: World) -> None:
    root = await world.root()
    view = await world.child(root, task={**QUIET, "resource_count": MAX_COUNT})
    claims = await world.claims(view.tokens["desk"].access_token)
    assert claims.delegation.resource_limit == MAX_COUNT
    refused = good(await world.spawn(root, task={**QUIET, "resource_count": MAX_COUNT + 1}), Refusal)
    assert refused.reason is Reason.TASK_INVALID


async def test_a_quiet_task_gives_an_active_child_with_tokens_in_the_same_answer(world: World) -> None:
    root = await world.root()
    view = await world.child(root)
    assert (view.state, view.envelope.level, view.hosts) == ("active", 0, ("desk",))
    assert view.approval is not None
    assert view.approval.answered_by == "policy:support-tools@3"
    claims = await world.claims(view.tokens["desk"].access_token)
    assert (claims.iat, claims.exp) == (view.start, view.expires_at)
    assert [link[0] for link in claims.delegation.chain] == [root.txn, view.id]
    assert [row.decision for row in await world.audit("spawned")] == ["allow"]


async def test_a_risky_task_waits_for_a_person_and_has_no_token(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert (view.state, view.envelope.level, view.start, dict(view.tokens)) == ("pending", 2, None, {})
    refused = good(await world.service.mint(root, view.id, None, TRACE), Refusal)
    assert refused.reason is Reason.APPROVAL_PENDING


async def test_the_life_of_a_level_2_child_begins_at_its_approval_and_repeats_are_byte_equal(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    world.clock.advance(100)
    good(await world.approve(view.approval.id), ApprovalView)
    first = await world.service.mint(root, view.id, None, TRACE)
    world.clock.advance(100)
    again = await world.service.mint(root, view.id, ["pay"], TRACE)
    assert not isinstance(first, Refusal)
    assert not isinstance(again, Refusal)
    one, other = [await world.claims(made["pay"].access_token) for made in (first, again)]
    assert one == other
    assert (one.iat, one.exp) == (view.created_at + 100, view.created_at + 400)
    assert again["pay"].expires_in == 200


async def test_a_child_spawns_and_mints_nothing(world: World) -> None:
    root = await world.root()
    view = await world.child(root)
    child = await world.claims(view.tokens["desk"].access_token)
    request = SpawnRequest(target="worker", task=QUIET)
    assert good(await world.service.spawn(child, request, None, TRACE), Refusal).reason is Reason.DEPTH_EXCEEDED
    assert good(await world.service.mint(child, view.id, None, TRACE), Refusal).reason is Reason.DEPTH_EXCEEDED
    assert {row.decision for row in await world.audit("spawn_refused")} == {"deny"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"target": "nobody"}, Reason.TARGET_NOT_ALLOWED),
        ({"target": "support"}, Reason.TARGET_NOT_ALLOWED),
        ({"target": "clerk", "task": {**RISKY, "tools": ["refund"]}, "payload": {}}, Reason.PAYLOAD_INVALID),
        ({"task": {**QUIET, "reversible": None}}, Reason.TASK_INVALID),
        ({"task": {**QUIET, "resource_count": 2**40}}, Reason.TASK_INVALID),
        ({"task": {**QUIET, "tools": ["unheard-of"]}}, Reason.SCOPE_NOT_GRANTABLE),
        ({"ttl": 4}, Reason.TTL_TOO_SHORT),
        ({"ceilings": {"refund": {"max_calls": 1}}}, Reason.CEILING_INVALID),
        ({"hosts": ("pay",)}, Reason.HOST_UNKNOWN),
    ],
)
async def test_what_does_not_fit_is_refused_and_recorded(world: World, change: dict, reason: Reason) -> None:  # type: ignore[type-arg]
    root = await world.root()
    request = SpawnRequest(**{"target": "worker", "task": {**QUIET, "tools": ["search"]}, **change})
    refused = good(await world.service.spawn(root, request, None, TRACE), Refusal)
    assert refused.reason is reason
    line = (await world.audit("spawn_refused"))[-1]
    assert (line.decision, line.reason, line.run) == ("deny", reason.value, root.txn)


async def test_a_lost_reply_is_given_again_and_another_request_under_its_key_is_not(world: World) -> None:
    root = await world.root()
    first = await world.child(root, key="one")
    again = await world.child(root, key="one")
    assert again.id == first.id
    assert again.tokens["desk"].access_token.split(".")[1] == first.tokens["desk"].access_token.split(".")[1]
    other = good(await world.spawn(root, ("note",), key="one"), Refusal)
    assert other.reason is Reason.IDEMPOTENCY_MISMATCH
    assert len(await world.audit("spawned")) == 1


async def test_a_repeat_is_answered_although_the_registry_would_refuse_it_now(world: World) -> None:
    root = await world.root()
    first = await world.child(root, key="one")
    agents = dict(world.context.registries["acme"].agents)
    del agents["worker"]
    registry = world.context.registries["acme"]
    world.context.registries = {"acme": replace(registry, agents=agents)}
    again = await world.child(root, key="one")
    assert again.id == first.id
    assert good(await world.spawn(root, key="two"), Refusal).reason is Reason.TARGET_NOT_ALLOWED


async def test_the_same_question_is_asked_once(world: World) -> None:
    root = await world.root()
    first = await world.child(root, ("refund",), task=RISKY)
    again = await world.child(root, ("refund",), task=RISKY)
    assert (again.id, again.approval) == (first.id, first.approval)
    other = await world.child(root, ("refund",), task={**RISKY, "resource_count": 6})
    assert other.id != first.id


async def test_a_run_asks_at_most_ten_questions_at_once(world: World) -> None:
    root = await world.root()
    for number in range(10):
        await world.child(root, ("refund",), task={**RISKY, "resource_count": number})
    refused = good(await world.spawn(root, ("refund",), task={**RISKY, "resource_count": 99}), Refusal)
    assert refused.reason is Reason.TOO_MANY_PENDING


async def test_what_a_person_denied_is_not_asked_again_in_the_run(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    good(await world.service.answer(ADA, view.approval.id, Verdict.DENY, "no", None, TRACE), ApprovalView)
    refused = good(await world.spawn(root, ("refund",), task=RISKY), Refusal)
    assert refused.reason is Reason.DENIED_BEFORE
    ended = good(await world.service.show(root, view.id, 0), DelegationView)
    assert (ended.state, ended.reason) == ("ended", "approval_denied")


async def test_ended_is_told_to_parent_and_child_with_its_own_reason(world: World) -> None:
    root = await world.root()
    view = await world.child(root)
    token = view.tokens["desk"].access_token
    child = await world.claims(token)
    done = good(await world.service.end(child, view.id, "completed", TRACE), DelegationView)
    assert (done.state, done.reason) == ("ended", "completed")
    refused = good(await world.service.caller(token, {Bearer.ROOT, Bearer.CHILD}), Refusal)
    assert refused.reason is Reason.COMPLETED
    told = await world.service.caller(token, {Bearer.CHILD, Bearer.ENDED})
    assert told == child
    assert good(await world.service.show(child, view.id, 0), DelegationView).reason == "completed"
    refused_mint = good(await world.service.mint(root, view.id, None, TRACE), Refusal)
    assert refused_mint.reason is Reason.COMPLETED


async def test_closing_the_run_ends_everything_below_with_one_mark(world: World) -> None:
    root = await world.root()
    views = [await world.child(root) for _ in range(3)]
    good(await world.service.end(root, root.txn, "run_closed", TRACE), DelegationView)
    for view in views:
        token = view.tokens["desk"].access_token
        assert good(await world.service.caller(token, {Bearer.CHILD}), Refusal).reason is Reason.RUN_CLOSED
    assert len((await world.store.changes("acme", "", 0, 0)).entries) == 1


async def test_nobody_ends_or_sees_a_delegation_of_another_run(world: World) -> None:
    root, other = await world.root(), await world.root(OTHER)
    view = await world.child(root)
    assert good(await world.service.end(other, view.id, "completed", TRACE), Refusal).reason is Reason.NOT_FOUND
    assert good(await world.service.show(other, view.id, 0), Refusal).reason is Reason.NOT_FOUND
    assert good(await world.service.mint(other, view.id, None, TRACE), Refusal).reason is Reason.NOT_FOUND
    sibling = await world.claims((await world.child(root)).tokens["desk"].access_token)
    assert good(await world.service.end(sibling, view.id, "completed", TRACE), Refusal).reason is Reason.NOT_FOUND


async def test_a_token_that_would_be_too_large_is_refused_before_anything_is_written(world: World) -> None:
    root = await world.root()
    wide = {"search": {"args": {"query": {"enum": [f"{number:0100d}" for number in range(60)]}}}}
    refused = good(await world.spawn(root, ceilings=wide), Refusal)
    assert refused.reason is Reason.TOKEN_TOO_LARGE
    assert await world.audit("spawned") == []
