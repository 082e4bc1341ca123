"""Gaps and overlaps are exact, and are told only where two rules can meet."""

import pytest

from carnet_policy.lint import Severity
from tests.policy.lint.planting import codes, definitions, only, policy


def two(one: str, other: str, more: str = "") -> str:
    return policy(f"{{decision: allow, args: {{{one}}}}}", f"{{decision: require_approval, args: {{{other}}}}}{more}")


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("a: {type: integer, min: 0, max: 5}", "a: {type: integer, min: 7, max: 9}", ": 6 is in no rule"),
        ("a: {type: integer, min: 0, max: 5}", "a: {type: integer, min: 10, max: 20}", ": 6 to 9 is"),
        ("a: {type: integer, min: 0, max: 5.5}", "a: {type: integer, min: 7.5, max: 9}", ": 6 to 7 is"),
        ("a: {min: 0, max: 5}", "a: {min: 7, max: 9}", "more than 5 and less than 7"),
        ("a: {min: 7, max: 9}", "a: {min: 0, max: 5}", "more than 5 and less than 7"),
        ("a: {min: 0, max: 0.1}", "a: {min: 0.3, max: 1}", "more than 0.1 and less than 0.3"),
        (
            "a: {type: integer, min: 0, max: 9007199254740993}",
            "a: {type: integer, min: 9007199254740995, max: 9007199254740999}",
            ": 9007199254740994 is",
        ),
        (
            "o: {properties: {a: {type: integer, min: 0, max: 1}}}",
            "o: {properties: {a: {type: integer, min: 3, max: 4}}}",
            "gap in o.a: 2 is",
        ),
    ],
)
def test_a_gap_is_shown(one: str, other: str, shown: str) -> None:
    found = only("CP202", two(one, other))
    assert shown in found.message
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a: {type: integer, min: 0, max: 5}", "a: {type: integer, min: 6, max: 9}"),
        ("a: {type: integer, min: 0, max: 5.2}", "a: {type: integer, min: 5.9, max: 9}"),
        ("a: {min: 0, max: 5}", "a: {min: 5, max: 9}"),
        ("a: {min: 0}", "a: {min: 7, max: 9}"),
        ("e: {const: x}, a: {min: 0, max: 1}", "e: {const: y}, a: {min: 5, max: 9}"),
        ("l: {items: {min: 0, max: 1}}", "l: {items: {min: 5, max: 9}}"),
    ],
)
def test_there_is_no_gap(one: str, other: str) -> None:
    assert "CP202" not in codes(two(one, other))


def test_a_gap_that_only_finer_numbers_fall_into_is_a_note() -> None:
    found = only("CP202", two("a: {min: 0, max: 50}", "a: {min: 50.01, max: 60}"))
    assert found.severity is Severity.NOTE


def test_a_gap_into_an_open_default_is_never_a_note() -> None:
    text = two("a: {min: 0, max: 50}", "a: {min: 50.01, max: 60}")
    open_default = text.replace("version: 1\n", "version: 1\ndefaults: {decision: allow}\ni_accept_fail_open: true\n")
    assert only("CP202", open_default).severity is Severity.WARNING


def test_a_rule_that_does_not_look_at_the_argument_fills_the_gap() -> None:
    rules = ("{decision: allow, args: {a: {min: 0, max: 5}}}", "{decision: deny, args: {a: {min: 7}}}")
    assert "CP202" in codes(policy(*rules))
    assert "CP202" not in codes(policy(*rules, "{decision: require_approval}"))


def test_three_ranges_have_the_gap_where_it_is() -> None:
    ranges = [(0, 5), (4, 9), (12, 20)]
    rules = [f"{{decision: allow, args: {{a: {{type: integer, min: {low}, max: {high}}}}}}}" for low, high in ranges]
    assert "t[1] and t[2] leave a gap in a: 10 to 11" in only("CP202", policy(*rules)).message


def test_a_tool_whose_schema_says_integer_has_no_gap_between_neighbours() -> None:
    text = two("a: {min: 0, max: 5}", "a: {min: 6, max: 9}")
    whole = definitions({"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}})
    assert ("CP202" in codes(text), "CP202" in codes(text, whole)) == (True, False)


@pytest.mark.parametrize(
    ("one", "other", "shown", "severity"),
    [
        ("a: {min: 0, max: 5}", "a: {min: 4, max: 9}", "match a from 4 to 5; t[1] (require_approval) wins", "warning"),
        ("a: {min: 0, max: 5}", "a: {min: 5, max: 9}", "match a = 5", "note"),
        ("a: {min: 0, max: 50}", "a: {min: 10, max: 20}", "match a from 10 to 20", "note"),
        ("a: {min: 0, max: 50}", "a: {min: 40}", "match a from 40 to 50", "warning"),
        ("a: {type: integer, min: 0, max: 5}", "a: {type: integer, min: 4.5, max: 9}", "match a = 5", "note"),
    ],
)
def test_an_overlap_is_shown(one: str, other: str, shown: str, severity: str) -> None:
    found = only("CP203", two(one, other))
    assert shown in found.message
    assert found.severity == severity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a: {min: 0, max: 5}", "a: {min: 5.01, max: 9}"),
        ("a: {type: integer, min: 0, max: 5.3}", "a: {type: integer, min: 5.2, max: 9}"),
        ("e: {enum: [x, z]}, a: {min: 0, max: 5}", "e: {enum: [y]}, a: {min: 4, max: 9}"),
        ("a: {min: 1, max: 2}", "a: {min: 0, max: 5}"),
    ],
)
def test_there_is_no_overlap(one: str, other: str) -> None:
    assert "CP203" not in codes(two(one, other))


def test_a_bound_in_a_list_or_an_object_is_one_sided_too() -> None:
    assert (
        "lines[].price has a max"
        in only("CP201", policy(args="lines: {items: {properties: {price: {max: 5}}}}")).message
    )
    assert "unbounded above" in only("CP201", policy(args="a: {min: 0}")).message


def test_a_deny_may_be_one_sided() -> None:
    assert "CP201" not in codes(policy("{decision: deny, args: {a: {min: 5}}}"))
