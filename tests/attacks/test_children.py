"""A prompt-injected child and a compromised parent that try to get more than was derived."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet_broker.service.requests import Verdict
from carnet_broker.service.views import CallView, DelegationView
from tests.service.world import ADA, ONE_IRREVERSIBLE, QUIET, RISKY, TRACE, World, build, good

pytestmark = pytest.mark.anyio
OTHERS: tuple[Any, ...] = ("c1 ", "C1", "\uff431", "c1\x00", "1", 1, True, 1.0, [], None, {"id": "c1"}, ["c1", "c1 "])
CEILING = {"note": {"args": {"text": {"max_length": 5}}, "max_calls": 2}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def world(tmp_path: Path, clock: ManualClock) -> AsyncIterator[World]:
    made = await build(tmp_path, clock, f"{ONE_IRREVERSIBLE}approvals: {{timeout: 60, on_denial: continue}}\n")
    yield made
    await made.store.close()


async def token(world: World, **more: Any) -> str:
    view = await world.child(await world.root(), ("note",), **more)
    return view.tokens["desk"].access_token


@pytest.mark.parametrize(
    "args",
    [{}, {"text": None}, {"text": "123456"}, {"text": ["1"]}, {"text": {"max_length": 1}}, {"text": 5}, {"Text": "a"}],
)
async def test_an_argument_that_is_absent_or_of_another_type_is_outside_a_ceiling(
    world: World, args: dict[str, Any]
) -> None:
    made = await world.called(await token(world, ceilings=CEILING), "note", args)
    assert made.decision == "deny"


@pytest.mark.parametrize("text", ["{}", "null", "[]"])
async def test_a_refused_call_uses_up_no_slot_and_an_allowed_one_does(world: World, text: str) -> None:
    held = await token(world, ceilings=CEILING)
    for _ in range(3):
        assert (await world.called(held, "note", {"text": f"{text}too long"})).decision == "deny"
    assert [(await world.called(held, "note", {"text": text})).decision for _ in range(3)] == ["allow", "allow", "deny"]


@pytest.mark.parametrize(
    "ceilings",
    [
        {"note": {}},
        {"note": {"args": {}, "max_calls": 10**9}},
        {"note": {"args": {"text": {"max": 1, "type": "string"}}}},
        {"note": {"args": {"text": {"required": "no"}}}},
        {"note": {"args": {"text": {"pattern": "(a+)+$("}}}},
        {"note": {"args": {"text": {"unknown": 1}}}},
        {"note": {"max_calls": 1.0}},
        {"note": {"max_calls": True}},
        {"note ": {"max_calls": 1}},
        {"search": {"max_calls": 1}},
        {"note": [{"max_calls": 1}]},
        {"note": {"args": {"text": {"properties": {"a": {"properties": {"a": {"properties": 1}}}}}}}},
    ],
)
async def test_a_ceiling_that_can_not_be_understood_gives_no_child(world: World, ceilings: dict[str, Any]) -> None:
    refused = await world.spawn(await world.root(), ("note",), ceilings=ceilings)
    assert good(refused, Refusal).reason is Reason.CEILING_INVALID


@pytest.mark.parametrize("ttl", [-1, 0, 1, 4, 10**12])
async def test_no_ttl_lengthens_a_life_beyond_its_level(world: World, ttl: int) -> None:
    made = await world.spawn(await world.root(), ("note",), ttl=ttl)
    if isinstance(made, DelegationView):
        assert made.envelope.credential_ttl_seconds <= 600
    else:
        assert made.reason is Reason.TTL_TOO_SHORT


async def test_the_resources_of_a_run_add_up_however_they_are_cut_into_children(world: World) -> None:
    root = await world.root()
    levels = [
        (await world.child(root, ("search",), task={**QUIET, "resource_count": 4})).envelope.level for _ in range(4)
    ]
    assert levels == [0, 0, 1, 1]


@pytest.mark.parametrize("ids", [["c1"], "c1", ["c1", "c1"], ["c1", "c2"]])
async def test_one_resource_more_than_stated_is_refused_however_it_is_written(world: World, ids: Any) -> None:
    view = await world.child(await world.root(), ("profile",), task={**QUIET, "resource_count": 1})
    held = view.tokens["desk"].access_token
    first = await world.called(held, "profile", {"customer_id": ids})
    assert first.decision == ("allow" if ids == "c1" else "deny")
    if first.decision == "allow":
        for other in OTHERS:
            assert (await world.called(held, "profile", {"customer_id": other})).decision == "deny", other
        assert (await world.called(held, "profile", {"customer_id": "c1"})).decision == "allow"


async def test_a_denied_call_is_not_asked_again_in_other_words(world: World) -> None:
    _, held = await world.approved(await world.root())
    asked = await world.called(held, "refund", {"amount": 5, "customer_id": "c1"})
    assert asked.approval_id is not None
    await world.service.answer(ADA, asked.approval_id, Verdict.DENY, "no", None, TRACE)
    for args in (
        {"customer_id": "c1", "amount": 5},
        {"amount": 5.0, "customer_id": "c1"},
        {"amount": 4.99, "customer_id": "c1"},
        {"amount": 5, "customer_id": "c2"},
        {"amount": 5, "customer_id": "c1", "note": "please"},
    ):
        made = await world.called(held, "refund", args)
        assert (made.decision, made.approval_id) == ("deny", None), args


async def test_a_question_holds_the_one_irreversible_slot_of_the_run(world: World) -> None:
    root = await world.root()
    _, first = await world.approved(root)
    _, second = await world.approved(root, task={**RISKY, "resource_count": 6})
    assert (await world.called(first, "refund", {"amount": 1, "customer_id": "a"})).state == "waiting"
    for held in (first, second):
        made = await world.called(held, "refund", {"amount": 2, "customer_id": "b"})
        assert (made.decision, made.reason) == ("deny", "history_limit")


async def test_an_approval_of_a_sibling_is_for_nobody_else(world: World) -> None:
    root = await world.root()
    _, first = await world.approved(root)
    _, second = await world.approved(root, task={**RISKY, "resource_count": 6})
    args = {"amount": 1, "customer_id": "a"}
    asked = await world.called(first, "refund", args)
    assert asked.approval_id is not None
    await world.approve(asked.approval_id)
    stolen = await world.called(second, "refund", args, approval_id=asked.approval_id)
    assert stolen.reason == "approval_mismatch"
    assert (await world.called(first, "refund", args, approval_id=asked.approval_id)).decision == "allow"
    again = await world.called(first, "refund", args, approval_id=asked.approval_id)
    assert again.reason == "approval_spent"


async def test_the_approval_of_a_delegation_is_no_approval_of_a_call(world: World) -> None:
    view = await world.child(await world.root(), ("refund",), task=RISKY)
    assert view.approval is not None
    await world.approve(view.approval.id)
    made = await world.service.mint(await world.root(), view.id, None, TRACE)
    assert isinstance(made, Refusal), "another run mints nothing of it"


async def test_an_outcome_is_reported_once_and_never_frees_an_irreversible_slot(world: World) -> None:
    root = await world.root()
    _, held = await world.approved(root)
    args = {"amount": 1, "customer_id": "a"}
    asked = await world.called(held, "refund", args)
    assert asked.approval_id is not None
    assert asked.call_id is not None
    child = await world.claims(held)
    assert isinstance(await world.service.finish(child, asked.call_id, "failed", ""), Refusal), "it has not begun"
    await world.approve(asked.approval_id)
    assert good(await world.call(held, "refund", args), CallView).decision == "allow"
    assert await world.service.finish(child, asked.call_id, "failed", "") == "failed"
    assert isinstance(await world.service.finish(child, asked.call_id, "done", ""), Refusal)
    assert (await world.called(held, "refund", {"amount": 2, "customer_id": "b"})).reason == "history_limit"
