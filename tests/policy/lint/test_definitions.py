"""Tool definitions of every form, and what a misspelt name in a policy then is."""

import json
from typing import Any

import pytest

from carnet_policy import PolicyError, loads
from carnet_policy.lint import Severity, check
from carnet_policy.tooldefs import ANYTHING, read_definitions, starting_policy
from tests.policy.lint.planting import codes, definitions, only, policy

SCHEMA = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
FORMS: dict[str, Any] = {
    "mcp": {"tools": [{"name": "t", "description": "x", "inputSchema": SCHEMA}]},
    "mcp on the wire": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "t", "inputSchema": SCHEMA}]}},
    "openai chat": [{"type": "function", "function": {"name": "t", "parameters": SCHEMA, "strict": True}}],
    "openai chat request": {"tools": [{"type": "function", "function": {"name": "t", "parameters": SCHEMA}}]},
    "openai responses": [{"type": "function", "name": "t", "parameters": SCHEMA, "strict": True}],
    "anthropic": [{"name": "t", "description": "x", "input_schema": SCHEMA}],
    "one alone": {"name": "t", "input_schema": SCHEMA},
}  # fmt: skip
WRONG = policy(args="amuont: {min: 0, max: 5}")


@pytest.mark.parametrize("form", FORMS)
def test_a_misspelt_argument_is_an_error_with_the_nearest_name(form: str) -> None:
    tools = read_definitions([("tools.json", json.dumps(FORMS[form]))])
    found = only("CP601", WRONG, tools)
    assert found.severity is Severity.ERROR
    assert "t has no argument amuont, did you mean amount?" in found.message
    assert (found.line, found.rule) == (5, "t[0]")
    assert "CP601" not in codes(policy(args="amount: {min: 0, max: 5}"), tools)


def shape(schema: Any, more: Any = None) -> Any:
    root = {"type": "object", "properties": {"a": schema}, **(more or {})}
    return definitions({"name": "t", "inputSchema": root})


NESTED = {
    "type": "object",
    "properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "required": ["lines"],
}
LINE = {
    "$defs": {"Line": {"type": "object", "properties": {"price": {"type": "number"}, "sub": {"$ref": "#/$defs/Line"}}}}
}


@pytest.mark.parametrize(
    ("bound", "code"),
    [
        ("a: {properties: {lines: {items: {properties: {prize: {min: 0, max: 1}}}}}}", "CP601"),
        ("a: {properties: {lines: {items: {properties: {price: {type: string}}}}}}", "CP602"),
        ("a: {properties: {lines: {items: {type: string}}}}", "CP602"),
        ("a: {properties: {line: {type: array}}}", "CP601"),
        ("a: {properties: {}}", "CP603"),
    ],
)
def test_schemas_are_followed_into_lists_objects_and_local_references(bound: str, code: str) -> None:
    assert code in codes(policy(args=bound), shape(NESTED, LINE))


def test_a_right_nested_rule_has_no_finding() -> None:
    bound = "a: {properties: {lines: {items: {properties: {price: {min: 0, max: 1}, sub: {properties: {}}}}}}}"
    assert not codes(policy(args=bound), shape(NESTED, LINE))


@pytest.mark.parametrize(
    ("schema", "bound", "impossible"),
    [
        ({"type": "string"}, "{min: 0, max: 1}", True),
        ({"type": ["string", "null"]}, "{pattern: '^a$'}", False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "{type: integer}", True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "{min: 0, max: 1}", False),
        ({"type": "integer"}, "{type: number, min: 0, max: 1}", False),
        ({"type": "number"}, "{type: integer, min: 0, max: 1}", False),
        ({"type": "number", "maximum": 10}, "{min: 11, max: 12}", True),
        ({"type": "number", "minimum": 10}, "{min: 0, max: 9}", True),
        ({"type": "number", "maximum": 10}, "{min: 10, max: 12}", False),
        ({"type": "string", "maxLength": 3}, "{min_length: 4}", True),
        ({"type": "array", "minItems": 3}, "{max_items: 2}", True),
        ({"enum": ["a", "b"]}, "{enum: [c]}", True),
        ({"enum": ["a", "b"]}, "{pattern: '^[c-d]$'}", True),
        ({"enum": ["a", "b"]}, "{pattern: '^[b-d]$'}", False),
        ({"const": 1}, "{const: 1}", False),
        ({"allOf": [{"type": "string"}, {"enum": ["a"]}]}, "{const: b}", True),
        ({"oneOf": [{"type": "number", "maximum": 5}, {"type": "number"}]}, "{min: 11, max: 12}", False),
        ({"type": "string", "nullable": True}, "{type: 'null'}", False),
        (True, "{type: string}", False),
        ({"type": "array", "items": {"type": "integer"}}, "{items: {type: string}}", True),
        ({"type": "array", "prefixItems": [{"type": "integer"}]}, "{items: {type: string}}", False),
    ],
)
def test_a_rule_that_can_never_match_the_schema_is_an_error(schema: Any, bound: str, impossible: bool) -> None:
    assert ("CP602" in codes(policy(args=f"a: {bound}"), shape(schema))) is impossible


def test_a_listed_value_that_never_comes_is_a_warning_with_the_known_ones() -> None:
    found = only("CP602", policy(args="a: {enum: [paly, shop]}"), shape({"enum": ["pay", "shop"]}))
    assert found.severity is Severity.WARNING
    assert "never takes 'paly'; it takes 'pay', 'shop'" in found.message


def test_a_tool_that_takes_other_arguments_on_purpose_makes_an_unknown_one_a_warning() -> None:
    assert (
        only("CP601", policy(args="b: {const: 1}"), shape({}, {"additionalProperties": True})).severity
        is Severity.WARNING
    )
    assert (
        only("CP601", policy(args="b: {const: 1}"), shape({}, {"additionalProperties": False})).severity
        is Severity.ERROR
    )
    bare = definitions({"name": "t", "inputSchema": {"type": "object"}})
    assert not codes(policy(args="b: {const: 1}"), bare)


def test_a_deny_with_a_misspelt_argument_is_an_error_too() -> None:
    assert "CP601" in codes(policy("{decision: deny, args: {b: {const: 1}}}"), shape({"type": "integer"}))


def test_history_and_catalog_are_checked_as_well() -> None:
    more = "history: [{match: {tool: t}, sum: b, max: 1, decision: deny}]\n"
    assert only("CP601", policy(args="a: {const: 1}", more=more), shape({})).rule == "history[0]"
    more = "history: [{match: {tool: t}, sum: a, max: 1, decision: deny}]\n"
    assert only("CP602", policy(args="a: {const: x}", more=more), shape({"type": "string"})).rule == "history[0]"
    catalog = "catalog: {t: {effect: read, resource_arg: b}}\n"
    assert only("CP601", policy(args="a: {const: 1}", catalog=catalog), shape({})).line == 2


@pytest.mark.parametrize("reference", ["https://evil.example/x.json", "other.json#/a", "#/$defs/none", "#anchor", 7])
def test_a_reference_that_is_not_followed_is_told_and_may_be_anything(reference: Any) -> None:
    tools = shape({"$ref": reference})
    assert tools.tools["t"].at(["a"]) == ANYTHING
    assert codes(policy(args="a: {const: 1}"), tools) == {"CP606"}


def test_a_schema_without_end_is_read_to_one() -> None:
    deep: Any = {"type": "string"}
    for _ in range(200):
        deep = {"anyOf": [deep, deep]}
    text = json.dumps({"name": "t", "inputSchema": {"properties": {"a": {"$ref": "#"}}, "$defs": {}}})
    assert read_definitions([("f", text)]).tools["t"].shape is not None
    ring = {"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}}
    assert shape({"$ref": "#/$defs/x"}, ring).tools["t"].at(["a"]) == ANYTHING
    wide: Any = {"anyOf": [{"$ref": "#/$defs/0"}] * 9}
    doubling = {"$defs": {str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}] * 9} for n in range(20)}}
    assert "too deep or too large" in shape(wide, doubling).tools["t"].problems[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "this is not JSON"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"tools": 5}', "no tools are in here"),
        ("{}", "no tools are in here"),
        ("[1]", "no tool definition"),
        ('[{"inputSchema": {}}]', "has no name"),
        ('[{"name": "t", "inputSchema": 5}]', "is no object"),
        ('[{"name": "t", "inputSchema": {}}, {"name": "t", "inputSchema": {"type": "object"}}]', "defined twice"),
        ("[NaN]", "no JSON number"),
        ("[" * 100_000, "JSON"),
        ("[" * 200 + "]" * 200, "nested more than 128 deep"),
    ],
)
def test_a_file_that_can_not_be_used_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said) as error:
        read_definitions([("tools.json", text)])
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("tools.json:")


def test_what_no_guard_can_hold_is_told_and_left_out() -> None:
    entries = [
        {"type": "web_search"},
        {"name": "has space", "inputSchema": {}},
        {"type": "bash_20250124", "name": "bash"},
    ]
    tools = read_definitions([("f", json.dumps({"tools": entries, "nextCursor": "x"}))])
    assert list(tools.tools) == ["bash"]
    told = [problem for _, problem in tools.problems]
    assert ["nextCursor" in told[0], "its provider runs it" in told[1], "has space" in told[2]] == [True] * 3


HARD = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "pattern": "^a(?=b)$", "maxLength": 5},
        "p": {"type": "string", "pattern": "^[a-z]+$"},
        "search": {"type": "string", "pattern": "abc"},
        "n": {"type": "number", "minimum": 5, "maximum": 1},
        "e": {"enum": ["no", 1, None, "\u2028\U0001f600", "a: b"]},
        "both": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "true": {"type": "boolean"},
        "weird: #name": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        "big": {"type": "integer", "maximum": 10**30},
        "l": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
    },
    "required": ["n"],
}


def test_a_starting_policy_loads_and_has_no_error() -> None:
    tools = definitions(
        {"name": "null", "inputSchema": {"type": "object"}},
        {"name": "a:b#c", "inputSchema": HARD, "annotations": {"readOnlyHint": True}},
        {"name": "run", "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}}},
        {"name": "odd"},
    )
    text = starting_policy(tools, "start")
    made = loads([("start.yaml", text)])
    assert set(made.tools) == set(tools.tools) == set(made.catalog or {})
    assert not made.warnings
    assert not [found for found in check([("start.yaml", text)], tools) if found.severity is Severity.ERROR]
    args = made.tools["a:b#c"].rules[0].args
    assert list(args) == list(HARD["properties"])
    assert [args[name].pattern for name in ("s", "p", "search")] == [None, "^[a-z]+$", None]
    assert (args["s"].max_length, args["big"].max, args["true"].type) == (5, 10**30, "boolean")
    assert args["e"].enum == ("no", 1, None, "\u2028\U0001f600", "a: b")
    assert "# the server says: read" in text


def test_a_starting_policy_lets_nothing_run_without_a_person() -> None:
    made = loads([("p.yaml", starting_policy(definitions({"name": "t", "inputSchema": SCHEMA}), "p"))])
    assert not made.tools["t"].allows
    assert made.facts("t").irreversible
    assert [rule.over for rule in made.bounding("t")] == ["run", "client"]


def test_no_tools_make_no_policy() -> None:
    with pytest.raises(PolicyError, match="no tool"):
        starting_policy(read_definitions([("f", '{"tools": []}')]), "p")
