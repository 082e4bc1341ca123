"""A child is never wider than its parent: in tools, arguments, calls, time, tenant and depth.

The oracle knows nothing of the product's comparison. It tries every call of a small world against every layer above.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from carnet.reasons import Reason, Refusal
from carnet.task import Task
from carnet_broker.core.derivation import derive
from carnet_broker.core.registry import Agent, Limits, Registry
from carnet_broker.core.rows import Envelope
from carnet_policy import compile_constraints, satisfies
from tests.core.world import TENANT, child, policy, registry, run

TOOLS = ("look", "count", "tag", "pay", "odd")
CATALOG = """
  look: {effect: read}
  count: {effect: read}
  tag: {effect: write}
  pay: {effect: irreversible}
"""
LEVELS = {"look": 0, "count": 0, "tag": 1, "pay": 2, "odd": 2}
TTL = {0: 900, 1: 600, 2: 300}
VALUES: tuple[Any, ...] = (None, True, -1, 0, 1, 2, 3, 2.5, "", "a", "b", "ab", ["a"], ["a", "b"], {"x": 1})
ABSENT = object()

tool_sets = st.frozensets(st.sampled_from(TOOLS))
numbers = st.fixed_dictionaries({}, optional={"min": st.integers(0, 2), "max": st.integers(0, 3)})
texts = st.fixed_dictionaries(
    {},
    optional={
        "min_length": st.integers(0, 1),
        "max_length": st.integers(0, 2),
        "pattern": st.sampled_from(["a+", "ab?"]),
    },
)
members = st.fixed_dictionaries({"enum": st.lists(st.sampled_from([0, 1, "a", "b", None]), min_size=1, unique_by=repr)})
rules = st.one_of(numbers, texts, members).flatmap(
    lambda rule: st.sampled_from([rule, {**rule, "required": False}, {**rule, "required": True}])
)
arguments = st.dictionaries(st.sampled_from(["m", "n"]), rules, min_size=1, max_size=2)
entries = st.one_of(
    arguments.map(lambda args: {"args": args}),
    st.integers(0, 4).map(lambda most: {"max_calls": most}),
    st.tuples(arguments, st.integers(0, 4)).map(lambda pair: {"args": pair[0], "max_calls": pair[1]}),
)


def compiles(entry: Mapping[str, Any]) -> bool:
    try:
        compile_constraints(entry.get("args", {}), "test")
    except ValueError:
        return False
    return True


ceilings = st.dictionaries(st.sampled_from(TOOLS), entries.filter(compiles), max_size=3)
tasks = st.builds(
    Task,
    touches_pii=st.booleans(),
    touches_secrets=st.booleans(),
    reversible=st.booleans(),
    resource_count=st.integers(0, 15),
    tools=st.none() | st.lists(st.sampled_from(TOOLS), min_size=1, unique=True).map(tuple),
)


def allows(rule: Mapping[str, Any], value: Any) -> bool:
    """Whether one value fits one constraint, written anew from the words of the grammar."""
    if value is ABSENT:
        return rule.get("required") is False
    if rule.get("required") is True and value in (None, "", []):
        return False
    if "enum" in rule:
        return any(type(value) is type(item) and value == item for item in rule["enum"])
    if "min" in rule or "max" in rule:
        if type(value) not in (int, float):
            return False
        return bool(rule.get("min", value) <= value <= rule.get("max", value))
    if rule.keys() & {"pattern", "min_length", "max_length"}:
        wanted = {"a+": {"a"}, "ab?": {"a", "ab"}, None: {"", "a", "b", "ab"}}[rule.get("pattern")]
        return (
            type(value) is str
            and value in wanted
            and rule.get("min_length", 0) <= len(value) <= rule.get("max_length", 9)
        )
    return True


def calls() -> Iterator[dict[str, Any]]:
    for one, other in product((ABSENT, *VALUES), repeat=2):
        yield {name: value for name, value in (("m", one), ("n", other)) if value is not ABSENT}


def within(entry: Mapping[str, Any], args: Mapping[str, Any]) -> bool:
    return all(allows(rule, args.get(name, ABSENT)) for name, rule in entry.get("args", {}).items())


def make(data: st.DataObject, sets: st.SearchStrategy[frozenset[str]] = tool_sets) -> tuple[Registry, Agent, Agent]:
    parent = Agent(
        name="support",
        tools=data.draw(sets),
        grants=data.draw(sets),
        callable_agents=frozenset({"worker"}),
        ceilings=data.draw(ceilings),
    )
    target = Agent(
        name="worker", tools=data.draw(sets), ceilings=data.draw(ceilings), min_level=data.draw(st.integers(0, 2))
    )
    limits = Limits(ttl={level: data.draw(st.integers(5, most)) for level, most in TTL.items()})
    known = registry(parent, target, served=data.draw(sets), limits=limits, rules=policy(catalog=CATALOG))
    return known, parent, target


@given(st.data(), tasks, st.integers(0, 12), st.integers(-5, 1000), st.none() | st.integers(-5, 1000))
def test_a_child_is_never_wider_in_tools_level_time_and_tenant(
    data: st.DataObject, task: Task, counted: int, left: int, ttl: int | None
) -> None:
    known, parent, target = make(data)
    parent, target = replace(parent, ceilings={}), replace(target, ceilings={})
    known = replace(known, agents={"support": parent, "worker": target})
    made = derive(
        parent=run(),
        parent_agent=parent,
        target=target,
        task=task,
        requested_ttl=ttl,
        requested_ceilings=None,
        registry=known,
        counted=counted,
        left=left,
        trace_id="",
    )
    served = known.hosts["desk"].tools
    grantable = (parent.tools | parent.grants) & target.tools & served
    stated = 2 if task.touches_pii or task.touches_secrets or not task.reversible else 0
    stated = max(stated, 1 if task.resource_count + counted > 10 else 0, target.min_level)
    wanted = {tool for tool in grantable if LEVELS[tool] <= stated} if task.tools is None else set(task.tools)
    if not wanted or not wanted <= grantable:
        assert isinstance(made, Refusal)
        assert made.reason is Reason.SCOPE_NOT_GRANTABLE
        return
    level = max(stated, *(LEVELS[tool] for tool in wanted))
    life = min(TTL[level], known.limits.ttl[level], left, left if ttl is None else ttl)
    if life < 5:
        assert isinstance(made, Refusal)
        assert made.reason is Reason.TTL_TOO_SHORT
        return
    assert isinstance(made, Envelope)
    assert set(made.tools) == wanted
    assert (made.level, made.credential_ttl_seconds, made.tenant) == (level, life, TENANT)
    assert made.approval_required is (level == 2)
    assert made.resource_limit == task.resource_count


@given(st.data())
def test_every_call_a_childs_ceiling_admits_is_admitted_by_every_layer_above(data: st.DataObject) -> None:
    known, parent, target = make(data, st.just(frozenset(TOOLS)))
    above, asked = data.draw(ceilings), data.draw(ceilings)
    made = derive(
        parent=run(ceilings=above),
        parent_agent=parent,
        target=target,
        task=Task(touches_pii=False, touches_secrets=False, reversible=True, resource_count=0, tools=TOOLS),
        requested_ttl=None,
        requested_ceilings=asked,
        registry=known,
        counted=0,
        left=900,
        trace_id="",
    )
    event("refused" if isinstance(made, Refusal) else "granted")
    if isinstance(made, Refusal):
        assert made.reason is Reason.CEILING_INVALID
        return
    layers = (above, parent.ceilings, target.ceilings, asked)
    for tool in made.tools:
        mine = made.ceilings.get(tool, {})
        ruled = compile_constraints(mine.get("args", {}), "test")
        entries_above: list[Mapping[str, Any]] = [layer[tool] for layer in layers if tool in layer]
        bounds: list[int] = [entry["max_calls"] for entry in entries_above if "max_calls" in entry]
        assert mine.get("max_calls") == (min(bounds) if bounds else None)
        for args in calls():
            # exactly what all layers admit: nothing more, and nothing lost either
            assert satisfies(ruled, args) is all(within(entry, args) for entry in entries_above), (tool, args)


@given(st.data(), tasks, st.integers(1, 12))
def test_nothing_is_derived_below_a_child(data: st.DataObject, task: Task, depth: int) -> None:
    known, parent, target = make(data)
    made = derive(
        parent=child(agent="support", depth=depth),
        parent_agent=parent,
        target=target,
        task=task,
        requested_ttl=None,
        requested_ceilings=None,
        registry=known,
        counted=0,
        left=900,
        trace_id="",
    )
    assert isinstance(made, Refusal)
    assert made.reason is Reason.DEPTH_EXCEEDED
