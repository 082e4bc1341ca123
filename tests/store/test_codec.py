"""Rows and bytes: the same value back for every value, an error for every damage."""

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.audit import Record
from carnet_broker.core.rows import Approval, Call, Delegation, PolicyInForce
from carnet_broker.store.base import Unavailable
from carnet_broker.store.codec import Corrupt, Stored, decode, encode
from tests.store.making import approval, call, delegation, policy, record

KINDS = (Delegation, Approval, Call, PolicyInForce, Record)
TEXT = st.text(max_size=6)
NUMBER = st.integers(-(2**63), 2**63 - 1)
SCALAR = st.none() | st.booleans() | NUMBER | TEXT | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2), max_leaves=5
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return st.none() | values(next(part for part in parts if part is not NoneType))
    if origin is tuple and parts[-1] is Ellipsis:
        return st.lists(values(parts[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, parts))
    if origin is Mapping:
        return st.dictionaries(TEXT, PLAIN if parts[1] is Any else values(parts[1]), max_size=2)
    if hint in (str, int, bool):
        return {str: TEXT, int: NUMBER, bool: st.booleans()}[hint]
    if issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    return rows(hint)


def rows(kind: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: values(hints[field.name]) for field in fields(kind)})


@given(st.sampled_from(KINDS).flatmap(rows))
def test_every_row_comes_back_the_same(row: Stored) -> None:
    kind: Any = type(row)
    again = decode(kind, encode(row))
    assert again == row
    assert repr(again) == repr(row)  # == lets 1, 1.0 and True be the same


def test_what_the_store_gives_replaces_what_was_encoded() -> None:
    assert decode(Record, encode(record()), seq=7).seq == 7
    assert decode(Call, encode(call()), ledger_version=5).ledger_version == 5


EXAMPLES: tuple[Stored, ...] = (delegation(), approval(), call(), policy(), record())


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: type(row).__name__)
def test_a_missing_unknown_or_mistyped_field_is_an_error(row: Stored) -> None:
    kind: Any = type(row)
    members = orjson.loads(encode(row))
    for name in members:
        for damaged in (
            {key: value for key, value in members.items() if key != name},
            members | {name: [[1]]},
            members | {name: 1.5},
            members | {name + "_": 1},
        ):
            with pytest.raises(Corrupt):
                decode(kind, orjson.dumps(damaged))


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff", b"{}", b'"x"'])
def test_what_is_no_row_is_an_error(body: bytes) -> None:
    with pytest.raises(Corrupt, match="backup"):
        decode(Call, body)


def test_an_unreadable_row_counts_as_no_answer() -> None:
    assert issubclass(Corrupt, Unavailable)


def test_an_unknown_state_is_an_error() -> None:
    body = encode(call()).replace(b'"running"', b'"allowed"')
    with pytest.raises(Corrupt, match="allowed"):
        decode(Call, body)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, b"x", object(), 2**64, "\ud800", {1: 2}, [float("nan")]]
)
def test_what_json_cannot_hold_exactly_is_not_stored(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode(delegation(facts={"x": {"y": value}}))
