"""Many at once: bounds hold exactly, one answer counts, no spawn escapes a revocation. TEST_ROUNDS sets the rounds."""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from carnet.clock import ManualClock
from carnet.reasons import Refusal
from carnet.token.claims import Claims
from carnet_broker.core.registry import Limits
from carnet_broker.service.locks import Locks
from carnet_broker.service.principals import Bearer
from carnet_broker.service.requests import Verdict
from carnet_broker.service.views import CallView, DelegationView
from carnet_broker.store.limits import Limits as StoreLimits
from carnet_broker.store.sqlite import SqliteStore
from tests.service.world import ADA, ONE_IRREVERSIBLE, RISKY, ROOT, TRACE, World, build, good, on
from tests.store.broken import CheckThenSetUnguarded

pytestmark = pytest.mark.anyio
ROUNDS = int(os.environ.get("TEST_ROUNDS", "3"))
PINS = {"wipe": {"args": {"name": {"max_length": 50}}, "max_calls": 64}}


async def together(*acts: Callable[[], Awaitable[Any]]) -> list[Any]:
    found: list[Any] = []

    async def act(one: Callable[[], Awaitable[Any]]) -> None:
        found.append(await one())

    async with anyio.create_task_group() as tasks:
        for one in acts:
            tasks.start_soon(act, one)
    return found


class NoLocks(Locks):
    """As if each caller were a process of its own: only the store's compare is left."""

    def hold(self, name: str):  # type: ignore[no-untyped-def]
        return super().hold(f"{name}/{id(anyio.get_current_task())}")


@pytest.mark.parametrize("locks", [Locks, NoLocks], ids=["one process", "as many processes"])
async def test_exactly_one_of_64_first_irreversible_calls_is_allowed(bounded: World, locks: type[Locks]) -> None:
    bounded.context.locks = locks()
    for _ in range(ROUNDS):
        root = await bounded.root()
        _, token = await bounded.approved(root, ("wipe",), ceilings=PINS)
        made = await together(*[partial(bounded.call, token, "wipe", {"name": f"n{n}"}) for n in range(64)])
        allowed = [one for one in made if isinstance(one, CallView) and one.decision == "allow"]
        assert len(allowed) == 1
        refused = [one for one in made if not (isinstance(one, CallView) and one.decision == "allow")]
        assert {getattr(one.reason, "value", one.reason) for one in refused} <= {"history_limit", "contended"}
        await close(bounded, root)


async def test_siblings_share_the_bound_of_their_run(bounded: World) -> None:
    root = await bounded.root()
    tokens = [
        (await bounded.approved(root, ("wipe",), ceilings=PINS, task={**RISKY, "resource_count": number}))[1]
        for number in range(4)
    ]
    made = await together(*[partial(bounded.called, token, "wipe", {"name": "x"}) for token in tokens * 4])
    assert sum(1 for one in made if one.decision == "allow") == 1


async def test_a_delegation_never_makes_more_calls_than_its_ceiling(world: World) -> None:
    root = await world.root()
    pins = {"wipe": {"args": {"name": {"max_length": 50}}, "max_calls": 5}}
    _, token = await world.approved(root, ("wipe",), ceilings=pins)
    made = await together(*[partial(world.called, token, "wipe", {"name": f"n{n}"}) for n in range(24)])
    assert sorted(one.reason for one in made) == ["max_calls"] * 19 + ["policy_allow"] * 5


async def test_no_live_child_is_left_when_a_spawn_races_a_revocation(world: World) -> None:
    for _ in range(ROUNDS * 4):
        root = await world.root()
        spawned = [partial(world.spawn, root) for _ in range(6)]
        revoked = partial(world.service.revoke, ROOT, root.txn, None, "x", False, TRACE)
        made = await together(*spawned, revoked, *spawned)
        for view in made:
            if isinstance(view, DelegationView):
                token = view.tokens["desk"].access_token
                assert isinstance(await world.service.caller(token, {Bearer.CHILD}), Refusal)
        assert isinstance(await world.spawn(root), Refusal)


async def close(world: World, root: Claims) -> None:
    """End the run: a client may hold a few hundred open ones only."""
    assert isinstance(await world.service.end(root, root.txn, "run_closed", TRACE), DelegationView)


async def spends(world: World) -> int:
    """How often one approval dispatched its call, out of 16 that tried at once."""
    root = await world.root()
    _, token = await world.approved(root)
    args = {"amount": 5, "customer_id": "cust_1"}
    asked = await world.called(token, "refund", args)
    assert asked.approval_id is not None
    await world.approve(asked.approval_id)
    named = partial(world.call, token, "refund", args, approval_id=asked.approval_id)
    made = await together(*[named] * 16)
    await close(world, root)
    return sum(1 for one in made if isinstance(one, CallView) and one.decision == "allow" and not one.repeat)


@pytest.mark.parametrize("locks", [Locks, NoLocks], ids=["one process", "as many processes"])
async def test_an_approval_is_spent_exactly_once(world: World, locks: type[Locks]) -> None:
    world.context.locks = locks()
    for _ in range(ROUNDS):
        assert await spends(world) == 1


async def answers(world: World) -> int:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    approval = view.approval.id
    made = await together(
        *[lambda: world.approve(approval) for _ in range(3)],
        *[lambda: world.service.answer(ADA, approval, Verdict.DENY, "", None, TRACE) for _ in range(3)],
    )
    await close(world, root)
    return sum(1 for one in made if not isinstance(one, Refusal))


async def test_of_many_answers_one_counts(world: World) -> None:
    for _ in range(ROUNDS):
        assert await answers(world) == 1


async def test_a_store_that_checks_and_then_sets_is_found_out(tmp_path: Path, clock: ManualClock) -> None:
    limits = StoreLimits(reserve=4096)
    store = CheckThenSetUnguarded.open(tmp_path / "carnet.db", clock=clock.now, limits=limits)
    world = await on(store, clock, limits=Limits())
    world.context.locks = NoLocks()
    counts = [await answers(world) for _ in range(10)]
    await store.close()
    assert max(counts) > 1, "the suite would not notice an approval that is answered twice"


async def test_the_same_key_from_many_is_one_decision(bounded: World) -> None:
    _, token = await bounded.approved(await bounded.root(), ("wipe",), ceilings=PINS)
    key = "a" * 32
    made = await together(*[lambda: bounded.called(token, "wipe", {"name": "x"}, key=key) for _ in range(12)])
    assert len({one.call_id for one in made}) == 1
    assert sum(1 for one in made if not one.repeat) == 1


async def test_two_brokers_on_one_store_keep_the_bound_together(tmp_path: Path, clock: ManualClock) -> None:
    one = await build(tmp_path, clock, ONE_IRREVERSIBLE)
    other_store = SqliteStore.open(
        tmp_path / "carnet.db", clock=clock.now, lock=False, limits=StoreLimits(reserve=4096)
    )
    other = await on(other_store, clock, ONE_IRREVERSIBLE)
    other.context.keys, other.keys = one.context.keys, one.keys
    for _ in range(ROUNDS):
        _, token = await one.approved(await one.root(), ("wipe",), ceilings=PINS)
        acts = [partial(w.call, token, "wipe", {"name": f"n{n}"}) for n in range(16) for w in (one, other)]
        made = await together(*acts)
        assert sum(1 for got in made if isinstance(got, CallView) and got.decision == "allow") == 1
    await other.store.close()
    await one.store.close()


async def test_locks_take_no_memory_when_nobody_holds_them(world: World) -> None:
    root = await world.root()
    await together(*[lambda: world.spawn(root) for _ in range(8)])
    assert len(world.context.locks) == 0
    good(await world.service.show(root, root.txn, 0), DelegationView)
