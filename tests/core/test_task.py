"""A task is read without coercion: what is missing, mistyped or unknown is refused with the member's name."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Reason, Refusal
from carnet.task import Task, parse_task
from carnet.token.names import MAX_COUNT

GOOD: dict[str, Any] = {"touches_pii": False, "touches_secrets": False, "reversible": True, "resource_count": 3}


def test_a_stated_task_comes_back_from_the_wire_unchanged() -> None:
    task = Task(**GOOD, tools=("search_tickets", "read_ticket"))
    assert parse_task(task.to_wire()) == task
    assert "tools" not in Task(**GOOD).to_wire()
    assert parse_task(Task(**GOOD).to_wire()) == Task(**GOOD)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [None, "true", "false", 0, 1, 1.0, [], {}, -1, "3"])
def test_no_fact_is_coerced(name: str, value: object) -> None:
    if name == "resource_count" and type(value) is int and value >= 0:
        return
    refused = parse_task({**GOOD, name: value})
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.TASK_INVALID
    assert name in refused.detail


def test_a_boolean_is_no_count() -> None:
    assert isinstance(parse_task({**GOOD, "resource_count": True}), Refusal)


@pytest.mark.parametrize("name", GOOD)
def test_every_fact_is_required(name: str) -> None:
    refused = parse_task({key: value for key, value in GOOD.items() if key != name})
    assert isinstance(refused, Refusal)
    assert name in refused.detail


def test_a_tenant_is_never_named() -> None:
    refused = parse_task({**GOOD, "tenant": "acme"})
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.TENANT_MISMATCH


@pytest.mark.parametrize("member", ["level", "ttl", "Touches_pii", "tools ", ""])
def test_an_unknown_member_is_refused(member: str) -> None:
    assert isinstance(parse_task({**GOOD, member: 1}), Refusal)


@pytest.mark.parametrize(
    "tools",
    [None, "read_ticket", [], ["a", "a"], [""], ["a b"], ['a"b'], ["a\\b"], ["é"], ["a" * 129], [1], [None], {"a": 1}],
)
def test_tools_are_distinct_valid_names(tools: object) -> None:
    refused = parse_task({**GOOD, "tools": tools})
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.TASK_INVALID


def test_a_task_made_in_code_says_what_is_wrong_with_it() -> None:
    with pytest.raises(TypeError, match="touches_pii must be True or False, not a int"):
        Task(**{**GOOD, "touches_pii": 1})
    with pytest.raises(TypeError, match="resource_count must be an integer, not a bool"):
        Task(**{**GOOD, "resource_count": True})
    with pytest.raises(ValueError, match="resource_count must be 0 or more"):
        Task(**{**GOOD, "resource_count": -1})
    with pytest.raises(ValueError, match="at most 2147483647"):
        Task(**{**GOOD, "resource_count": MAX_COUNT + 1})
    with pytest.raises(ValueError, match="name each tool once"):
        Task(**GOOD, tools=("a", "a"))
    with pytest.raises(TypeError, match="list of tool names"):
        Task(**GOOD, tools="search_tickets")


def test_tools_may_be_stated_as_any_collection_and_stay_as_they_were() -> None:
    names = ["b", "a"]
    task = Task(**GOOD, tools=names)
    names.append("c")
    assert task.tools == ("b", "a")
    assert Task(**GOOD, tools={"b", "a"}).tools == ("a", "b")
    assert hash(task) == hash(Task(**GOOD, tools=("b", "a")))


def test_a_task_does_not_change() -> None:
    task = Task(**GOOD)
    with pytest.raises(FrozenInstanceError):
        task.resource_count = 4  # type: ignore[misc]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.one_of(json_values, st.fixed_dictionaries(dict.fromkeys(GOOD, json_values), optional={"tools": json_values})))
def test_whatever_comes_in_a_task_or_a_refusal_comes_out(value: object) -> None:
    read = parse_task(value)
    if isinstance(read, Refusal):
        assert read.detail
    else:
        assert type(read.touches_pii) is type(read.touches_secrets) is type(read.reversible) is bool
        assert type(read.resource_count) is int
        assert read.resource_count >= 0
