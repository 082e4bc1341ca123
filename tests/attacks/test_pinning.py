"""Whether an approved envelope pins an irreversible tool by a ceiling that bounds nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet_broker.core.ceilings import pinned, unasked_tools
from carnet_broker.service.views import ApprovalView
from carnet_policy import Policy, loads
from tests.core.world import envelope
from tests.service.world import RISKY, VERA, build, good

REFUND = "amount: {type: number}, to: {properties: {name: {type: string}, code: {type: string}}}"
BOUNDS: Mapping[str, Any] = {
    "amount": {"max": 20},
    "to": {"properties": {"name": {"max_length": 9}, "code": {"enum": ["a", "b"]}}},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def policy(allow: str, more: str = "") -> Policy:
    return loads(
        [("p.yaml", f"version: 1\ncatalog: {{wipe: {{effect: irreversible}}}}\n{more}tools:\n  wipe: [{allow}]")]
    )


def holds(rules: Policy, entry: Mapping[str, Any]) -> bool:
    """Whether this entry pins the tool; the approver is told the same."""
    asked = envelope(level=2, tools=("wipe",), ceilings={"wipe": entry}, approval_required=True)
    found = pinned(asked, rules, "wipe")
    assert (unasked_tools(asked, rules) == ("wipe",)) is found
    return found


@pytest.mark.anyio
@pytest.mark.parametrize(
    "args",
    [
        {"zzz": {"required": False}},
        {"zzz": {"max": 1}},
        {"name": {"required": False}},
        {"name": {"type": "string"}},
        {"name": {"required": True}},
        {"name": {"max_length": 5, "required": False}},
        {"name": {"min_length": 0}},
        {"name": {}},
    ],
)
async def test_a_ceiling_that_bounds_nothing_pins_nothing(tmp_path: Path, args: dict[str, Any]) -> None:
    world = await build(tmp_path, ManualClock())
    ceilings = {"wipe": {"args": args, "max_calls": 100_000}}
    _, token = await world.approved(await world.root(), ("wipe",), ceilings=ceilings)
    with_all = dict.fromkeys(args, "production") | {"name": "production"}
    made = [await world.called(token, "wipe", sent) for sent in ({"name": "production"}, with_all)]
    await world.store.close()
    assert "allow" not in [call.decision for call in made], args


@pytest.mark.anyio
async def test_who_approves_sees_the_bounds_and_what_will_run_unasked(tmp_path: Path) -> None:
    world = await build(tmp_path, ManualClock())
    root, ceilings = await world.root(), {"wipe": {"args": {"name": {"max_length": 5}}, "max_calls": 2}}
    for given, unasked in ((ceilings, ("search", "wipe")), ({}, ("search",))):
        child = await world.child(root, ("refund", "search", "wipe"), task=RISKY, ceilings=given)
        assert child.approval is not None
        seen = good(await world.service.approval(VERA, child.approval.id), ApprovalView)
        assert seen.envelope is not None
        assert (seen.envelope["ceilings"], seen.unasked_tools) == (given, unasked)
    await world.store.close()


def test_every_argument_of_the_rules_must_be_bounded_and_the_number_of_calls() -> None:
    rules = policy(f"{{decision: allow, args: {{{REFUND}}}}}")
    assert holds(rules, {"args": BOUNDS, "max_calls": 1})
    assert holds(rules, {"args": {**BOUNDS, "to": {"const": {"name": "n", "code": "a"}}}, "max_calls": 1})
    assert not holds(rules, {"args": BOUNDS})
    assert not holds(rules, {"max_calls": 1})
    for name in BOUNDS:
        assert not holds(rules, {"args": {k: v for k, v in BOUNDS.items() if k != name}, "max_calls": 1})
    others: list[dict[str, Any]] = [{"properties": {"name": {"max_length": 9}}}, {"type": "object"}, {"properties": {}}]
    for to in others:
        assert not holds(rules, {"args": {**BOUNDS, "to": to}, "max_calls": 1})


def test_arguments_that_only_one_of_the_rules_names_count_too() -> None:
    rules = policy(
        "{decision: allow, args: {name: {type: string}}}, {decision: require_approval, args: {all: {const: true}}}"
    )
    name = {"name": {"max_length": 5}}
    assert not holds(rules, {"args": name, "max_calls": 1})
    assert holds(rules, {"args": {**name, "all": {"const": False}}, "max_calls": 1})


@pytest.mark.parametrize(
    ("allow", "more"),
    [
        ("{decision: allow}", ""),
        ("{decision: allow, args: {name: {type: string}}, extra_args: true}", ""),
        ("{decision: allow, args: {name: {type: string}}}", "i_accept_fail_open: true\ndefaults: {decision: allow}\n"),
    ],
)
def test_a_tool_whose_arguments_cannot_be_told_cannot_be_pinned(allow: str, more: str) -> None:
    assert not holds(policy(allow, more), {"args": {"name": {"max_length": 5}}, "max_calls": 1})


def test_an_array_is_bounded_by_its_length_or_by_its_elements() -> None:
    rules = policy("{decision: allow, args: {names: {type: array}}}")
    assert holds(rules, {"args": {"names": {"items": {"pattern": "[a-z]+"}}}, "max_calls": 1})
    assert holds(rules, {"args": {"names": {"max_items": 3}}, "max_calls": 1})
    for names in ({"items": {"type": "string"}}, {"min_items": 1}, {"type": "array"}):
        assert not holds(rules, {"args": {"names": names}, "max_calls": 1})
