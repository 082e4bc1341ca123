"""The registry changes while runs, tokens and questions live: what was taken away is used no more."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet_broker.service.principals import Bearer
from carnet_broker.service.requests import Verdict
from carnet_broker.service.views import ApprovalView
from tests.service.world import ADA, PARENT, RISKY, TENANT, TRACE, World, build, good

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def world(tmp_path: Path, clock: ManualClock) -> AsyncIterator[World]:
    made = await build(tmp_path, clock)
    yield made
    await made.store.close()


def agents(world: World, **changed: Any) -> None:
    """The registry with agents changed (a mapping) or removed (None)."""
    registry = world.context.registries[TENANT]
    kept = {name: agent for name, agent in registry.agents.items() if changed.get(name, {}) is not None}
    made = {name: replace(kept[name], **change) for name, change in changed.items() if change is not None}
    world.context.registries = {TENANT: replace(registry, agents={**kept, **made})}


def without_client(world: World, name: str) -> None:
    registry = world.context.registries[TENANT]
    clients = {id: client for id, client in registry.clients.items() if id != name}
    world.context.registries = {TENANT: replace(registry, clients=clients)}


async def test_an_agent_that_is_not_registered_any_more_calls_nothing_and_gets_nothing(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("note",))
    agents(world, worker=None)
    made = await world.call(view.tokens["desk"].access_token, "note", {"text": "a"})
    assert good(made, Refusal).reason is Reason.TOKEN_ENDED
    assert good(await world.service.mint(root, view.id, None, TRACE), Refusal).reason is Reason.SCOPE_NOT_GRANTABLE
    assert good(await world.spawn(root, ("note",)), Refusal).reason is Reason.TARGET_NOT_ALLOWED


@pytest.mark.parametrize("removed", ["agent", "client"])
async def test_a_run_whose_opener_is_not_registered_any_more_opens_no_door(world: World, removed: str) -> None:
    made = await world.service.open_run(PARENT, None, TRACE)
    assert not isinstance(made, Refusal)
    root = await world.claims(made.access_token)
    view = await world.child(root, ("note",))
    if removed == "agent":
        agents(world, support=None)
    else:
        without_client(world, "support-app")
    for token in (made.access_token, view.tokens["desk"].access_token):
        refused = await world.service.caller(token, frozenset({Bearer.ROOT, Bearer.CHILD}))
        assert good(refused, Refusal).reason is Reason.TOKEN_ENDED
    assert (
        good(await world.call(view.tokens["desk"].access_token, "note", {"text": "a"}), Refusal).reason
        is Reason.TOKEN_ENDED
    )


@pytest.mark.parametrize(
    "change",
    [{"worker": None}, {"support": {"grants": frozenset({"note"})}}, {"worker": {"tools": frozenset({"search"})}}],
)
async def test_nobody_approves_what_the_registry_took_away_while_the_question_was_open(
    world: World, change: dict[str, Any]
) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    agents(world, **change)
    assert good(await world.approve(view.approval.id), Refusal).reason is Reason.SCOPE_NOT_GRANTABLE
    denied = await world.service.answer(ADA, view.approval.id, Verdict.DENY, "gone", None, TRACE)
    assert good(denied, ApprovalView).state == "denied"


async def test_a_tool_that_was_taken_from_an_agent_is_called_and_minted_no_more(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("note", "search"))
    held = view.tokens["desk"].access_token
    agents(world, worker={"tools": frozenset({"search"})})
    made = await world.called(held, "note", {"text": "a"})
    assert (made.decision, made.reason) == ("deny", "scope_missing")
    assert (await world.called(held, "search", {"query": "a"})).decision == "allow"
    assert good(await world.service.mint(root, view.id, None, TRACE), Refusal).reason is Reason.SCOPE_NOT_GRANTABLE


async def test_an_approved_call_of_a_tool_that_was_taken_away_does_not_run(world: World) -> None:
    _, held = await world.approved(await world.root())
    args = {"amount": 1, "customer_id": "a"}
    asked = await world.called(held, "refund", args)
    assert asked.approval_id is not None
    good(await world.approve(asked.approval_id), ApprovalView)
    agents(world, worker={"tools": frozenset({"note"})})
    made = await world.called(held, "refund", args, approval_id=asked.approval_id)
    assert (made.decision, made.reason) == ("deny", "scope_missing")


async def test_a_clock_that_is_set_back_revives_nothing(world: World, clock: ManualClock) -> None:
    view = await world.child(await world.root(), ("note",))
    held = view.tokens["desk"].access_token
    clock.advance(700)
    assert isinstance(await world.call(held, "note", {"text": "a"}), Refusal)
    clock.set_wall(clock.now() - 690)
    assert good(await world.call(held, "note", {"text": "a"}), Refusal).reason is Reason.TOKEN_EXPIRED
