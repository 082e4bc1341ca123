"""What does not map is refused with its place, all of it at once, and nothing is left out silently."""

import pytest

from carnet_policy import Call
from carnet_policy.export import Unmapped, facts_of, to_cedar, to_rego
from carnet_policy.export.numbers import number_facts, units_of
from tests.policy.building import policy_of

ONE = "tools:\n  t:\n    - decision: allow\n      args:\n        a: {%s}\n"


def refused(constraint: str, *, cedar: bool = False) -> Unmapped:
    found = (to_cedar if cedar else to_rego)(policy_of("version: 1\n" + ONE % constraint))
    assert isinstance(found, tuple), found
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("constraint", "why"),
    [
        ("pattern: a.c", "stops at line breaks"),
        (r"pattern: '\bx'", r"\b in its pattern"),
        (r"pattern: '\S+'", r"\S in its pattern"),
        (r"pattern: '\p{L}'", r"\p in its pattern"),
        ("pattern: '(?m)^x'", "flag m"),
        ("pattern: 'a(^b)'", "anchor"),
        ("pattern: '(?i)é'", "ignores the case"),
        ("pattern: '[^a]{2}'", "counts letters outside ASCII"),
        ("pattern: '[^a]'", "one at a time"),
        ("pattern: '[^a]+[^b]+'", "counts letters outside ASCII"),
        ("pattern: '[^é]*'", "excludes letters"),
        ("pattern: '[a-漢]'", "many letters"),
        ("pattern: '(a{500}){2}b{900}'", "beyond 1000"),
        ("min: 0.00001", "four decimals"),
        ("max: 1.0e+15", "four decimals"),
        ("enum: [[1]]", "a list or an object"),
        ("""enum: ['a"b']""", "control characters"),
        (r"path_within: '/a"+'"'+"'", "control characters"),
    ],
)  # fmt: skip
def test_rego_refuses_with_place_and_cause(constraint: str, why: str) -> None:
    found = refused(constraint)
    assert why in found.why
    assert found.why.startswith("t[0]: a: ")
    assert (found.file, found.line, found.column) == ("test.yaml", 6, 13)
    assert str(found).startswith("test.yaml:6:13: t[0]: a: ")


@pytest.mark.parametrize(
    ("constraint", "why"),
    [
        ("pattern: '^cust_[0-9]{6}$'", "no regular expressions"),
        ("pattern: 'a+'", "no regular expressions"),
        ("pattern: '(?s).+'", "no regular expressions"),
        ("items: {max: 5}", "no loops"),
        ("properties: {b: {items: {}}}", "no loops"),
    ],
)
def test_cedar_refuses_with_place_and_cause(constraint: str, why: str) -> None:
    found = refused(constraint, cedar=True)
    assert why in found.why
    assert found.line == 6


def test_everything_that_does_not_map_is_named_at_once() -> None:
    text = ONE % "pattern: a.c" + "        b: {min: 0.00001}\n  u:\n    - {decision: deny, args: {c: {pattern: '.'}}}\n"
    found = to_rego(policy_of(text + "history:\n  - {match: {tool: t}, sum: b, max: 0.00001, decision: deny}\n"))
    assert isinstance(found, tuple)
    assert [one.line for one in found] == [6, 9, 11]
    assert found[-1].why.startswith("history[0]: max ")


def test_what_decides_nothing_is_named_at_the_top() -> None:
    text = "catalog: {t: {data_class: [pii], resource_arg: id}}\napprovals: {timeout: 60, approvers: [leads]}\n"
    policy = policy_of(text + ONE % "const: 1")
    for found in (to_rego(policy), to_cedar(policy)):
        assert isinstance(found, str)
        top = found.split("\n\n")[0].replace("// ", "# ")
        assert "# - t: data_class pii; resource_arg 'id'" in top
        assert "time out after 60 s; a denial means revoke; approvers: leads" in top
        assert policy.ref.digest in top


def test_a_reason_can_not_break_out_of_its_comment() -> None:
    rule = '- {decision: deny, reason: "a\\ndefault decision := 1\\n}"}'
    found = to_rego(policy_of(f"tools:\n  t:\n    {rule}\n"))
    assert isinstance(found, str)
    assert not any(line.startswith("default decision := 1") for line in found.splitlines())


@pytest.mark.parametrize(
    ("value", "units", "more"),
    [
        (1, 10_000, False), (50.01, 500_100, False), (-0.0, 0, False), (5e-324, 0, True), (-5e-324, -1, True),
        (0.00005, 0, True), (50.010000000000005, 500_100, True), (10**30, 2**53 - 1, True), (1e300, 2**53 - 1, True),
        (-(10**30), 1 - 2**53, False), (-1e300, 1 - 2**53, False),
    ],
)  # fmt: skip
def test_numbers_become_whole_units(value: float, units: int, more: bool) -> None:
    assert number_facts(value) == {"units": units, "more": more}
    assert units_of(value) == (None if more or abs(units) == 2**53 - 1 else units)


def test_facts_hold_no_name_and_no_text_that_an_engine_reads_otherwise() -> None:
    args = {"\ud800": 1, "__extn": 2, "a\0": 3, "s": "\ud800", "nan": float("nan")}
    facts = facts_of(policy_of(ONE % "const: 1"), Call("t\ud800", args))
    assert facts["tool"] == "t\ufffd"
    assert facts["arguments"]["names"] == ["nan", "s", "\ufffd"]
    assert facts["arguments"]["members"] == {
        "s": {"kind": "string", "length": 1},
        "nan": {"kind": "nonfinite"},
    }
