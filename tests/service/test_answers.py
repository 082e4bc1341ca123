"""Who may answer, how, and until when."""

from dataclasses import replace

import anyio
import pytest

from carnet.reasons import Reason, Refusal
from carnet_broker.core.rows import Approval
from carnet_broker.service.principals import Principal
from carnet_broker.service.requests import Verdict
from carnet_broker.service.views import ApprovalView, DelegationView, Listing
from tests.service.world import ADA, GRACE, GUARD, OWEN, PASSPHRASE, RISKY, ROOT, TRACE, VERA, World, good

pytestmark = pytest.mark.anyio


async def asked(world: World) -> tuple[DelegationView, str]:
    view = await world.child(await world.root(), ("refund",), task=RISKY)
    assert view.approval is not None
    return view, view.approval.id


async def test_the_person_sees_everything_that_is_asked_and_afterwards_nothing_is_kept(world: World) -> None:
    view, approval = await asked(world)
    seen = good(await world.service.approval(VERA, approval), ApprovalView)
    assert (seen.kind, seen.agent, seen.target, seen.state) == ("delegation", "support", "worker", "pending")
    assert seen.task == {**RISKY, "tools": ["refund"]}
    assert seen.envelope is not None
    assert seen.envelope["level"] == 2
    assert seen.seconds_left == 120
    listed = good(await world.service.approvals(VERA, "pending", None, 10), Listing)
    assert [row.id for row in listed.rows] == [approval]
    done = good(await world.approve(approval), ApprovalView)
    assert (done.state, done.answered_by, done.args, done.task) == ("approved", "operator:ada", None, None)
    assert good(await world.service.approvals(VERA, "pending", None, 10), Listing).rows == ()
    line = (await world.audit("answered"))[-1]
    assert (line.actor, line.decision, line.delegation) == ("operator:ada", "approve", view.id)


@pytest.mark.parametrize(
    ("who", "passphrase", "reason"),
    [
        (ADA, None, Reason.FRESH_PROOF),
        (ADA, "wrong", Reason.FRESH_PROOF),
        (ADA, "", Reason.FRESH_PROOF),
        (VERA, PASSPHRASE, Reason.FORBIDDEN),
        (GUARD, PASSPHRASE, Reason.FORBIDDEN),
        (OWEN, PASSPHRASE, Reason.SELF_APPROVAL),
    ],
)
async def test_approving_takes_another_person_the_role_and_a_fresh_proof(
    world: World, who: Principal, passphrase: str | None, reason: Reason
) -> None:
    _, approval = await asked(world)
    refused = good(await world.service.answer(who, approval, Verdict.APPROVE, "", passphrase, TRACE), Refusal)
    assert refused.reason is reason
    line = (await world.audit("answer_refused"))[-1]
    assert (line.decision, line.reason, line.approval) == ("deny", reason.value, approval)
    row = await world.store.get(Approval, "acme", approval)
    assert row is not None
    assert row.state.value == "pending"


async def test_an_owner_that_is_a_group_keeps_all_its_members_from_approving(world: World) -> None:
    whole = world.context.registries["acme"]
    agents = {**whole.agents, "support": replace(whole.agents["support"], owner="leads")}
    world.context.registries = {"acme": replace(whole, agents=agents)}
    _, approval = await asked(world)
    for member in (ADA, OWEN):
        assert good(await world.approve(approval, member), Refusal).reason is Reason.SELF_APPROVAL
    assert isinstance(await world.approve(approval, GRACE), ApprovalView)


async def test_where_the_policy_names_groups_only_they_answer(continuing: World) -> None:
    _, approval = await asked(continuing)
    for verdict in (Verdict.APPROVE, Verdict.DENY):
        refused = await continuing.service.answer(GRACE, approval, verdict, "", PASSPHRASE, TRACE)
        assert good(refused, Refusal).reason is Reason.NOT_APPROVER
    assert isinstance(await continuing.approve(approval), ApprovalView)


async def test_guessing_passphrases_is_stopped(world: World) -> None:
    _, approval = await asked(world)
    for _ in range(10):
        await world.service.answer(ADA, approval, Verdict.APPROVE, "", "wrong", TRACE)
    assert good(await world.approve(approval), Refusal).reason is Reason.TOO_MANY_REQUESTS
    world.clock.advance(60)
    assert isinstance(await world.approve(approval), ApprovalView)


async def test_an_answer_is_given_once(world: World) -> None:
    _, approval = await asked(world)
    good(await world.approve(approval), ApprovalView)
    assert good(await world.approve(approval, ROOT), Refusal).reason is Reason.ALREADY_ANSWERED
    denied = await world.service.answer(ROOT, approval, Verdict.DENY, "", None, TRACE)
    assert good(denied, Refusal).reason is Reason.ALREADY_ANSWERED


@pytest.mark.parametrize(("after", "in_time"), [(0, True), (119, True), (120, False), (121, False), (4000, False)])
async def test_silence_is_a_denial_with_its_own_reason(world: World, after: int, in_time: bool) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    world.clock.advance(after)
    outcome = await world.approve(view.approval.id)
    if in_time:
        assert good(outcome, ApprovalView).state == "approved"
        return
    assert good(outcome, Refusal).reason is Reason.APPROVAL_EXPIRED
    found = good(await world.service.show(root, view.id, 0), DelegationView)
    assert (found.state, found.reason) == ("ended", "approval_timed_out")
    assert (await world.audit("timed_out"))[-1].delegation == view.id
    assert not isinstance(await world.service.mint(root, view.id, None, TRACE), dict)


async def test_a_withdrawn_approval_ends_its_delegation_and_its_tokens(world: World) -> None:
    root = await world.root()
    id, token = await world.approved(root)
    view = good(await world.service.show(root, id, 0), DelegationView)
    assert view.approval is not None
    done = await world.service.answer(ADA, view.approval.id, Verdict.WITHDRAW, "wrong", None, TRACE)
    assert good(done, ApprovalView).state == "withdrawn"
    refused = await world.call(token, "refund", {"amount": 1, "customer_id": "a"})
    assert good(refused, Refusal).reason is Reason.APPROVAL_WITHDRAWN
    assert good(await world.service.mint(root, id, None, TRACE), Refusal).reason is Reason.APPROVAL_WITHDRAWN


async def test_a_withdrawn_question_ends_its_delegation_even_where_the_policy_continues(continuing: World) -> None:
    _, token = await continuing.approved(await continuing.root())
    made = await continuing.called(token, "refund", {"amount": 1, "customer_id": "a"})
    assert made.approval_id is not None
    done = await continuing.service.answer(ADA, made.approval_id, Verdict.WITHDRAW, "", None, TRACE)
    assert good(done, ApprovalView).state == "withdrawn"
    refused = await continuing.call(token, "refund", {"amount": 1, "customer_id": "a"})
    assert good(refused, Refusal).reason is Reason.APPROVAL_WITHDRAWN


async def test_a_spent_approval_is_too_late_to_withdraw(world: World) -> None:
    _, token = await world.approved(await world.root())
    args = {"amount": 1, "customer_id": "a"}
    made = await world.called(token, "refund", args)
    assert made.approval_id is not None
    good(await world.approve(made.approval_id), ApprovalView)
    assert (await world.called(token, "refund", args)).decision == "allow"
    late = await world.service.answer(ADA, made.approval_id, Verdict.WITHDRAW, "", None, TRACE)
    assert good(late, Refusal).reason is Reason.TOO_LATE


async def test_nothing_is_approved_under_a_run_that_was_closed(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    await world.service.end(root, root.txn, "run_closed", TRACE)
    assert good(await world.approve(view.approval.id), Refusal).reason is Reason.RUN_CLOSED


async def test_an_approval_of_another_tenant_is_not_found(world: World) -> None:
    _, approval = await asked(world)
    stranger = Principal(kind=ADA.kind, tenant="other", name="ada", role=ADA.role)
    refused = await world.service.answer(stranger, approval, Verdict.DENY, "", None, TRACE)
    assert good(refused, Refusal).reason is Reason.NOT_FOUND


async def test_waiting_is_woken_by_the_answer(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("refund",), task=RISKY)
    assert view.approval is not None
    seen: list[DelegationView] = []

    async def wait() -> None:
        seen.append(good(await world.service.show(root, view.id, 30), DelegationView))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.sleep(0.05)
            await world.approve(view.approval.id)
    assert [one.state for one in seen] == ["active"]
