"""What a child gets, case by case: the level from the stricter of stated and known facts, no tool lost in silence."""

from typing import Any

import pytest

from carnet.reasons import Reason, Refusal
from carnet.task import Task
from carnet_broker.core.derivation import derive, find_target, known_facts, root_envelope, tool_level
from carnet_broker.core.registry import Agent, Limits, Registry
from carnet_broker.core.rows import Delegation, Envelope
from tests.core.world import KNOWN, child, envelope, policy, registry, run, support


def task(*tools: str, **facts: Any) -> Task:
    base: dict[str, Any] = {"touches_pii": False, "touches_secrets": False, "reversible": True, "resource_count": 0}
    return Task(**(base | facts), tools=tools or None)


def worker(tools: tuple[str, ...] = (*KNOWN, "drop_database"), **more: Any) -> Agent:
    return Agent(name="worker", tools=frozenset(tools), **more)


def spawn(
    what: Task,
    *,
    parent: Agent | None = None,
    target: Agent | None = None,
    known: Registry | None = None,
    counted: int = 0,
    left: int = 3600,
    row: Delegation | None = None,
    **more: Any,
) -> Envelope | Refusal:
    parent, target = parent or support(), target or worker()
    arguments: dict[str, Any] = {
        "parent": row or run(),
        "requested_ttl": None,
        "requested_ceilings": None,
        "registry": known or registry(parent, target),
        "trace_id": "t",
    }
    return derive(parent_agent=parent, target=target, task=what, counted=counted, left=left, **(arguments | more))


def granted(what: Task, **more: Any) -> Envelope:
    made = spawn(what, **more)
    assert isinstance(made, Envelope), made
    return made


def refused(what: Task, **more: Any) -> Refusal:
    refusal = spawn(what, **more)
    assert isinstance(refusal, Refusal), refusal
    return refusal


def test_a_public_read_of_ten_resources_needs_nobody() -> None:
    made = granted(task("search_tickets", "read_ticket", resource_count=10))
    assert (made.level, made.credential_ttl_seconds, made.approval_required) == (0, 900, False)
    assert made.tools == ("read_ticket", "search_tickets")
    assert made.resource_limit == 10


def test_eleven_resources_are_level_one() -> None:
    made = granted(task("tag_ticket", resource_count=11))
    assert (made.level, made.credential_ttl_seconds, made.approval_required) == (1, 600, False)
    assert granted(task("search_tickets", resource_count=11)).level == 1


def test_counts_of_one_run_add_up() -> None:
    assert granted(task("search_tickets", resource_count=4), counted=6).level == 0
    assert granted(task("search_tickets", resource_count=5), counted=6).level == 1


def test_a_single_irreversible_action_waits_for_a_person() -> None:
    made = granted(task("refund", reversible=False, resource_count=1))
    assert (made.level, made.credential_ttl_seconds, made.approval_required) == (2, 300, True)


@pytest.mark.parametrize(
    "facts",
    [{"touches_pii": True}, {"touches_secrets": True}, {"reversible": False}],
    ids=lambda facts: next(iter(facts)),
)
def test_a_stated_fact_raises_the_level(facts: dict[str, bool]) -> None:
    assert granted(task("search_tickets", **facts)).level == 2


@pytest.mark.parametrize(
    ("tool", "level"),
    [("search_tickets", 0), ("tag_ticket", 1), ("refund", 2), ("read_customer_record", 2), ("drop_database", 2)],
)
def test_what_the_catalog_knows_is_never_talked_down(tool: str, level: int) -> None:
    assert granted(task(tool), parent=support((tool,))).level == level


def test_a_secret_is_level_two_and_so_is_a_tool_without_an_effect() -> None:
    rules = policy(catalog="\n  a: {effect: read, data_class: [secret]}\n  b: {data_class: [public]}\n")
    parent = support(("a", "b"))
    known = registry(parent, worker(("a", "b")), rules=rules)
    assert tool_level(known, "a") == tool_level(known, "b") == tool_level(known, "nobody_knows") == 2


def test_a_data_class_named_by_a_rule_counts_as_known() -> None:
    rules = policy(
        "tools:\n  a:\n    - {decision: allow, args: {id: {type: string}}, data_class: [pii]}\n",
        catalog="\n  a: {effect: read}\n",
    )
    assert tool_level(registry(rules=rules), "a") == 2


def test_a_tool_that_the_parent_does_not_hold_refuses_the_whole_spawn() -> None:
    refusal = refused(task("search_tickets", "drop_database"), known=registry(support(), worker()))
    assert refusal.reason is Reason.SCOPE_NOT_GRANTABLE
    assert "scope" in refusal.detail
    assert "parent" in refusal.detail
    assert "drop_database" in refusal.detail
    assert "search_tickets" not in refusal.detail


def test_each_tool_that_cannot_be_given_is_named_with_its_reason() -> None:
    parent, target = support(("a", "b")), worker(("b", "c", "d"))
    refusal = refused(
        task("a", "b", "c", "d"), parent=parent, target=target, known=registry(parent, target, served=("a", "c"))
    )
    assert "a (the target worker does not hold it)" in refusal.detail
    assert "b (no host serves it)" in refusal.detail
    assert "c (the parent support neither holds nor grants it)" in refusal.detail
    assert "d (the parent support neither holds nor grants it, no host serves it)" in refusal.detail


def test_a_parent_may_give_what_it_only_grants() -> None:
    parent = support((), grants=frozenset({"refund"}))
    assert granted(task("refund"), parent=parent).tools == ("refund",)


def test_tools_left_out_are_those_that_fit_the_stated_facts() -> None:
    assert granted(task()).tools == ("read_ticket", "search_tickets")
    assert granted(task(resource_count=11)).tools == ("read_ticket", "search_tickets", "tag_ticket")
    assert granted(task(reversible=False)).tools == tuple(sorted(KNOWN))
    assert granted(task(), target=worker(min_level=1)).level == 1
    assert "tag_ticket" in granted(task(), target=worker(min_level=1)).tools


def test_tools_left_out_and_none_that_fits_is_refused() -> None:
    refusal = refused(task(), target=worker(("refund",)))
    assert refusal.reason is Reason.SCOPE_NOT_GRANTABLE
    assert "scope" in refusal.detail


def test_the_least_level_of_the_target_holds() -> None:
    assert granted(task("search_tickets"), target=worker(min_level=2)).approval_required


def test_a_child_never_outlives_what_is_left_of_the_run() -> None:
    assert granted(task("search_tickets"), left=120).credential_ttl_seconds == 120
    assert granted(task("search_tickets"), left=5).credential_ttl_seconds == 5
    assert refused(task("search_tickets"), left=4).reason is Reason.TTL_TOO_SHORT
    assert refused(task("search_tickets"), left=-10).reason is Reason.TTL_TOO_SHORT


@pytest.mark.parametrize(("requested", "ttl"), [(60, 60), (900, 900), (10_000, 900), (5, 5)])
def test_a_requested_life_only_shortens(requested: int, ttl: int) -> None:
    assert granted(task("search_tickets"), requested_ttl=requested).credential_ttl_seconds == ttl


@pytest.mark.parametrize("requested", [4, 0, -1])
def test_a_life_too_short_is_refused(requested: int) -> None:
    assert refused(task("search_tickets"), requested_ttl=requested).reason is Reason.TTL_TOO_SHORT


def test_a_deployment_lowers_the_table_and_cannot_raise_it() -> None:
    parent, target = support(), worker()
    lower = registry(parent, target, limits=Limits(ttl={0: 300, 1: 600, 2: 300}))
    higher = registry(parent, target, limits=Limits(ttl={0: 9000, 1: 6000, 2: 3000}))
    assert granted(task("search_tickets"), known=lower).credential_ttl_seconds == 300
    assert granted(task("search_tickets"), known=higher).credential_ttl_seconds == 900


def test_a_child_does_not_spawn() -> None:
    assert refused(task("search_tickets"), row=child(agent="support")).reason is Reason.DEPTH_EXCEEDED


def test_a_parent_of_another_tenant_is_refused() -> None:
    assert refused(task("search_tickets"), row=run(tenant="other")).reason is Reason.TENANT_MISMATCH
    assert refused(task("search_tickets"), row=run(envelope=envelope(tenant="other"))).reason is Reason.TENANT_MISMATCH


@pytest.mark.parametrize("name", ["nobody", "Worker", "worker ", "support", ""])
def test_a_target_is_called_by_its_exact_name_or_not_at_all(name: str) -> None:
    parent = support()
    found = find_target(registry(parent, worker()), parent, name)
    assert isinstance(found, Refusal)
    assert found.reason is Reason.TARGET_NOT_ALLOWED


def test_an_agent_that_is_not_listed_is_no_target() -> None:
    assert refused(task("search_tickets"), parent=support(callable_agents=frozenset())).reason is (
        Reason.TARGET_NOT_ALLOWED
    )


def test_a_run_holds_no_tool_and_its_agents_ceilings() -> None:
    agent = support(ceilings={"refund": {"max_calls": 1}})
    root = root_envelope(registry(agent), agent, ttl=900, trace_id="t")
    assert (root.tools, root.level, root.resource_limit, root.approval_required) == ((), 0, None, False)
    assert root.ceilings == {"refund": {"max_calls": 1}}


def test_stated_and_known_facts_stand_side_by_side_for_audit() -> None:
    facts = known_facts(registry(support()), task("refund"), ("refund", "drop_database"), 7)
    assert facts["stated"]["tools"] == ["refund"]
    assert facts["known"]["refund"] == {"effect": "irreversible", "data_class": [], "level": 2}
    assert facts["known"]["drop_database"] == {"effect": None, "data_class": [], "level": 2}
    assert facts["counted"] == 7


def test_a_ceiling_is_inherited_narrowed_and_never_widened() -> None:
    parent = support(ceilings={"refund": {"args": {"amount": {"max": 50}}, "max_calls": 3}})
    target = worker(ceilings={"refund": {"args": {"amount": {"max": 20}}}})
    asked = {"refund": {"args": {"amount": {"min": 1}}, "max_calls": 9}}
    made = granted(task("refund"), parent=parent, target=target, requested_ceilings=asked)
    assert made.ceilings == {"refund": {"args": {"amount": {"max": 20, "min": 1}}, "max_calls": 3}}
    assert granted(task("search_tickets"), parent=parent, target=target).ceilings == {}


@pytest.mark.parametrize(
    "asked",
    [
        [],
        {"refund": {}},
        {"refund": {"amount": {"max": 1}}},
        {"refund": {"max_calls": True}},
        {"refund": {"max_calls": -1}},
        {"refund": {"args": {"amount": {"mx": 1}}}},
        {"refund": {"args": {"amount": {"pattern": "["}}}},
        {"send_email": {"max_calls": 1}},
        {"refund": {"args": {"amount": {"min": 60}}}},
    ],
)
def test_a_ceiling_that_cannot_be_compared_is_refused(asked: object) -> None:
    parent = support(ceilings={"refund": {"args": {"amount": {"max": 50}}}})
    assert refused(task("refund"), parent=parent, requested_ceilings=asked).reason is Reason.CEILING_INVALID
