"""People who are asked again and again: until they tire, until others are not heard, until the one who must not says
yes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.service.questions import DENIALS, PER_CLIENT
from carnet_broker.service.requests import Verdict
from carnet_broker.service.views import ApprovalView, DelegationView
from tests.service.world import ADA, OTHER, OWEN, RISKY, TRACE, World, build, good

pytestmark = pytest.mark.anyio
VACUOUS = {"wipe": {"args": {"zzz": {"required": False}}}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask(world: World, root: Claims, count: int, **more: Any) -> DelegationView | Refusal:
    """A delegation of level 2 that differs from the others by what it counts."""
    return await world.spawn(root, ("refund",), task={**RISKY, "resource_count": count}, **more)


async def deny(world: World, asked: DelegationView | Refusal) -> None:
    approval = good(asked, DelegationView).approval
    assert approval is not None
    good(await world.service.answer(ADA, approval.id, Verdict.DENY, "no", None, TRACE), ApprovalView)


async def test_one_client_leaves_other_clients_their_questions(tmp_path: Path) -> None:
    world = await build(tmp_path, ManualClock())
    for _ in range(PER_CLIENT // 10):
        root = await world.root()
        for count in range(10):
            good(await ask(world, root, count), DelegationView)
    refused = good(await ask(world, await world.root(), 0), Refusal)
    assert refused.reason is Reason.TOO_MANY_PENDING
    assert refused.detail == f"{PER_CLIENT} questions of the client support-app wait for an answer."
    good(await ask(world, await world.root(OTHER), 0), DelegationView)
    world.clock.advance(120)
    good(await ask(world, await world.root(), 0), DelegationView)
    await world.store.close()


async def test_calls_of_a_client_count_among_its_questions(tmp_path: Path) -> None:
    world = await build(tmp_path, ManualClock())
    roots = [await world.root() for _ in range(4)]
    _, token = await world.approved(roots[0], ("wipe",))
    for root in roots[1:]:
        for count in range(10):
            good(await ask(world, root, count), DelegationView)
    made = await world.called(token, "wipe", {"name": "x"})
    assert (made.decision, made.reason) == ("deny", "too_many_pending")
    assert "support-app" in made.detail
    await world.store.close()


async def test_a_denied_target_is_not_asked_for_in_ever_new_words(tmp_path: Path) -> None:
    world = await build(tmp_path, ManualClock())
    root = await world.root()
    for more in ({}, {"ttl": 299}, {"ceilings": {"refund": {"args": {"zzz": {"required": False}}}}}):
        await deny(world, await ask(world, root, 5, **more))
    for count, more in ((5, {}), (4, {}), (5, {"ttl": 298})):
        assert good(await ask(world, root, count, **more), Refusal).reason is Reason.DENIED_BEFORE
    other = {"target": "clerk", "payload": {"ticket": "T-1"}}
    good(await ask(world, root, 5, **other), DelegationView)
    good(await world.spawn(root, ("search",)), DelegationView)
    good(await ask(world, await world.root(), 5), DelegationView)
    await world.store.close()


async def test_denials_are_counted_again_by_a_broker_that_starts_anew(tmp_path: Path) -> None:
    world = await build(tmp_path, ManualClock())
    root = await world.root()
    for count in range(DENIALS):
        await deny(world, await ask(world, root, count))
    world.context.ledgers = type(world.context.ledgers)()
    assert good(await ask(world, root, 9), Refusal).reason is Reason.DENIED_BEFORE
    await world.store.close()


async def test_nobody_approves_for_an_agent_whose_owner_is_not_known_any_more(tmp_path: Path) -> None:
    world = await build(tmp_path, ManualClock())
    asked = [good(await ask(world, await world.root(), count), DelegationView) for count in range(2)]
    whole = world.context.registries["acme"]
    gone = replace(whole, agents={name: agent for name, agent in whole.agents.items() if name != "support"})
    world.context.registries = {"acme": gone}
    for view, verdict in zip(asked, (Verdict.DENY, Verdict.WITHDRAW), strict=True):
        assert view.approval is not None
        for who in (OWEN, ADA):
            refused = good(await world.approve(view.approval.id, who), Refusal)
            assert refused.reason is Reason.SELF_APPROVAL
            assert "not registered any more" in str(refused.detail)
        done = good(await world.service.answer(OWEN, view.approval.id, verdict, "", None, TRACE), ApprovalView)
        assert done.state in ("denied", "withdrawn")
    await world.store.close()
