"""Rules that never answer, and rules that omission dodges."""

import pytest

from tests.policy.lint.planting import codes, only, policy


def pair(one: str, other: str) -> str:
    return policy(f"{{{one}}}", f"{{{other}}}")


@pytest.mark.parametrize(
    ("covered", "covering"),
    [
        ("decision: allow, args: {a: {const: x}}", "decision: deny"),
        ("decision: require_approval, args: {a: {min: 1}}", "decision: deny"),
        ("decision: allow, args: {a: {min: 1, max: 2}}", "decision: allow, args: {a: {min: 0, max: 3}}"),
        ("decision: allow, args: {a: {const: x}}", "decision: allow, args: {a: {pattern: '^[a-z]$'}}"),
        ("decision: allow, args: {p: {path_within: /a/b}}", "decision: allow, args: {p: {path_within: [/a, /c]}}"),
        ("decision: allow, args: {u: {url_host: h}}", "decision: allow, args: {u: {url_host: [h, i]}}"),
        ("decision: deny, args: {a: {min: 5}}", "decision: deny, args: {a: {min: 4}}"),
        (
            "decision: allow, args: {l: {items: {const: 1}, min_items: 1}}",
            "decision: deny, args: {l: {items: {const: 1}}}",
        ),
        ("decision: allow, args: {a: {const: 1}}", "decision: allow, extra_args: true"),
    ],
)
def test_a_covered_rule_is_unreachable_in_either_order(covered: str, covering: str) -> None:
    assert "CP102" in codes(pair(covered, covering))
    assert "CP102" in codes(pair(covering, covered))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # laxer rules cover nothing
        ("decision: deny, args: {a: {const: x}}", "decision: allow, args: {a: {}}"),
        # the other one needs an argument that this one may lack
        ("decision: allow, args: {a: {const: 1}}", "decision: deny, args: {a: {const: 1}, b: {}}"),
        ("decision: require_approval, args: {a: {required: false}}", "decision: deny, args: {a: {}}"),
        # a closed allow refuses what it does not name
        ("decision: allow, args: {a: {}, b: {const: 1}}", "decision: allow, args: {a: {}}"),
        ("decision: allow, args: {a: {const: 1}}, extra_args: true", "decision: allow, args: {a: {}}"),
        # a deny also answers for what it can not judge: "60" is denied by the first only
        ("decision: deny, args: {a: {type: number, min: 50}}", "decision: deny, args: {a: {type: number}}"),
        # 60.5 is denied by the second, and 1.5 only by the first, which can not judge it
        ("decision: deny, args: {a: {type: integer, min: 50}}", "decision: deny, args: {a: {min: 50}}"),
        # an empty list holds no element that a deny could match
        ("decision: allow, args: {l: {items: {const: 1}}}", "decision: deny, args: {l: {items: {const: 1}}}"),
    ],
)
def test_a_rule_that_sometimes_answers_is_not_unreachable(one: str, other: str) -> None:
    assert not {"CP102", "CP103"} & codes(pair(one, other))


def test_of_twins_the_later_one_is_told_once() -> None:
    found = only("CP103", policy("{decision: deny}", "{decision: deny, reason: other words}"))
    assert (found.rule, found.line) == ("t[1]", 6)


@pytest.mark.parametrize(
    ("allow", "ask"),
    [
        ("args: {a: {}}", "args: {b: {min: 1}}"),
        ("args: {b: {min: 0, max: 9, required: false}}", "args: {b: {min: 1}}"),
        ("extra_args: true", "args: {b: {min: 1}}"),
        ("args: {o: {type: object}}", "args: {o: {properties: {b: {const: 1}}}}"),
        ("args: {l: {type: array}}", "args: {l: {items: {properties: {b: {const: 1}}}}}"),
    ],
)
def test_an_approval_rule_is_dodged_by_omission(allow: str, ask: str) -> None:
    assert "CP104" in codes(pair(f"decision: allow, {allow}", f"decision: require_approval, {ask}"))


def test_a_deny_on_a_member_of_a_list_s_elements_is_dodged_by_an_element_without_it() -> None:
    deny = "decision: deny, args: {l: {items: {properties: {b: {const: 1}}}}}"
    assert "CP104" in codes(pair("decision: allow, args: {l: {items: {type: object}}}", deny))
    named = "decision: allow, args: {l: {items: {properties: {b: {const: 2}}}}}"
    assert "CP104" not in codes(pair(named, deny))


@pytest.mark.parametrize(
    ("allow", "ask"),
    [
        ("args: {e: {const: x}}", "args: {e: {const: y}, b: {min: 1}}"),
        ("args: {b: {min: 0, max: 0}}", "args: {b: {min: 1}}"),
        ("args: {a: {}}", "args: {b: {min: 1, required: false}}"),
    ],
)
def test_omission_dodges_nothing(allow: str, ask: str) -> None:
    assert "CP104" not in codes(pair(f"decision: allow, {allow}", f"decision: require_approval, {ask}"))


def test_an_open_default_lets_omission_dodge_a_deny() -> None:
    text = policy("{decision: deny, args: {a: {min: 1}}}")
    assert "CP104" not in codes(text)
    assert "CP104" in codes(f"defaults: {{decision: allow}}\ni_accept_fail_open: true\n{text}")
