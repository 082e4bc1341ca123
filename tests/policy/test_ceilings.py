"""Ceilings: what a child may narrow, and what intersecting means."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet_policy import PolicyError, compile_constraints, intersect, narrower, satisfies

Raw = dict[str, dict[str, Any]]


def admits(constraints: Raw, args: dict[str, Any]) -> bool:
    return satisfies(compile_constraints(constraints, "test"), args)


def test_a_ceiling_fails_closed_when_its_argument_is_absent() -> None:
    assert admits({"amount": {"max": 20}}, {"amount": 20, "other": "x"})
    assert not admits({"amount": {"max": 20}}, {"amount": 20.01})
    assert not admits({"amount": {"max": 20}}, {"amount": "5"})
    assert not admits({"amount": {"max": 20}}, {})
    assert admits({"amount": {"max": 20, "required": False}}, {})
    assert admits({}, {"anything": 1})


def test_what_breaks_the_judging_is_outside() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert not admits({"x": {"const": [[[]]]}}, {"x": deep})
    assert not admits({"x": {"pattern": "a"}}, {"x": "\ud800"})
    assert not satisfies(compile_constraints({"x": {}}, "test"), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "constraints",
    [
        {"amount": {"maximum": 20}},
        {"amount": 20},
        {"amount": {"min": 2, "max": 1}},
        {1: {}},
        {"a": {2: 3}},
        ["a"],
        None,
        {"a": {"pattern": "("}},
        {"a": {"const": float("nan")}},
        {"a": {"enum": [(1,)]}},
        {"a": {"min": 10**5000}},
        {f"a{number}": {"pattern": "x"} for number in range(17)},
        {f"a{number}": {} for number in range(2000)},
    ],
)
def test_what_is_no_ceiling_is_refused(constraints: Any) -> None:
    with pytest.raises(PolicyError):
        compile_constraints(constraints, "refund")
    assert not narrower(constraints, {"z": {}})


def test_an_error_names_where() -> None:
    with pytest.raises(PolicyError, match=r"^refund: unknown constraint 'maximum' in amount"):
        compile_constraints({"amount": {"maximum": 20}}, "refund")


@pytest.mark.parametrize(
    ("child", "parent", "wanted"),
    [
        ({"a": {"max": 5}}, {"a": {"max": 5}}, True),
        ({"a": {"max": 4}}, {"a": {"max": 5}}, True),
        ({"a": {"max": 6}}, {"a": {"max": 5}}, False),
        ({}, {"a": {"max": 5}}, False),
        ({"b": {"max": 1}}, {"a": {"max": 5}}, False),
        ({"a": {"max": 5}, "b": {}}, {"a": {"max": 5}}, True),
        ({"a": {"min": 1}}, {"a": {"max": 5}}, False),
        ({"a": {"max": 5, "required": False}}, {"a": {"max": 5}}, False),
        ({"a": {"max": 5}}, {"a": {"max": 5, "required": False}}, True),
        ({"a": {"max": 5}}, {"a": {"max": 5, "required": True}}, False),
        ({"a": {"type": "integer", "max": 5}}, {"a": {"max": 5}}, True),
        ({"a": {"max": 5}}, {"a": {"type": "integer", "max": 5}}, False),
        ({"a": {"const": 3}}, {"a": {"max": 5}}, True),
        ({"a": {"const": 3.0}}, {"a": {"type": "integer"}}, False),
        ({"a": {"enum": ["x", "y"]}}, {"a": {"pattern": "[a-z]"}}, True),
        ({"a": {"enum": ["x", "yy"]}}, {"a": {"pattern": "[a-z]"}}, False),
        ({"a": {"pattern": "a+"}}, {"a": {"pattern": "a+"}}, True),
        ({"a": {"pattern": "aa"}}, {"a": {"pattern": "a+"}}, False),
        ({"a": {"path_within": "/srv/a/b"}}, {"a": {"path_within": ["/opt", "/srv/a"]}}, True),
        ({"a": {"path_within": "/srv/ab"}}, {"a": {"path_within": "/srv/a"}}, False),
        ({"a": {"url_host": "a.example"}}, {"a": {"url_host": ["a.example", "b.example"]}}, True),
        ({"a": {"url_host": ["a.example", "c.example"]}}, {"a": {"url_host": ["a.example", "b.example"]}}, False),
        ({"a": {"items": {"max": 1}, "max_items": 2}}, {"a": {"items": {"max": 2}}}, True),
        ({"a": {"items": {"max": 3}}}, {"a": {"items": {"max": 2}}}, False),
        ({"a": {"properties": {"x": {"max": 1}, "y": {}}}}, {"a": {"properties": {"x": {"max": 2}}}}, True),
        ({"a": {"properties": {"y": {}}}}, {"a": {"properties": {"x": {"max": 2}}}}, False),
        ({"a": {"max_length": 3}}, {"a": {"enum": ["abc"]}}, False),
        ({"a": {"max": 4}}, {"a": {"min": 1, "max": 5}}, False),
        ({"a": {"min": 2}}, {"a": {"min": 1, "max": 5}}, False),
        ({"a": {"min": 2, "max": 4}}, {"a": {"min": 1, "max": 5}}, True),
        ({"a": {"type": "string"}}, {"a": {"url_host": "a.example"}}, False),
        ({"a": {"url_host": "c.example"}}, {"a": {"url_host": "a.example"}}, False),
        ({"a": {"url_host": "c.example"}}, {"a": {"type": "string"}}, True),
        ({"a": {"type": "string"}}, {"a": {"path_within": "/"}}, False),
        ({"a": {"type": "array"}}, {"a": {"items": {}}}, False),
    ],
)
def test_narrower(child: Raw, parent: Raw, wanted: bool) -> None:
    assert narrower(child, parent) is wanted


@pytest.mark.parametrize(
    ("parent", "child", "wanted"),
    [
        (None, None, {}),
        ({"a": {"max": 5}}, None, {"a": {"max": 5}}),
        (None, {"a": {"max": 5}}, {"a": {"max": 5}}),
        ({"a": {"max": 5}}, {"a": {"max": 9, "min": 1}}, {"a": {"max": 5, "min": 1}}),
        ({"a": {"max": 5}}, {"b": {"const": 1}}, {"a": {"max": 5}, "b": {"const": 1}}),
        ({"a": {"type": "number"}}, {"a": {"type": "integer"}}, {"a": {"type": "integer"}}),
        ({"a": {"required": False}}, {"a": {"max": 1}}, {"a": {"max": 1}}),
        ({"a": {"required": False}}, {"a": {"required": True}}, {"a": {"required": True}}),
        ({"a": {"required": False}}, {"a": {"required": False}}, {"a": {"required": False}}),
        ({"a": {"required": False}}, {}, {"a": {"required": False}}),
        ({"a": {"enum": [1, 2, 3]}}, {"a": {"enum": [3, 2, 9]}}, {"a": {"enum": [3, 2]}}),
        (
            {"a": {"path_within": "/srv"}},
            {"a": {"path_within": ["/srv/x", "/opt"]}},
            {"a": {"path_within": ["/srv/x"]}},
        ),
        ({"a": {"url_host": ["a.b", "c.d"]}}, {"a": {"url_host": "c.d"}}, {"a": {"url_host": ["c.d"]}}),
        ({"a": {"items": {"max": 5}}}, {"a": {"items": {"max": 3}}}, {"a": {"items": {"max": 3}}}),
        (
            {"a": {"properties": {"x": {"max": 5}}}},
            {"a": {"properties": {"x": {"max": 3}, "y": {}}}},
            {"a": {"properties": {"x": {"max": 3}, "y": {}}}},
        ),
    ],
)
def test_intersect(parent: Raw | None, child: Raw | None, wanted: Raw) -> None:
    assert intersect(parent, child) == wanted


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ({"a": {"max": 5}}, {"a": {"min": 6}}),
        ({"a": {"pattern": "a+"}}, {"a": {"pattern": "aa"}}),
        ({"a": {"type": "string"}}, {"a": {"max": 5}}),
        ({"a": {"enum": [1]}}, {"a": {"enum": [1.0]}}),
        ({"a": {"const": 1}}, {"a": {"const": 2}}),
        ({"a": {"const": 1}}, {"a": {"min": 2}}),
        ({"a": {"path_within": "/a"}}, {"a": {"path_within": "/ab"}}),
        ({"a": {"url_host": "a.b"}}, {"a": {"url_host": "x.a.b"}}),
        ({"a": {}}, {"a": {"unknown": 1}}),
        ({"a": {"unknown": 1}}, {}),
        ("a", {}),
    ],
)
def test_what_can_not_be_merged_is_refused(parent: Any, child: Any) -> None:
    with pytest.raises(PolicyError):
        intersect(parent, child)


def test_intersecting_changes_neither_side() -> None:
    parent = {"a": {"items": {"max": 5}}}
    for child in ({"a": {"items": {"min": 1}}}, {}):
        merged = intersect(parent, child)
        merged["a"]["items"]["max"] = 99
        assert parent == {"a": {"items": {"max": 5}}}


SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 2, 1.0, 2.5, -1, "", "a", "ab", "abc", "/srv", "/srv/a", "/srv/../x"]
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from("xy"), SCALARS, max_size=2)
SMALL = st.integers(0, 3)
FLAT = st.one_of(
    st.fixed_dictionaries({}, optional={"min": st.sampled_from([0, 0.5, 1]), "max": st.sampled_from([1, 2, 2.5])}),
    st.fixed_dictionaries(
        {}, optional={"min_length": SMALL, "max_length": SMALL, "pattern": st.sampled_from(["a*", "ab?"])}
    ),
    st.fixed_dictionaries({"path_within": st.sampled_from(["/", "/srv", ["/srv/a", "/opt"]])}),
    st.fixed_dictionaries({"enum": st.lists(SCALARS, min_size=1, max_size=4)}),
    st.fixed_dictionaries({"const": SCALARS}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["number", "integer", "string", "boolean", "null", "array", "object"])}
    ),
    st.fixed_dictionaries({"required": st.booleans()}),
)
JOINED = st.tuples(FLAT, FLAT).map(lambda two: two[0] | two[1])
NESTED = st.one_of(
    JOINED,
    st.fixed_dictionaries({"items": FLAT}, optional={"min_items": SMALL, "max_items": SMALL}),
    st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("xy"), FLAT, max_size=2)}),
)
CEILINGS = st.dictionaries(st.sampled_from("pq"), NESTED, max_size=2)
ARGS = st.dictionaries(st.sampled_from("pq"), VALUES, max_size=2)


def compiles(raw: Raw) -> bool:
    try:
        compile_constraints(raw, "test")
    except PolicyError:
        return False
    return True


VALID = CEILINGS.filter(compiles)


@given(VALID, VALID, ARGS)
def test_what_a_narrower_child_admits_its_parent_admits(child: Raw, parent: Raw, args: dict[str, Any]) -> None:
    if narrower(child, parent) and admits(child, args):
        assert admits(parent, args)


@given(VALID, VALID, ARGS)
def test_an_intersection_admits_exactly_what_both_sides_admit(parent: Raw, child: Raw, args: dict[str, Any]) -> None:
    try:
        both = intersect(parent, child)
    except PolicyError:
        return
    assert admits(both, args) == (admits(parent, args) and admits(child, args))
    assert narrower(both, parent)
    assert narrower(both, child)


@given(VALID)
def test_every_ceiling_is_within_itself_and_its_own_intersection(raw: Raw) -> None:
    assert narrower(raw, raw)
    assert narrower(raw, intersect(raw, raw))
    assert narrower(raw, {})
