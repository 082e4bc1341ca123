"""The canonical form of arguments and its digest: published vectors, and what must hold for all arguments."""

import json
import unicodedata
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.arguments import MAX_BYTES, canonical, digest, parse
from carnet.reasons import Reason, Refusal
from tests.vectors import make

VECTORS: dict[str, Any] = json.loads(make.PATH.read_text())
BINDING: dict[str, str] = VECTORS["binding"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda n: n != 0)
    | st.text(max_size=12)
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
arguments = st.dictionaries(st.text(max_size=8), values, max_size=5)


def summed(args: dict[str, Any], **changes: str) -> str:
    made = digest(**{**BINDING, **changes}, args=args)
    assert isinstance(made, str), made
    return made


def test_the_script_reproduces_the_published_file_byte_for_byte() -> None:
    assert make.PATH.read_text(encoding="ascii") == make.text()


@pytest.mark.parametrize("vector", VECTORS["accepted"], ids=lambda vector: str(vector["name"]))
def test_a_published_vector_has_its_form_and_digest(vector: dict[str, str]) -> None:
    args = parse(vector["arguments"])
    assert isinstance(args, dict), args
    assert canonical(args) == vector["canonical"].encode()
    assert summed(args) == vector["digest"]


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: str(vector["name"]))
def test_a_published_refusal_is_refused_for_its_reason(vector: dict[str, str]) -> None:
    args = parse(vector["arguments"])
    refused = args if isinstance(args, Refusal) else canonical(args)
    assert isinstance(refused, Refusal)
    assert refused.reason.value == vector["reason"]


@given(arguments, st.randoms())
def test_the_order_of_members_means_nothing(args: dict[str, Any], random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, list):
            return [shuffled(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        members = list(value.items())
        random.shuffle(members)
        return {name: shuffled(inner) for name, inner in members}

    assert summed(shuffled(args)) == summed(args)


@given(arguments)
def test_the_canonical_form_reads_back_to_the_same_values_and_types(args: dict[str, Any]) -> None:
    body = canonical(args)
    assert isinstance(body, bytes)
    back = parse(body)
    assert repr(back) == repr(json.loads(body))
    assert isinstance(back, dict)
    assert canonical(back) == body
    assert typed(back) == typed(args)


def typed(value: Any) -> Any:
    """A value with its exact types: 1, 1.0 and True are equal in Python and are not the same argument."""
    if isinstance(value, dict):
        return {name: typed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    return type(value), value


@given(arguments, arguments)
def test_two_digests_are_equal_only_for_the_same_values(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (summed(one) == summed(other)) == (typed(one) == typed(other))


@given(st.text(min_size=1, max_size=8))
def test_normal_forms_of_text_stay_apart(text: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert (summed({"t": composed}) == summed({"t": decomposed})) == (composed == decomposed)


def test_numbers_of_other_types_and_text_differ() -> None:
    assert len({summed({"a": value}) for value in (1, 1.0, "1", True, [1], {"1": 1}, None)}) == 7


@pytest.mark.parametrize("name", sorted(BINDING))
def test_each_part_of_the_binding_changes_the_digest(name: str) -> None:
    assert summed({"a": 1}, **{name: BINDING[name] + "x"}) != summed({"a": 1})


def test_parts_cannot_flow_into_each_other() -> None:
    assert summed({}, tenant="ab", run="c") != summed({}, tenant="a", run="bc")
    assert summed({}, host="", tool="crmrefund") != summed({}, host="crm", tool="refund")


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        -0.0,
        2**53,
        b"x",
        date(2026, 1, 1),
        Decimal(1),
        (1,),
        {1},
        Colour.RED,
        {1: 2},
        "\ud800",
    ],
    ids=repr,
)
def test_what_is_no_plain_json_value_is_refused(value: Any) -> None:
    for args in ({"a": value}, {"a": [value]}, {"a": {"b": value}}):
        refused = canonical(args)
        assert isinstance(refused, Refusal)
        assert refused.reason is Reason.ARGUMENTS_INVALID
        assert isinstance(digest(**BINDING, args=args), Refusal)


def test_a_value_that_holds_itself_is_refused() -> None:
    args: dict[str, Any] = {}
    args["self"] = args
    refused = canonical(args)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.ARGUMENTS_TOO_LARGE


def test_the_limits_are_sixteen_deep_and_64_kibibytes() -> None:
    def nested(levels: int) -> dict[str, Any]:
        inner: Any = []
        for _ in range(levels - 2):
            inner = [inner]
        return {"a": inner}

    assert isinstance(canonical(nested(16)), bytes)
    assert isinstance(parse(json.dumps(nested(16))), dict)
    for wrong in (canonical(nested(17)), parse(json.dumps(nested(17)))):
        assert isinstance(wrong, Refusal)
        assert wrong.reason is Reason.ARGUMENTS_TOO_LARGE
    fits = {"a": "x" * (MAX_BYTES - 8)}
    body = canonical(fits)
    assert isinstance(body, bytes)
    assert len(body) == MAX_BYTES
    for wrong in (canonical({"a": fits["a"] + "x"}), parse(body + b" "), canonical({"a": [0] * MAX_BYTES})):
        assert isinstance(wrong, Refusal)
        assert wrong.reason is Reason.ARGUMENTS_TOO_LARGE


@given(st.binary(max_size=80) | st.text(max_size=80))
def test_parsing_never_raises(raw: bytes | str) -> None:
    assert isinstance(parse(raw), dict | Refusal)


def test_bytes_that_are_no_utf8_are_refused() -> None:
    for raw in (b'{"a":"\xff"}', b"\xff\xfe{\x00}\x00", '{"a":"\ud800"}'):
        assert isinstance(parse(raw), Refusal)


def test_a_tool_name_with_half_a_surrogate_pair_has_no_digest() -> None:
    assert isinstance(digest(**{**BINDING, "tool": "\ud800"}, args={}), Refusal)
