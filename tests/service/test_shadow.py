"""A shadow policy is asked beside the one in force and leaves a word in the record; nothing of it reaches an answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from carnet_broker.core.rows import Call
from carnet_policy import Policy, loads
from tests.service.world import GUARD, PAY_GUARD, POLICY, QUIET, World, build

pytestmark = pytest.mark.anyio
REFUND = {"amount": 5, "customer_id": "cust_1"}
STRICTER = POLICY.replace("max_length: 100", "max_length: 3").replace("max: 50}", "max: 4}")
ONE_NOTE = "history: [{match: {tool: note}, max: 1, decision: deny}]\n"


def shadow(text: str, more: str = "") -> Policy:
    return loads([("candidate.policy.yaml", text % more)])


def use(world: World, candidate: Policy | None) -> None:
    (tenant, registry), = world.context.registries.items()  # fmt: skip
    world.context.registries = {tenant: replace(registry, shadow=candidate)}


async def words(world: World) -> list[Mapping[str, Any] | None]:
    return [line.facts.get("shadow") for line in await world.audit("call_decided")]


async def token_for(world: World, *tools: str) -> str:
    view = await world.child(await world.root(), tools, task={**QUIET, "resource_count": 0})
    return view.tokens["desk"].access_token


async def test_what_the_candidate_would_say_stands_in_the_record_of_the_call(world: World) -> None:
    candidate = shadow(STRICTER)
    use(world, candidate)
    token = await token_for(world, "search")
    long, short = [await world.called(token, "search", {"query": text}, guard=GUARD) for text in ("late", "few")]
    assert [(made.decision, made.rule) for made in (long, short)] == [("allow", "search[0]")] * 2
    digest = candidate.ref.digest
    assert await words(world) == [
        {"digest": digest, "decision": "deny", "rule": None, "reason": "no_match"},
        {"digest": digest, "decision": "allow", "rule": "search[0]", "reason": "policy_allow"},
    ]
    line = (await world.audit("call_decided"))[0]
    assert line.policy is not None
    assert (line.decision, line.policy["digest"] == digest) == ("allow", False)


async def test_a_candidate_that_allows_more_opens_nothing(world: World) -> None:
    use(world, shadow("version: 1\ndefaults: {decision: allow}\ni_accept_fail_open: true\n%s"))
    token = await token_for(world, "search")
    made = await world.called(token, "search", {"query": "x" * 200}, guard=GUARD)
    assert (made.decision, made.reason) == ("deny", "no_match")
    (word,) = await words(world)
    assert word is not None
    assert word["decision"] == "allow"


async def test_without_a_candidate_and_for_what_the_token_does_not_cover_nothing_is_said(world: World) -> None:
    token = await token_for(world, "search")
    await world.called(token, "search", {"query": "a"}, guard=GUARD)
    use(world, shadow(STRICTER))
    await world.called(token, "note", {"text": "a"}, guard=GUARD)
    assert await words(world) == [None, None]


async def test_a_question_and_the_approved_call_are_both_judged_and_count_once(world: World) -> None:
    use(world, shadow(POLICY, "history: [{match: {tool: refund}, sum: amount, max: 5, decision: deny}]\n"))
    _, token = await world.approved(await world.root())
    asked = await world.called(token, "refund", REFUND, guard=PAY_GUARD)
    assert asked.approval_id is not None
    await world.approve(asked.approval_id)
    done = await world.called(token, "refund", REFUND, guard=PAY_GUARD)
    more = await world.called(token, "refund", {**REFUND, "amount": 1}, guard=PAY_GUARD)
    assert [made.decision for made in (asked, done, more)] == ["require_approval", "allow", "require_approval"]
    said = [word["decision"] if word else None for word in await words(world)]
    assert said == ["require_approval", "require_approval", "deny"]


async def test_the_candidate_s_own_bounds_see_the_run_s_calls_and_the_arguments_that_it_names(world: World) -> None:
    use(world, shadow(POLICY, "history: [{match: {tool: note}, distinct: text, max: 2, decision: deny}]\n"))
    token = await token_for(world, "note")
    for text in ("a", "b", "a", "c"):
        made = await world.called(token, "note", {"text": text}, guard=GUARD)
        assert made.decision == "allow"
        assert made.call_id is not None
        row = await world.store.get(Call, "acme", made.call_id)
        assert row is not None
        assert dict(row.args) == {"text": text}
    assert [word["decision"] if word else None for word in await words(world)] == ["allow", "allow", "allow", "deny"]


async def test_a_bound_that_is_younger_than_the_run_says_so(world: World) -> None:
    token = await token_for(world, "note")
    await world.called(token, "note", {"text": "a"}, guard=GUARD)
    world.clock.advance(10)
    use(world, shadow(POLICY, ONE_NOTE.replace("max: 1", "max: 5")))
    await world.called(token, "note", {"text": "b"}, guard=GUARD)
    last = (await words(world))[-1]
    assert last is not None
    assert (last["decision"], last["reason"]) == ("require_approval", "history_recent")


async def test_a_changed_candidate_starts_over_its_own_folds(world: World) -> None:
    token = await token_for(world, "note")
    for limit, said in ((1, ["allow", "deny"]), (3, ["allow", "deny"])):
        use(world, shadow(POLICY, ONE_NOTE.replace("max: 1", f"max: {limit}")))
        for _ in said:
            await world.called(token, "note", {"text": "a"}, guard=GUARD)
        assert [word["decision"] if word else None for word in (await words(world))[-2:]] == said


async def test_what_the_client_did_elsewhere_is_unknown_where_it_was_not_read(world: World) -> None:
    use(world, shadow(POLICY, "history: [{match: {tool: note}, max: 1, over: client, window: 60, decision: deny}]\n"))
    token = await token_for(world, "note")
    await world.called(token, "note", {"text": "a"}, guard=GUARD)
    await world.called(token, "note", {"text": 7}, guard=GUARD)
    assert [(word["decision"], word["reason"]) if word else None for word in await words(world)] == [
        ("unknown", "history_unknown"),
        ("deny", "no_match"),
    ]


async def test_what_the_policy_in_force_reads_of_a_client_the_candidate_sees_too(tmp_path: Any, clock: Any) -> None:
    rule = "history: [{match: {tool: note}, max: %d, over: client, window: 60, decision: deny}]\n"
    world = await build(tmp_path, clock, rule % 9)
    try:
        use(world, shadow(POLICY, rule % 1))
        for _ in range(2):
            token = await token_for(world, "note")
            await world.called(token, "note", {"text": "a"}, guard=GUARD)
        first, second = await words(world)
        assert first is not None
        assert second is not None
        # A bound of another size is another rule, so the calls before it came are not its to judge.
        assert (first["reason"], second["reason"]) == ("history_recent", "history_limit")
    finally:
        await world.store.close()


class Broken:
    """A candidate in which everything fails."""

    class ref:  # noqa: N801 - what a policy calls it
        digest = "f" * 64

    def history_args(self, tool: str) -> frozenset[str]:
        return frozenset()

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


async def test_a_candidate_that_fails_fails_no_call(world: World) -> None:
    use(world, Broken())  # type: ignore[arg-type]
    token = await token_for(world, "search")
    made = await world.called(token, "search", {"query": "a"}, guard=GUARD)
    assert (made.decision, made.state) == ("allow", "running")
    (word,) = await words(world)
    assert word == {"digest": "f" * 64, "decision": "unknown", "rule": None, "reason": "shadow_error:RuntimeError"}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("search", {"query": "late"}),
    ("note", {"text": "a"}),
    ("note", {"text": "b"}),
    ("search", {"query": 5}),
    ("profile", {"customer_id": "c"}),
    ("note", {"text": "a"}),
    ("wipe", {"name": "x"}),
]


@pytest.mark.parametrize(
    "candidate",
    [shadow(STRICTER), shadow(POLICY, ONE_NOTE), shadow("version: 1\ntools: {}\n%s"), Broken()],
    ids=["stricter", "bounded", "empty", "broken"],
)
async def test_the_answers_are_those_without_a_candidate(world: World, candidate: Any) -> None:
    answers = []
    for beside in (None, candidate):
        use(world, beside)
        token = await token_for(world, "search", "note")
        made = [await world.called(token, tool, args, guard=GUARD) for tool, args in CALLS]
        answers.append([(one.decision, one.state, one.reason, one.detail, one.rule, one.policy) for one in made])
    assert answers[0] == answers[1]
