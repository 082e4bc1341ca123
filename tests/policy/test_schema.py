"""JSON Schema for payloads: closed words, local references, caps, and an answer in one sentence."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet_policy import PolicyError, Schema

EVENT = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "minLength": 1, "maxLength": 20, "pattern": "^[^\\n]*[^ ][^\\n]*$"},
        "context_ref": {"type": "string", "pattern": "^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$"},
    },
    "required": ["event"],
    "additionalProperties": False,
}


def test_it_accepts_what_fits() -> None:
    assert Schema.compile(EVENT).check({"event": "hello", "context_ref": "a/b"}) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "the value does not satisfy required"),
        ({"event": ""}, "event does not satisfy minLength"),
        ({"event": "x", "more": 1}, "additionalProperties"),
        ({"event": "x", "context_ref": "../secret\n"}, "context_ref does not satisfy pattern"),
        ({"event": 5}, "event does not satisfy type"),
        ([], "type"),
        (None, "type"),
        ({"event": float("nan")}, "not finite"),
        ({"event": "\ud800"}, "surrogate"),
        ({"event": 10**400}, "too large"),
        ({"event": "x" * 70_000}, "bytes"),
        ({"event": (1,)}, "tuple"),
        ({1: "x"}, "no string"),
        ({f"k{number}": 1 for number in range(2000)}, "keys"),
    ],
)
def test_it_says_what_is_wrong_and_never_the_value(value: Any, words: str) -> None:
    problem = Schema.compile(EVENT).check(value)
    assert problem is not None
    assert words in problem
    assert "secret" not in problem


def test_depth_is_capped_without_recursion() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert Schema.compile({}).check(deep) == "the value is nested more than 16 deep"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "http://127.0.0.1:9/x"}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "nothing is fetched"),
        ({"$ref": "#"}, "must begin with"),
        ({"$ref": "#/$defs/absent"}, "no JSON Schema"),
        ({"$id": "http://a.example/"}, "unknown keyword"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "must be"),
        ({"$dynamicRef": "#x"}, "unknown keyword"),
        ({"maxlength": 5}, "unknown keyword 'maxlength'"),
        ({"allOf": [{"maxlength": 5}]}, "#/allOf/0"),
        ({"$defs": {"a": {"x": 1}}}, "unknown keyword"),
        ({"type": "strin"}, "no JSON Schema"),
        ({"minLength": -1}, "no JSON Schema"),
        ({"pattern": "(?=a)"}, "look-around"),
        ({"pattern": "("}, "no JSON Schema"),
        ({"pattern": "(?s)a.b"}, "flag s"),
        ({"patternProperties": {"(?!a)": {}}}, "look-around"),
        ({"format": "colour"}, "unknown format"),
        ({"description": "x" * 70_000}, "bytes"),
        ({"const": (1,)}, "tuple"),
    ],
)
def test_it_does_not_compile(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(PolicyError, match="schema") as caught:
        Schema.compile(schema)
    assert words in caught.value.message


def test_local_references_and_formats_hold() -> None:
    schema = Schema.compile({"$defs": {"id": {"type": "string", "format": "uuid"}}, "items": {"$ref": "#/$defs/id"}})
    assert schema.check(["123e4567-e89b-12d3-a456-426614174000"]) is None
    assert schema.check(["nope"]) == "0 does not satisfy format"


@given(
    st.recursive(
        st.none() | st.floats() | st.text(max_size=5) | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    )
)
def test_any_value_gets_an_answer(value: object) -> None:
    assert isinstance(Schema.compile(EVENT).check(value), str | None)
