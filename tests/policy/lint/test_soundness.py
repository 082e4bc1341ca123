"""What lint says for certain is so: drawn rules, schemas and calls never prove it wrong."""

import contextlib
import json
from typing import Any

import jsonschema_rs
from hypothesis import assume, given
from hypothesis import strategies as st

from carnet_policy import Call, Effect, PolicyError, evaluate, from_mapping
from carnet_policy.judging import Reading, compile_judge
from carnet_policy.lint import check
from carnet_policy.lint.atoms import ANY, atoms_of
from carnet_policy.lint.disjoint import apart
from carnet_policy.lint.implication import covers
from carnet_policy.lint.impossible import impossible
from carnet_policy.pattern import BadPattern, compile_pattern
from carnet_policy.tooldefs import read_definitions
from tests.policy.tooling.drawing import ARGS, CONSTRAINTS, POLICIES, RULES, VALUES

JSON_VALUES = VALUES.filter(lambda value: "NaN" not in json.dumps(value))
CALLS = st.lists(ARGS, min_size=1, max_size=20)
_SCALAR = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])
_LEAF = st.fixed_dictionaries(
    {},
    optional={
        "type": _SCALAR | st.lists(_SCALAR, min_size=1, max_size=3, unique=True),
        "minimum": st.sampled_from([0, 1, 2.5]),
        "maximum": st.sampled_from([1, 2, 5]),
        "exclusiveMinimum": st.sampled_from([0, 1]),
        "maxLength": st.integers(0, 2),
        "minLength": st.integers(0, 2),
        "enum": st.lists(st.sampled_from([None, True, 1, 1.0, 2.5, "x", ["x"]]), min_size=1, max_size=3),
    },
)
SCHEMAS = st.recursive(
    _LEAF | st.booleans(),
    lambda inner: st.one_of(
        st.builds(lambda leaf, word, options: {**leaf, word: options}, st.just({}), st.sampled_from(["anyOf", "allOf"]),
                  st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda one: {"items": one}, inner),
        st.builds(lambda names: {"properties": names}, st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
        st.builds(lambda leaf: {**leaf, "$ref": "#/$defs/d"}, _LEAF),
    ),
    max_leaves=5,
)  # fmt: skip


def rules_of(*rules: dict[str, Any]) -> Any:
    try:
        return from_mapping({"version": 1, "tools": {"t": list(rules)}})
    except PolicyError:
        assume(False)
        raise


@given(RULES, RULES, CALLS)
def test_a_rule_that_is_said_never_to_answer_changes_no_decision(wide: Any, narrow: Any, calls: Any) -> None:
    both, alone = rules_of(wide, narrow), rules_of(wide)
    first, second = both.tools["t"].rules
    if covers(first, second):
        for args in calls:
            call = Call("t", args)
            assert evaluate(both, call, None).effect is evaluate(alone, call, None).effect, args


@given(RULES, RULES, CALLS)
def test_rules_that_are_said_to_be_apart_never_match_together(one: Any, other: Any, calls: Any) -> None:
    first, second = rules_of(one, other).tools["t"].rules
    if apart(first.args, second.args):
        assert not any(first.matches(args) is True and second.matches(args) is True for args in calls)


@given(CONSTRAINTS, SCHEMAS, _LEAF, st.lists(JSON_VALUES, min_size=1, max_size=30))
def test_a_constraint_that_is_said_never_to_match_matches_nothing_that_the_schema_takes(
    constraint: Any, schema: Any, referred: Any, values: Any
) -> None:
    rule = rules_of({"decision": "allow", "args": {"a": constraint}}).tools["t"].rules[0].args["a"]
    document = {"type": "object", "properties": {"a": schema}, "$defs": {"d": referred}}
    shape = read_definitions([("f", json.dumps([{"name": "t", "inputSchema": document}]))]).tools["t"].at(["a"])
    assert shape is not None
    valid = jsonschema_rs.Draft202012Validator(document, offline=True).is_valid
    judge = compile_judge(rule, Reading.CLOSED)
    why = impossible(rule, shape, Effect.ALLOW)
    for value in values:
        # 1.0 is the listed 1 to a schema, and another value to a policy
        if why is not None and valid({"a": value}):
            assert judge(value) is not True or isinstance(value, float), (value, why)


@given(POLICIES)
def test_lint_never_fails_on_what_loads(policy: Any) -> None:
    found = check(policy.texts)
    assert not {"CP001", "CP002"} & {finding.code.id for finding in found}
    # what the loader warns of is never missing among the findings
    assert len(found) >= len(policy.warnings)


@given(st.text(max_size=60) | st.text("{}[]:-,&* \n'\"abtools", max_size=60).map(lambda text: f"version: 1\n{text}"))
def test_lint_never_fails_on_any_text(text: str) -> None:
    check([("p.yaml", text)])


PIECES = st.lists(
    st.sampled_from(["a", ".", r"\.", "[a-c]", "[^a]", r"\w", r"\p{L}", r"[\p{L}-]", "(?:", "(", ")", "|", "*", "+",
                     "?", "{2}", "{1,3}", "^", "$", r"\S", "(?s)", "(?i:", r"\x41", r"\u0041", "[]a]", r"[\]\\]"]),
    max_size=8,
)  # fmt: skip


@given(PIECES, st.text("aAbé.\n]\\x", max_size=5))
def test_every_character_of_a_matching_text_is_admitted_by_some_atom(pieces: list[str], text: str) -> None:
    source = "".join(pieces)
    matcher = None
    with contextlib.suppress(BadPattern):
        matcher = compile_pattern(source)
    if matcher is None:
        return
    atoms = atoms_of(source)
    if not matcher.folds and matcher.matches(text):
        admitted = frozenset[str]().union(*(atom.chars for atom in atoms))
        assert not (set(text) & ANY) - admitted, (source, text)
