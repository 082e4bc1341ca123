"""Two ways to read a payload, one answer: the expression for the usual spelling, and strict JSON with its reader."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Refusal
from carnet.token._spelling import read_usual
from carnet.token.claims import Claims, detail, from_payload, to_payload
from carnet.token.gate import parse_object
from carnet.token.names import DELEGATION
from tests.token.making import AUD, child, root

PLAIN = replace(child(), authorization_details=())
BARE = replace(PLAIN, delegation=replace(PLAIN.delegation, payload_sha256=None))
KINDS = [PLAIN, BARE, child(), child(level=1, jkt="k" * 43)]


def text_of(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def read_strictly(raw: bytes) -> Claims | Refusal:
    payload = parse_object(raw, "payload")
    return payload if isinstance(payload, Refusal) else from_payload(payload)


def agree(raw: bytes) -> None:
    usual = read_usual(raw)
    assert usual is None or usual == read_strictly(raw)


@pytest.mark.parametrize("claims", KINDS)
def test_what_is_minted_is_read_at_once_and_as_it_was(claims: Claims) -> None:
    raw = text_of(to_payload(claims))
    assert read_usual(raw) == claims == read_strictly(raw)


def test_a_root_token_is_left_to_the_reader() -> None:
    assert read_usual(text_of(to_payload(root()))) is None


def test_another_spelling_of_the_same_claims_is_left_to_the_reader() -> None:
    payload = to_payload(PLAIN)
    spelled = [
        json.dumps(payload, sort_keys=True).encode(),
        json.dumps(payload, separators=(",", ":")).encode(),
        text_of(payload).replace(b'"acme"', b'"\\u0061cme"'),
        text_of(payload) + b" ",
    ]
    for raw in spelled:
        assert read_usual(raw) is None
        assert read_strictly(raw) == PLAIN


@pytest.mark.parametrize(
    ("found", "put"),
    [
        (b'"iss":"', b'"iss":"https://evil.example","iss":"'),
        (b'"depth":1', b'"depth":2'),
        (b'"depth":1', b'"depth":01'),
        (b'"level":0', b'"level":3'),
        (b'"level":0', b'"level":0.0'),
        (b'"resource_limit":3', b'"resource_limit":null'),
        (b'"resource_limit":3', b'"resource_limit":-0'),
        (b'"resource_limit":3', b'"resource_limit":9999999999'),
        (b'"version":3', b'"version":true'),
        (b'"scope":"read_ticket refund"', b'"scope":"refund refund"'),
        (b'"scope":"read_ticket refund"', b'"scope":"refund "'),
        (b'"tenant":"acme"', b'"tenant":"ACME"'),
        (b'"tenant":"acme"', b'"tenant":"acme\\n"'),
        (b'"researcher","', b'"other","'),
        (b'"agent":"researcher"', b'"agent":"research\xc3\xa9r"'),
        (b'"txn":"dlg_run', b'"txn":"dlg_kid'),
        (b'"chain":[[', b'"chain":[["dlg_x","a","b"],['),
        (b'"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"', b'"trace_id":"' + b"0" * 32 + b'"'),
        (b'"constraints"', b'"constraints":{},"constraints"'),
    ],
)
def test_a_fault_is_never_read_at_once(found: bytes, put: bytes) -> None:
    usual = text_of(to_payload(child()))
    raw = usual.replace(found, put, 1)
    assert raw != usual
    assert read_usual(raw) is None
    assert isinstance(read_strictly(raw), Refusal)


@pytest.mark.parametrize("times", [(5, 4, 9), (5, 5, 5), (5, 9, 8), (2**33, 2**33, 2**33 + 1)])
def test_times_out_of_order_or_range_are_never_read_at_once(times: tuple[int, int, int]) -> None:
    iat, nbf, exp = times
    raw = text_of(to_payload(replace(PLAIN, iat=iat, nbf=nbf, exp=exp)))
    assert read_usual(raw) is None
    assert isinstance(read_strictly(raw), Refusal)


def test_a_delegation_that_is_its_own_run_is_never_read_at_once() -> None:
    payload = to_payload(PLAIN)
    own = payload[DELEGATION]["chain"][1][0]
    raw = text_of(payload).replace(PLAIN.txn.encode(), own.encode())
    assert read_usual(raw) is None
    assert isinstance(read_strictly(raw), Refusal)


@given(st.sampled_from(KINDS), st.data())
def test_any_edit_of_a_few_bytes_gets_one_answer(claims: Claims, data: st.DataObject) -> None:
    raw = bytearray(text_of(to_payload(claims)))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        until = data.draw(st.integers(at, min(len(raw), at + 4)))
        raw[at:until] = data.draw(st.sampled_from([b"", b'"', b"\\", b"0", b"1", b"9", b"]", b"}", b",", b" ", b"a"]))
    agree(bytes(raw))


@given(st.sampled_from(KINDS), st.data())
def test_any_swapped_value_gets_one_answer(claims: Claims, data: st.DataObject) -> None:
    payload = to_payload(claims)
    where = data.draw(st.sampled_from([payload, payload[DELEGATION], payload[DELEGATION]["policy"], payload["act"]]))
    name = data.draw(st.sampled_from(sorted(where)))
    where[name] = data.draw(st.none() | st.booleans() | st.integers(-1, 2**34) | st.text(max_size=8) | st.just([]))
    agree(text_of(payload))


@given(
    st.recursive(st.integers(-9, 9) | st.text(max_size=4), lambda inner: st.dictionaries(st.text(max_size=3), inner))
)
def test_any_ceiling_gets_one_answer(value: Any) -> None:
    made = replace(child(), authorization_details=(detail(AUD, "refund", {"amount": value}, 1),))
    agree(text_of(to_payload(made)))


@pytest.mark.parametrize("depth", range(1, 14))
def test_ceilings_are_as_deep_as_in_any_other_spelling(depth: int) -> None:
    value: Any = {}
    for _ in range(depth):
        value = {"a": value}
    raw = text_of(to_payload(replace(child(), authorization_details=(detail(AUD, "refund", value),))))
    strict = read_strictly(raw)
    assert read_usual(raw) == (None if isinstance(strict, Refusal) else strict)
