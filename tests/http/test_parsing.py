"""Forms, error texts, token buckets and addresses: the small pure parts."""

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import CATALOGUE, Reason, Refusal, Seen
from carnet_broker.http.errors import describe, oauth_error, problem
from carnet_broker.http.forms import parse_form
from carnet_broker.http.pace import Pace
from carnet_broker.http.render import dumps
from carnet_broker.http.sockets import address, is_loopback
from carnet_broker.service.views import PolicyRef

FORM = "application/x-www-form-urlencoded"
VISIBLE = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)


@given(st.dictionaries(VISIBLE, VISIBLE, max_size=10))
def test_a_form_comes_back_as_it_was_sent(fields: dict[str, str]) -> None:
    assert parse_form(FORM, urlencode(fields).encode()) == fields


@given(st.binary(max_size=200))
def test_no_bytes_break_the_form_parser(body: bytes) -> None:
    assert isinstance(parse_form(FORM, body), dict | Refusal)


@pytest.mark.parametrize(
    "body", [b"a=1&a=2", b"a=1&b=2&a=", b"a=%ff", b"a=%00", b"&".join([b"a%d=1" % n for n in range(40)])]
)
def test_a_form_with_two_readings_is_refused(body: bytes) -> None:
    assert isinstance(parse_form(FORM, body), Refusal)


def test_a_parameter_without_a_value_counts_as_absent() -> None:
    assert parse_form(FORM, b"a=&b=1") == {"b": "1"}


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/form-data"])
def test_only_form_bodies_are_forms(kind: str) -> None:
    assert isinstance(parse_form(kind, b"a=1"), Refusal)


@given(st.text())
def test_an_error_description_keeps_to_its_alphabet(text: str) -> None:
    allowed = {chr(c) for c in (*range(0x20, 0x22), *range(0x23, 0x5C), *range(0x5D, 0x7F))}
    assert set(describe(text)) <= allowed


@pytest.mark.parametrize("reason", list(Reason))
def test_a_reason_has_one_status_and_hidden_ones_one_text(reason: Reason) -> None:
    answer = problem(Refusal(reason, "canary detail"), "0" * 32)
    entry = CATALOGUE[reason]
    assert answer.status_code == entry.status
    body = bytes(answer.body)
    if entry.seen is Seen.AUDIT:
        same = problem(Refusal(Reason.TOKEN_SIGNATURE, "another"), "0" * 32)
        assert body == bytes(same.body)
        assert b"canary" not in body
        assert reason.value.encode() in bytes(problem(Refusal(reason), "0" * 32, guard=True).body)
    assert (answer.status_code in (429, 503)) == ("retry-after" in answer.headers)
    assert (answer.status_code == 401) == ("www-authenticate" in answer.headers)


@pytest.mark.parametrize("reason", list(Reason))
def test_oauth_errors_are_400_but_for_a_client_that_is_not_known(reason: Reason) -> None:
    answer = oauth_error(Refusal(reason))
    assert (answer.status_code == 401) == (reason is Reason.CLIENT_AUTH)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.status_code in (400, 401, 405, 413, 429, 500, 503)


def test_a_bucket_fills_again_with_time_and_is_kept_per_name() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0], burst=2, rate=1)
    assert [pace.allow("a"), pace.allow("a"), pace.allow("a"), pace.allow("b")] == [True, True, False, True]
    now[0] = 1.0
    assert [pace.allow("a"), pace.allow("a")] == [True, False]


def test_buckets_are_bounded_in_number() -> None:
    pace = Pace(lambda: 0.0, burst=1, rate=0, names=100)
    for number in range(1000):
        pace.allow(str(number))
    assert len(pace) == 100


@pytest.mark.parametrize(
    ("text", "where"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:80", ("::1", 80)), ("host.example:8420", ("host.example", 8420))],
)
def test_an_address_is_host_and_port(text: str, where: tuple[str, int]) -> None:
    assert address(text) == where


@pytest.mark.parametrize(
    "text", ["", ":80", "host", "host:", "host:port", "host:70000", "::1:80", "a b:1", "http://a:1"]
)
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="is not host:port"):
        address(text)


def test_only_addresses_that_cannot_leave_the_machine_are_loopback() -> None:
    assert all(is_loopback(host) for host in ("localhost", "127.0.0.1", "127.9.9.9", "::1"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "10.0.0.1", "::", "localhost.example.com"))


@given(st.recursive(st.none() | st.integers() | st.text(st.characters(codec="utf-8")), lambda inner: st.lists(inner)))
def test_every_json_value_can_be_answered(value: object) -> None:
    assert json.loads(dumps({"value": value, "set": frozenset({"a"})})) == {"value": value, "set": ["a"]}


def test_a_value_of_a_view_is_answered_whole_also_beside_a_large_integer() -> None:
    shown = PolicyRef(id="p", version=2**70, digest="d")
    assert json.loads(dumps({"policy": shown})) == {"policy": {"id": "p", "version": 2**70, "digest": "d"}}
