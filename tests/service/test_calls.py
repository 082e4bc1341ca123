"""One tool call: covered, bounded, decided, reserved, recorded; and how it ends."""

from dataclasses import replace

import pytest

from carnet.audit import argument_digests
from carnet.reasons import Reason, Refusal
from carnet_broker.core.rows import Call
from carnet_broker.service.principals import Principal
from carnet_broker.service.requests import CallRequest, Verdict
from carnet_broker.service.views import ApprovalView, CallStatus, Issued
from tests.service.world import ADA, GUARD, PARENT, PAY_GUARD, QUIET, RISKY, TRACE, World, good, registry

pytestmark = pytest.mark.anyio
REFUND = {"amount": 5, "customer_id": "cust_1"}


async def searching(world: World) -> tuple[str, str]:
    root = await world.root()
    view = await world.child(root, ("search", "note"), task={**QUIET, "resource_count": 0})
    return view.id, view.tokens["desk"].access_token


async def test_an_allowed_call_runs_and_its_outcome_is_kept(world: World) -> None:
    _, token = await searching(world)
    made = await world.called(token, "search", {"query": "late"}, guard=GUARD)
    assert (made.decision, made.state, made.reason, made.rule) == ("allow", "running", "policy_allow", "search[0]")
    assert made.call_id is not None
    assert await world.service.finish(GUARD, made.call_id, "done", "") == "done"
    assert await world.service.finish(GUARD, made.call_id, "done", "") == "done"
    late = good(await world.service.finish(GUARD, made.call_id, "failed", ""), Refusal)
    assert late.reason is Reason.CALL_STATE
    line = (await world.audit("call_decided"))[-1]
    assert (line.decision, line.tool, line.guard, line.call) == ("allow", "search", "desk-guard", made.call_id)


async def test_arguments_are_recorded_as_digests_under_the_hosts_key_and_in_clear_only_where_listed(
    world: World,
) -> None:
    _, token = await searching(world)
    await world.called(token, "note", {"text": "hello"}, guard=GUARD)
    await world.called(token, "search", {"query": "secret"}, guard=GUARD)
    note, search = (await world.audit("call_decided"))[-2:]
    key = world.context.keys.secret("audit-args", "acme", "desk")
    assert dict(note.args) == argument_digests(key, {"text": "hello"})
    assert (dict(note.clear), dict(search.clear)) == ({"text": "hello"}, {})
    assert "secret" not in str(search)


@pytest.mark.parametrize(
    ("tool", "args", "reason"),
    [
        ("profile", {"customer_id": "a"}, "scope_missing"),
        ("unheard-of", {}, "scope_missing"),
        ("search", {"query": 5}, "no_match"),
        ("search", {"query": "a", "more": 1}, "no_match"),
        ("search", {"query": float("nan")}, "arguments_invalid"),
        ("search", {}, "no_match"),
    ],
)
async def test_what_is_not_allowed_is_denied_and_recorded(world: World, tool: str, args: dict, reason: str) -> None:  # type: ignore[type-arg]
    _, token = await searching(world)
    made = await world.called(token, tool, args, guard=GUARD)
    assert (made.decision, made.state, made.reason) == ("deny", "refused", reason)
    line = (await world.audit("call_decided"))[-1]
    assert (line.decision, line.reason, line.call) == ("deny", reason, made.call_id)


@pytest.mark.parametrize(
    ("guard", "tool", "reason"),
    [
        (PAY_GUARD, "search", Reason.TOKEN_AUD),
        (PAY_GUARD, "refund", Reason.TOKEN_AUD),
        (GUARD, "refund", Reason.WRONG_HOST),
        (None, "refund", Reason.WRONG_HOST),
    ],
)
async def test_a_guard_speaks_for_its_own_host_alone(
    world: World, guard: Principal | None, tool: str, reason: Reason
) -> None:
    _, token = await searching(world)
    assert good(await world.call(token, tool, {}, guard=guard), Refusal).reason is reason
    assert (await world.audit("call_decided"))[-1].reason == reason.value


async def test_a_root_token_calls_nothing_and_a_call_needs_a_key(world: World) -> None:
    issued = good(await world.service.open_run(PARENT, None, TRACE), Issued)
    assert good(await world.call(issued.access_token, "search", {}), Refusal).reason is Reason.ROOT_TOKEN
    _, token = await searching(world)
    request = CallRequest(token=token, tool="search", args={"query": "a"})
    assert good(await world.service.call(GUARD, request, None, TRACE), Refusal).reason is Reason.REQUEST_INVALID


async def test_a_repeat_of_the_key_is_told_so_and_decides_nothing(world: World) -> None:
    _, token = await searching(world)
    first = await world.called(token, "search", {"query": "a"}, key="k" * 32)
    again = await world.called(token, "search", {"query": "a"}, key="k" * 32)
    assert (again.call_id, again.decision, again.repeat) == (first.call_id, "allow", True)
    assert not first.repeat
    other = good(await world.call(token, "search", {"query": "b"}, key="k" * 32), Refusal)
    assert other.reason is Reason.IDEMPOTENCY_MISMATCH
    denied = await world.called(token, "search", {}, key="d" * 32)
    assert (await world.called(token, "search", {}, key="d" * 32)).call_id == denied.call_id


async def test_a_preview_reserves_nothing(bounded: World) -> None:
    _, token = await bounded.approved(await bounded.root(), ("wipe",), ceilings=pins(5))
    for _ in range(3):
        seen = await bounded.called(token, "wipe", {"name": "x"}, preview=True)
        assert (seen.decision, seen.state, seen.call_id) == ("allow", None, None)
    assert (await bounded.called(token, "wipe", {"name": "x"})).decision == "allow"
    denied = await bounded.called(token, "wipe", {"name": "x"}, preview=True)
    assert (denied.decision, denied.reason) == ("deny", "history_limit")


def pins(most: int) -> dict[str, object]:
    return {"wipe": {"args": {"name": {"max_length": 5}}, "max_calls": most}}


async def test_an_irreversible_allow_asks_a_person_unless_the_approved_envelope_pins_it(world: World) -> None:
    root = await world.root()
    _, plain = await world.approved(root, ("wipe",))
    _, pinned = await world.approved(root, ("wipe",), ceilings=pins(2), task={**RISKY, "resource_count": 4})
    asked = await world.called(plain, "wipe", {"name": "x"})
    assert (asked.decision, asked.rule, asked.reason) == ("require_approval", "floor", "irreversible_floor")
    assert [(await world.called(pinned, "wipe", {"name": "x"})).reason for _ in range(3)] == [
        "policy_allow",
        "policy_allow",
        "max_calls",
    ]
    beyond = await world.called(pinned, "wipe", {"name": "too long"})
    assert beyond.reason == "ceiling_exceeded"


async def test_the_ceilings_of_an_ancestor_are_debited_by_all_below_it(world: World) -> None:
    mine = world.context.registries["acme"]
    bounded = replace(mine.agents["support"], ceilings={"search": {"max_calls": 3}})
    world.context.registries = {"acme": replace(mine, agents={**mine.agents, "support": bounded})}
    root = await world.root()
    tokens = [(await world.child(root)).tokens["desk"].access_token for _ in range(2)]
    made = [(await world.called(tokens[number % 2], "search", {"query": "a"})).reason for number in range(4)]
    assert made == ["policy_allow", "policy_allow", "policy_allow", "max_calls"]


async def test_a_delegation_touches_as_many_resources_as_its_task_stated(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("profile",), task={**QUIET, "resource_count": 2})
    token = view.tokens["desk"].access_token
    reasons = [
        (await world.called(token, "profile", {"customer_id": name})).reason for name in ("a", "b", "a", "c", "b")
    ]
    assert reasons == ["policy_allow", "policy_allow", "policy_allow", "resource_limit", "policy_allow"]
    none = await world.child(root, ("profile",), task={**QUIET, "resource_count": 0})
    refused = await world.called(none.tokens["desk"].access_token, "profile", {"customer_id": "a"})
    assert refused.reason == "resource_limit"
    unread = await world.called(token, "profile", {"customer_id": []})
    assert unread.reason == "resource_unreadable"


async def waiting_refund(world: World) -> tuple[str, str, str]:
    """token, call id, approval id"""
    _, token = await world.approved(await world.root())
    made = await world.called(token, "refund", REFUND, guard=PAY_GUARD)
    assert (made.decision, made.state) == ("require_approval", "waiting")
    assert made.call_id is not None
    assert made.approval_id is not None
    assert made.deadline == world.clock.now() + 120
    return token, made.call_id, made.approval_id


async def test_a_call_waits_is_approved_and_runs_once(world: World) -> None:
    token, call, approval = await waiting_refund(world)
    again = await world.called(token, "refund", REFUND, guard=PAY_GUARD)
    assert (again.call_id, again.approval_id, again.decision) == (call, approval, "require_approval")
    good(await world.approve(approval), ApprovalView)
    status = good(await world.service.call_state(PAY_GUARD, call, 0), CallStatus)
    assert (status.state, status.live) == ("waiting", True)
    assert status.approval is not None
    assert status.approval.state == "approved"
    run = await world.called(token, "refund", REFUND, guard=PAY_GUARD, approval_id=approval)
    assert (run.call_id, run.decision, run.state, run.reason) == (call, "allow", "running", "approved")
    named = await world.called(token, "refund", REFUND, guard=PAY_GUARD, approval_id=approval)
    assert (named.decision, named.reason) == ("deny", "approval_spent")
    anew = await world.called(token, "refund", REFUND, guard=PAY_GUARD)
    assert (anew.decision, anew.call_id == call) == ("require_approval", False)


async def test_an_approval_is_for_the_very_call_that_was_shown(world: World) -> None:
    token, _, approval = await waiting_refund(world)
    good(await world.approve(approval), ApprovalView)
    for args in ({**REFUND, "amount": 5.0}, {**REFUND, "amount": 6}, {**REFUND, "customer_id": "cust_2"}):
        made = await world.called(token, "refund", args, guard=PAY_GUARD, approval_id=approval)
        assert (made.decision, made.reason) == ("deny", "approval_mismatch")
    unknown = await world.called(token, "refund", REFUND, guard=PAY_GUARD, approval_id="apr_none")
    assert unknown.reason == "approval_mismatch"


async def test_three_calls_of_a_delegation_wait_at_once(world: World) -> None:
    _, token = await world.approved(await world.root())
    made = [await world.called(token, "refund", {**REFUND, "amount": number}) for number in (1, 2, 3, 4)]
    assert [one.decision for one in made] == ["require_approval"] * 3 + ["deny"]
    assert made[3].reason == "too_many_pending"


async def test_a_denied_call_ends_its_delegation_by_default(world: World) -> None:
    token, call, approval = await waiting_refund(world)
    good(await world.service.answer(ADA, approval, Verdict.DENY, "no", None, TRACE), ApprovalView)
    status = good(await world.service.call_state(PAY_GUARD, call, 0), CallStatus)
    assert (status.state, status.decision, status.reason, status.live) == ("refused", "deny", "approval_denied", False)
    assert good(await world.call(token, "refund", REFUND), Refusal).reason is Reason.APPROVAL_DENIED


async def test_where_the_policy_says_continue_the_tool_is_not_asked_for_again(continuing: World) -> None:
    token, _, approval = await continuing_refund(continuing)
    good(await continuing.service.answer(ADA, approval, Verdict.DENY, "no", None, TRACE), ApprovalView)
    for args in (REFUND, {**REFUND, "amount": 1}):
        made = await continuing.called(token, "refund", args)
        assert (made.decision, made.reason) == ("deny", "denied_before")


async def continuing_refund(world: World) -> tuple[str, str, str]:
    _, token = await world.approved(await world.root())
    made = await world.called(token, "refund", REFUND)
    assert made.call_id is not None
    assert made.approval_id is not None
    assert (made.on_denial, made.deadline) == ("continue", world.clock.now() + 60)
    return token, made.call_id, made.approval_id


async def test_a_time_out_is_no_persons_no_and_may_be_asked_again_where_the_policy_continues(
    continuing: World,
) -> None:
    token, call, _ = await continuing_refund(continuing)
    continuing.clock.advance(60)
    status = good(await continuing.service.call_state(await continuing.claims(token), call, 0), CallStatus)
    assert (status.state, status.reason) == ("refused", "approval_timed_out")
    again = await continuing.called(token, "refund", REFUND)
    assert (again.decision, again.call_id == call) == ("require_approval", False)


async def test_a_timed_out_question_ends_the_delegation_at_its_next_call(world: World) -> None:
    token, call, _ = await waiting_refund(world)
    world.clock.advance(120)
    made = await world.called(token, "refund", {**REFUND, "amount": 1}, guard=PAY_GUARD)
    assert (made.decision, made.reason) == ("deny", "approval_timed_out")
    row = await world.store.get(Call, "acme", call)
    assert row is not None
    assert (row.state.value, row.reason) == ("refused", "approval_timed_out")
    assert good(await world.call(token, "refund", REFUND), Refusal).reason is Reason.APPROVAL_TIMED_OUT


async def test_another_policy_supersedes_questions_and_decides_from_then_on(world: World) -> None:
    token, call, approval = await waiting_refund(world)
    world.context.registries = {"acme": registry("approvals: {timeout: 30}\n")}
    unready = good(await world.call(token, "refund", REFUND), Refusal)
    assert unready.reason is Reason.NOT_READY
    await world.service.activate_policy("acme")
    assert good(await world.approve(approval), Refusal).reason is Reason.APPROVAL_SUPERSEDED
    await world.service.sweep(world.clock.now())
    status = good(await world.service.call_state(PAY_GUARD, call, 0), CallStatus)
    assert (status.state, status.reason, status.live) == ("refused", "approval_superseded", False)
    asked = await world.called(token, "refund", REFUND)
    assert asked.deadline == world.clock.now() + 30


async def test_a_guard_touches_only_calls_that_it_opened(world: World) -> None:
    _, token = await searching(world)
    made = await world.called(token, "search", {"query": "a"}, guard=GUARD)
    own = await world.called(token, "search", {"query": "b"})
    assert made.call_id is not None
    assert own.call_id is not None
    child = await world.claims(token)
    for guard, call in ((PAY_GUARD, made.call_id), (child, made.call_id), (GUARD, own.call_id)):
        assert good(await world.service.finish(guard, call, "done", ""), Refusal).reason is Reason.NOT_FOUND
        assert good(await world.service.call_state(guard, call, 0), Refusal).reason is Reason.NOT_FOUND
    assert await world.service.finish(child, own.call_id, "failed", "timeout") == "failed"


async def test_no_call_runs_after_the_token_has_expired(world: World) -> None:
    _, token = await searching(world)
    world.clock.advance(599)
    assert (await world.called(token, "search", {"query": "a"})).decision == "allow"
    world.clock.advance(1)
    made = await world.called(token, "search", {"query": "a"})
    assert (made.decision, made.reason) == ("deny", "expired")
    world.clock.advance(5)
    assert good(await world.call(token, "search", {"query": "a"}), Refusal).reason is Reason.TOKEN_EXPIRED


async def test_a_failed_reversible_call_gives_its_slot_back_and_an_irreversible_one_never(bounded: World) -> None:
    _, token = await bounded.approved(await bounded.root(), ("wipe",), ceilings=pins(9))
    made = await bounded.called(token, "wipe", {"name": "x"})
    assert made.call_id is not None
    assert await bounded.service.finish(await bounded.claims(token), made.call_id, "failed", "") == "failed"
    assert (await bounded.called(token, "wipe", {"name": "x"})).reason == "history_limit"


async def test_what_a_person_approved_stands_after_a_denial_of_the_same_tool(continuing: World) -> None:
    _, token = await continuing.approved(await continuing.root())
    asked = [await continuing.called(token, "refund", {**REFUND, "amount": number}) for number in (1, 2)]
    assert asked[0].approval_id is not None
    assert asked[1].approval_id is not None
    good(await continuing.approve(asked[0].approval_id), ApprovalView)
    good(await continuing.service.answer(ADA, asked[1].approval_id, Verdict.DENY, "", None, TRACE), ApprovalView)
    assert (await continuing.called(token, "refund", {**REFUND, "amount": 1})).decision == "allow"
    assert (await continuing.called(token, "refund", {**REFUND, "amount": 3})).reason == "denied_before"
