"""Every constraint against a value of every type, in allow, require_approval and deny."""

import math
from typing import Any

import pytest

from carnet_policy import Effect
from tests.policy.building import ask, effect, rules_for

VALUES: dict[str, Any] = {
    "int": 5,
    "negative": -5,
    "huge": 10**400,
    "float": 5.0,
    "half": 5.5,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "true": True,
    "false": False,
    "null": None,
    "empty": "",
    "text": "abc",
    "digit": "5",
    "newline": "abc\n",
    "path": "/srv/a/x",
    "url": "https://a.example/x",
    "surrogate": "\ud800",
    "list": ["abc"],
    "empty list": [],
    "object": {"k": "abc"},
    "empty object": {},
}
NUMBERS = {"int", "negative", "huge", "float", "half"}
INTEGERS = {"int", "negative", "huge"}
STRINGS = {"empty", "text", "digit", "newline", "path", "url", "surrogate"}
LISTS = {"list", "empty list"}
OBJECTS = {"object", "empty object"}
FINITE = set(VALUES) - {"nan", "inf", "-inf"}

# constraint: (values that match, values that it can not judge); the rest is a plain no
TABLE: dict[str, tuple[set[str], set[str]]] = {
    "{}": (FINITE, set(VALUES) - FINITE),
    "{type: string}": (STRINGS, set(VALUES) - FINITE),
    "{type: integer}": (INTEGERS, set(VALUES) - FINITE),
    "{type: number}": (NUMBERS, set(VALUES) - FINITE),
    "{type: boolean}": ({"true", "false"}, set(VALUES) - FINITE),
    "{type: 'null'}": ({"null"}, set(VALUES) - FINITE),
    "{type: array}": (LISTS, set(VALUES) - FINITE),
    "{type: object}": (OBJECTS, set(VALUES) - FINITE),
    "{required: true}": (FINITE - {"null", "empty", "empty list"}, set(VALUES) - FINITE),
    "{min: 5}": (NUMBERS - {"negative"}, set(VALUES) - NUMBERS),
    "{max: 5}": ({"int", "float", "negative"}, set(VALUES) - NUMBERS),
    "{min: 5, max: 5.5}": ({"int", "float", "half"}, set(VALUES) - NUMBERS),
    "{type: integer, min: 5}": ({"int", "huge"}, set(VALUES) - INTEGERS),
    "{pattern: '[a-z]+'}": ({"text"}, set(VALUES) - STRINGS | {"surrogate"}),
    "{min_length: 2}": ({"text", "newline", "path", "url"}, set(VALUES) - STRINGS),
    "{max_length: 3}": ({"empty", "text", "digit", "surrogate"}, set(VALUES) - STRINGS),
    "{path_within: /srv/a}": ({"path"}, set(VALUES) - {"path"}),
    "{url_host: a.example}": ({"url"}, set(VALUES) - {"url"}),
    "{enum: [abc, '5']}": ({"text", "digit"}, set(VALUES) - STRINGS),
    "{enum: [5, x]}": ({"int"}, set(VALUES) - STRINGS - NUMBERS | {"float"}),
    "{const: true}": ({"true"}, set(VALUES) - {"true", "false"}),
    "{const: null}": ({"null"}, set(VALUES) - {"null"}),
    "{const: [abc]}": ({"list"}, set(VALUES) - LISTS),
    "{items: {type: string}, min_items: 1}": ({"list"}, set(VALUES) - LISTS),
    "{max_items: 0}": ({"empty list"}, set(VALUES) - LISTS),
    "{properties: {k: {const: abc}}}": ({"object"}, set(VALUES) - OBJECTS),
}
CASES = [(constraint, name) for constraint in TABLE for name in VALUES]


@pytest.mark.parametrize(("constraint", "name"), CASES)
def test_allow_takes_only_what_certainly_matches(constraint: str, name: str) -> None:
    policy = rules_for(f"{{decision: allow, args: {{x: {constraint}}}}}")
    assert (effect(policy, {"x": VALUES[name]}) is Effect.ALLOW) == (name in TABLE[constraint][0])


@pytest.mark.parametrize(("constraint", "name"), CASES)
def test_deny_takes_also_what_it_can_not_judge(constraint: str, name: str) -> None:
    policy = rules_for(f"{{decision: deny, args: {{x: {constraint}}}}}")
    matches, unjudged = TABLE[constraint]
    assert (ask(policy, {"x": VALUES[name]}).reason == "policy_deny") == (name in matches | unjudged)


@pytest.mark.parametrize(("constraint", "name"), CASES)
def test_approval_that_can_not_judge_lifts_no_default(constraint: str, name: str) -> None:
    rule = f"{{decision: require_approval, args: {{x: {constraint}}}}}"
    matches, unjudged = TABLE[constraint]
    alone = effect(rules_for(rule), {"x": VALUES[name]})
    assert (alone is Effect.REQUIRE_APPROVAL) == (name in matches)
    beside = effect(rules_for(rule, "{decision: allow, extra_args: true}"), {"x": VALUES[name]})
    assert (beside is Effect.REQUIRE_APPROVAL) == (name in matches | unjudged)


def test_lengths_count_code_points() -> None:
    policy = rules_for("{decision: allow, args: {x: {max_length: 3, min_length: 3}}}")
    assert effect(policy, {"x": "💡💡💡"}) is Effect.ALLOW
    assert effect(policy, {"x": "e\u0301e\u0301"}) is Effect.DENY


@pytest.mark.parametrize(
    "path",
    [
        "/srv/reports/../../etc/passwd",
        "/srv/reports-private/x",
        "/srv",
        "srv/reports/x",
        "/srv/reports/..",
        "/srv/reports/a\\..\\b",
        "/srv/reports/a\0b",
        "",
        "~/srv/reports",
        "/SRV/reports/x",
        "file:///srv/reports/x",
    ],
)
def test_path_within_refuses(path: str) -> None:
    policy = rules_for("{decision: allow, args: {x: {path_within: /srv/reports}}}")
    assert effect(policy, {"x": path}) is Effect.DENY


@pytest.mark.parametrize("path", ["/srv/reports/x", "/srv/reports", "//srv/./reports//x/", "/srv/reports/..x/y."])
def test_path_within_admits(path: str) -> None:
    policy = rules_for("{decision: allow, args: {x: {path_within: [/srv/reports/, /opt]}}}")
    assert effect(policy, {"x": path}) is Effect.ALLOW


def test_a_deny_on_a_path_is_not_dodged_by_dots() -> None:
    policy = rules_for(
        "{decision: deny, args: {x: {path_within: /etc}}}", "{decision: allow, args: {x: {type: string}}}"
    )
    assert effect(policy, {"x": "/srv/../etc/passwd"}) is Effect.DENY
    assert effect(policy, {"x": "/srv/x"}) is Effect.ALLOW


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/",
        "https://a.example@evil.example/",
        "https://a.example:pw@evil.example/",
        "https://evil.example/a.example",
        "https://a.example.evil.example/",
        "https://sub.a.example/",
        "https://a.example?@evil.example/",
        "https://a.example#@evil.example/",
        "https://a.example\\@evil.example/",
        "https://a.example:8443/",
        "https://a.example:99999/",
        "https://a.example./",
        " https://a.example/",
        "https://a.example/\n",
        "https://a.example/ x",
        "https://а.example/",
        "https:///a.example",
        "//a.example/",
        "HTTPS://a.example/",
        "https://[::1]/",
    ],
)
def test_url_host_refuses(url: str) -> None:
    policy = rules_for("{decision: allow, args: {x: {url_host: [a.example, b.example:8443]}}}")
    assert effect(policy, {"x": url}) is Effect.DENY


@pytest.mark.parametrize(
    "url", ["https://a.example", "https://A.Example/x?y=@#z", "https://a.example:443/", "https://b.example:8443/x"]
)
def test_url_host_admits(url: str) -> None:
    policy = rules_for("{decision: allow, args: {x: {url_host: [a.example, b.example:8443]}}}")
    assert effect(policy, {"x": url}) is Effect.ALLOW


def test_every_element_must_match_for_an_allow_and_one_is_enough_for_a_deny() -> None:
    allow = rules_for("{decision: allow, args: {x: {items: {pattern: 'T-[0-9]+'}}}}")
    assert effect(allow, {"x": ["T-1", "T-2"]}) is Effect.ALLOW
    assert effect(allow, {"x": ["T-1", "T-1; rm"]}) is Effect.DENY
    deny = rules_for(
        "{decision: deny, args: {x: {items: {const: root}}}}", "{decision: allow, args: {x: {type: array}}}"
    )
    assert effect(deny, {"x": ["ann", "root"]}) is Effect.DENY
    assert effect(deny, {"x": ["ann", 7]}) is Effect.DENY
    assert effect(deny, {"x": ["ann"]}) is Effect.ALLOW


def test_a_list_of_which_only_some_elements_match_turns_an_allow_into_a_question_and_lifts_nothing() -> None:
    rule = "{decision: require_approval, args: {x: {items: {enum: [a, b]}}}}"
    assert effect(rules_for(rule), {"x": ["a", "b"]}) is Effect.REQUIRE_APPROVAL
    assert effect(rules_for(rule), {"x": ["a", "c"]}) is Effect.DENY
    both = rules_for(rule, "{decision: allow, args: {x: {type: array}}}")
    assert effect(both, {"x": ["a", "c"]}) is Effect.REQUIRE_APPROVAL
    assert effect(both, {"x": ["c"]}) is Effect.ALLOW


def test_objects_are_closed_for_an_allow_and_open_for_a_deny() -> None:
    allow = rules_for("{decision: allow, args: {x: {properties: {a: {type: integer}, b: {required: false}}}}}")
    assert effect(allow, {"x": {"a": 1}}) is Effect.ALLOW
    assert effect(allow, {"x": {"a": 1, "b": "?"}}) is Effect.ALLOW
    assert effect(allow, {"x": {"a": 1, "c": 2}}) is Effect.DENY
    assert effect(allow, {"x": {"b": 1}}) is Effect.DENY
    deny = rules_for("{decision: deny, args: {x: {properties: {force: {const: true}}}}}")
    assert ask(deny, {"x": {"force": True, "more": 1}}).reason == "policy_deny"


def test_members_of_an_enum_compare_whole_and_by_type() -> None:
    policy = rules_for("{decision: allow, args: {x: {enum: [{a: 1, b: [2.0]}]}}}")
    assert effect(policy, {"x": {"b": [2.0], "a": 1}}) is Effect.ALLOW
    others = [{"a": 1}, {"a": 1, "b": [2]}, {"a": True, "b": [2.0]}, {"a": 1, "b": [2.0], "c": 1}, {"a": 1, "c": [2.0]}]
    for other in others:
        assert effect(policy, {"x": other}) is Effect.DENY


def test_a_place_has_a_longest_form() -> None:
    policy = rules_for("{decision: allow, args: {x: {path_within: /srv}}}")
    assert effect(policy, {"x": "/srv/" + "a" * 4091}) is Effect.ALLOW
    assert effect(policy, {"x": "/srv/" + "a" * 4092}) is Effect.DENY
