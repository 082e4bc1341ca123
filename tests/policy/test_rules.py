"""How rules combine: the strictest wins, allow is closed, deny and approval are open, the floor and the default."""

import itertools

import pytest

from carnet_policy import Call, Effect, evaluate, from_mapping
from tests.policy.building import ask, effect, policy_of, rules_for

REFUND = (
    "{decision: require_approval, args: {amount: {type: number, min: 0.01, max: 50}}}",
    "{decision: deny, args: {amount: {min: 50.01}}, reason: finance does that}",
    "{decision: allow, args: {amount: {min: 0, max: 0}}}",
)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize(
    ("amount", "wanted"), [(0, "allow"), (50, "require_approval"), (50.005, "deny"), (51, "deny"), (-1, "deny")]
)
def test_the_order_of_rules_never_matters(order: tuple[int, ...], amount: float, wanted: str) -> None:
    policy = rules_for(*(REFUND[index] for index in order))
    assert effect(policy, {"amount": amount}) == wanted


def test_a_decision_names_policy_rule_and_reason() -> None:
    decision = ask(rules_for(*REFUND), {"amount": 60})
    assert (decision.rule, decision.reason, decision.detail) == ("tool[1]", "policy_deny", "finance does that")
    assert decision.policy.id == "test"
    assert decision.policy.version == 1
    assert len(decision.policy.digest) == 64


def test_a_deny_says_when_it_only_could_not_judge() -> None:
    decision = ask(rules_for(*REFUND), {"amount": "60"})
    assert decision.effect is Effect.DENY
    assert decision.detail == "finance does that (argument amount can not be judged)"


def test_a_decision_can_not_be_taken_for_yes_or_no() -> None:
    with pytest.raises(TypeError, match="compare its effect"):
        bool(ask(rules_for(*REFUND), {"amount": 60}))


def test_an_allow_covers_only_the_arguments_it_names() -> None:
    closed = rules_for("{decision: allow, args: {q: {type: string}}}")
    assert effect(closed, {"q": "x"}) is Effect.ALLOW
    decision = ask(closed, {"q": "x", "include_deleted": True})
    assert decision.reason == "no_match"
    assert "unexpected argument include_deleted is not named" in decision.detail
    opened = rules_for("{decision: allow, args: {q: {type: string}}, extra_args: true}")
    assert effect(opened, {"q": "x", "include_deleted": True}) is Effect.ALLOW


def test_deny_and_approval_match_whatever_else_is_passed() -> None:
    asks = rules_for("{decision: require_approval, args: {to: {required: true}}}")
    assert effect(asks, {"to": "a@b", "bcc": "x"}) is Effect.REQUIRE_APPROVAL
    any_to = "{decision: allow, extra_args: true, args: {to: {}}}"
    denies = rules_for(any_to, "{decision: deny, args: {to: {const: x}}}")
    assert effect(denies, {"to": "x", "bcc": "x"}) is Effect.DENY


@pytest.mark.parametrize("kind", ["allow", "require_approval", "deny"])
def test_a_missing_argument_is_no_match_unless_it_may_be_absent(kind: str) -> None:
    needs = rules_for(f"{{decision: {kind}, args: {{a: {{type: string}}}}}}")
    assert ask(needs, {}).reason == "no_match"
    may = rules_for(f"{{decision: {kind}, args: {{a: {{type: string, required: false}}}}}}")
    assert ask(may, {}).effect == kind
    assert ask(may, {"a": None}).effect != "allow"


@pytest.mark.parametrize("empty", [None, "", []])
def test_required_means_there_and_not_empty(empty: object) -> None:
    policy = rules_for("{decision: require_approval, args: {to: {required: true}}}")
    assert effect(policy, {"to": empty}) is Effect.DENY
    assert effect(policy, {}) is Effect.DENY
    assert effect(policy, {"to": 0}) is Effect.REQUIRE_APPROVAL
    assert effect(policy, {"to": False}) is Effect.REQUIRE_APPROVAL


def test_names_compare_exactly() -> None:
    policy = rules_for("{decision: allow, args: {q: {}}}", tool="refund")
    assert effect(policy, {"q": 1}, "refund") is Effect.ALLOW
    for name in ("Refund", "r\u0435fund", "refund ", "refund\n", ""):
        assert ask(policy, {"q": 1}, name).reason == "unknown_tool"
    assert effect(policy, {"Q": 1}, "refund") is Effect.DENY


@pytest.mark.parametrize("tool_effect", ["irreversible", None])
def test_an_allow_of_an_irreversible_tool_becomes_a_question_unless_pinned(tool_effect: str | None) -> None:
    entry = {"effect": tool_effect} if tool_effect else {}
    policy = from_mapping({"version": 1, "catalog": {"wipe": entry}, "tools": {"wipe": [{"decision": "allow"}]}})
    decision = evaluate(policy, Call("wipe", {}), None)
    assert (decision.effect, decision.reason, decision.rule) == (
        Effect.REQUIRE_APPROVAL,
        "irreversible_floor",
        "floor",
    )
    assert evaluate(policy, Call("wipe", {}, pinned=True), None).effect is Effect.ALLOW
    assert policy.asks("wipe")


def test_pinning_lifts_nothing_but_the_floor() -> None:
    policy = rules_for("{decision: require_approval}", "{decision: deny, args: {x: {const: 1}}}", effect="irreversible")
    assert evaluate(policy, Call("tool", {}, pinned=True), None).effect is Effect.REQUIRE_APPROVAL
    assert evaluate(policy, Call("tool", {"x": 1}, pinned=True), None).effect is Effect.DENY


def test_without_a_catalog_the_floor_is_left_to_the_broker() -> None:
    policy = policy_of("tools: {wipe: [{decision: allow}]}")
    assert effect(policy, {}, "wipe") is Effect.ALLOW
    assert policy.catalog is None
    assert any("no catalog" in warning for warning in policy.warnings)


@pytest.mark.parametrize("default", ["allow", "require_approval"])
def test_a_default_that_opens_needs_a_signature(default: str) -> None:
    policy = policy_of(f"defaults: {{decision: {default}}}\ni_accept_fail_open: true\ncatalog: {{a: {{effect: read}}}}")
    assert effect(policy, {}, "a") == default
    assert effect(policy, {}, "unknown") is Effect.REQUIRE_APPROVAL  # the floor, where the default allows
    assert any("default" in warning for warning in policy.warnings)


def test_a_doubtful_approval_turns_a_default_allow_into_itself() -> None:
    policy = policy_of(
        "defaults: {decision: allow}\ni_accept_fail_open: true\ncatalog: {a: {effect: read}}\n"
        "tools: {a: [{decision: require_approval, args: {x: {min: 5}}}]}"
    )
    assert effect(policy, {"x": "9"}, "a") is Effect.REQUIRE_APPROVAL
    assert effect(policy, {"x": 1}, "a") is Effect.ALLOW


def test_facts_join_catalog_and_rules() -> None:
    policy = policy_of(
        "catalog: {t: {effect: read, data_class: [internal], resource_arg: id}}\n"
        "tools: {t: [{decision: allow, args: {id: {}}, data_class: [pii]}]}"
    )
    facts = policy.facts("t")
    assert (facts.effect, facts.resource_arg) == ("read", "id")
    assert facts.data_class == {"internal", "pii"}
    assert policy.facts("unknown").effect is None
    assert policy.history_args("t") == {"id"}


def test_asks_tells_whether_a_person_can_be_asked() -> None:
    policy = policy_of(
        "catalog: {r: {effect: read}, w: {effect: irreversible}, d: {effect: irreversible}, h: {effect: read}}\n"
        "tools: {r: [{decision: allow}], w: [{decision: allow}], d: [{decision: deny}], h: [{decision: allow}]}\n"
        "history: [{match: {tool: h}, max: 3, decision: require_approval}]"
    )
    assert {tool: policy.asks(tool) for tool in "rwdh"} == {"r": False, "w": True, "d": False, "h": True}
    assert {tool: policy.bounds(tool) for tool in "rwdh"} == {"r": False, "w": False, "d": False, "h": True}


def test_approvals_have_defaults_and_are_read() -> None:
    assert policy_of("tools: {}").approvals.timeout == 120
    approvals = policy_of("approvals: {timeout: 60, on_denial: continue, approvers: [support-leads]}").approvals
    assert (approvals.timeout, approvals.on_denial) == (60, "continue")
    assert approvals.approvers == {"support-leads"}
