"""What the broker really exports can be replayed: by the policy in force without a flip, by a candidate with the flips
that its shadow foretold, and each record that shows its arguments can be expanded."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet_broker.core.registry import Role
from carnet_broker.service.requests import Verdict
from carnet_policy import Policy
from carnet_policy.expanding import expand
from carnet_policy.explain import Trace
from carnet_policy.replay import replay
from tests.service.test_shadow import shadow, token_for, use
from tests.service.world import GUARD, ONE_IRREVERSIBLE, PAY_GUARD, POLICY, TRACE, World, build, operator

pytestmark = pytest.mark.anyio
VIEWER = operator("vera", Role.VIEWER)


async def exported(world: World) -> list[Mapping[str, Any]]:
    lines = await world.service.export(VIEWER)
    assert not hasattr(lines, "reason"), lines
    found: list[Mapping[str, Any]] = [json.loads(json.dumps(line)) async for line in lines]
    return [line["record"] for line in found if "record" in line]


async def story(world: World) -> None:
    """Calls that are allowed, denied, asked about, approved, refused by a person, failed and bounded."""
    token = await token_for(world, "search", "note")
    for text in ("a", "b", "c"):
        made = await world.called(token, "note", {"text": text}, guard=GUARD)
        assert made.call_id is not None
        await world.service.finish(GUARD, made.call_id, "failed" if text == "b" else "done", "")
    await world.called(token, "search", {"query": 7}, guard=GUARD)
    await world.called(token, "profile", {"customer_id": "c"}, guard=GUARD)
    root = await world.root()
    _, paying = await world.approved(root)
    asked = await world.called(paying, "refund", {"amount": 5, "customer_id": "c"}, guard=PAY_GUARD)
    assert asked.approval_id is not None
    await world.approve(asked.approval_id)
    await world.called(paying, "refund", {"amount": 5, "customer_id": "c"}, guard=PAY_GUARD)
    await world.called(paying, "refund", {"amount": 60, "customer_id": "c"}, guard=PAY_GUARD)
    await world.called(paying, "refund", {"amount": 1, "customer_id": "c"}, guard=PAY_GUARD)
    other, denied = await world.approved(await world.root())
    again = await world.called(denied, "refund", {"amount": 2, "customer_id": "c"}, guard=PAY_GUARD)
    assert again.approval_id is not None
    await world.service.answer(operator("ada", Role.APPROVER), again.approval_id, Verdict.DENY, "no", None, TRACE)
    assert other


async def in_the_clear(tmp_path: Path, clock: ManualClock) -> World:
    """A world whose hosts let every argument stand in clear."""
    world = await build(tmp_path, clock, ONE_IRREVERSIBLE)
    (tenant, registry), = world.context.registries.items()  # fmt: skip
    names = frozenset({"text", "query", "customer_id", "amount"})
    hosts = {name: replace(host, clear_fields=names) for name, host in registry.hosts.items()}
    world.context.registries = {tenant: replace(registry, hosts=hosts)}
    return world


def policy(world: World) -> Policy:
    return world.context.registries["acme"].policy


async def test_the_policy_in_force_turns_nothing_of_what_it_decided(tmp_path: Path, clock: ManualClock) -> None:
    world = await in_the_clear(tmp_path, clock)
    try:
        await story(world)
        found = replay(policy(world), await exported(world))
        assert (found.flips, dict(found.unknown)) == ((), {})
        assert found.same >= 7
        assert found.elsewhere == {"scope_missing": 1}
    finally:
        await world.store.close()


async def test_a_candidate_flips_what_its_shadow_foretold(tmp_path: Path, clock: ManualClock) -> None:
    world = await in_the_clear(tmp_path, clock)
    try:
        more = "history:\n- {match: irreversible, max: 1, decision: deny, reason: x}\n"
        more += "- {match: {tool: note}, max: 1, decision: require_approval}\n"
        candidate = shadow(POLICY.replace("max: 50}", "max: 4}"), more)
        use(world, candidate)
        await story(world)
        records = await exported(world)
        said = [record for record in records if record["facts"].get("shadow")]
        # The call whose approval was spent is on record twice and replayed once.
        turned = [
            one for one in said if one["reason"] != "approved" and one["facts"]["shadow"]["decision"] != one["decision"]
        ]
        found = replay(candidate, records)
        assert found.flipped == len(turned) > 1
        assert sorted(flip.word for flip in found.flips) == sorted(
            {f"{one['decision']} -> {one['facts']['shadow']['decision']}" for one in turned}
        )
    finally:
        await world.store.close()


async def test_what_the_hosts_hide_is_unknown_and_nothing_flips(tmp_path: Path, clock: ManualClock) -> None:
    world = await build(tmp_path, clock, ONE_IRREVERSIBLE)
    try:
        await story(world)
        found = replay(policy(world), await exported(world))
        assert not found.flips
        assert ("refund", ("amount", "customer_id")) in found.unknown
    finally:
        await world.store.close()


async def test_a_record_is_expanded_to_the_decision_that_it_holds(tmp_path: Path, clock: ManualClock) -> None:
    world = await in_the_clear(tmp_path, clock)
    try:
        await story(world)
        records = await exported(world)
        reasons = set()
        for record in records:
            trace = expand(policy(world), records, record["seq"])
            if isinstance(trace, Trace):
                assert (trace.decision.effect, trace.decision.rule) == (record["decision"], record["rule"])
                assert (trace.decision.reason, trace.decision.detail) == (record["reason"], record["detail"])
                reasons.add(record["reason"])
        assert reasons == {"policy_allow", "policy_approval", "policy_deny", "no_match", "history_limit"}
    finally:
        await world.store.close()
