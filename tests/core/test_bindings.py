"""What an approval is bound to, and which business objects a call touches."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Reason, Refusal
from carnet_broker.core.digests import envelope_digest, envelope_document, payload_digest
from carnet_broker.core.resources import exceeds, read_resources
from tests.core.world import envelope

BOUND: dict[str, Any] = {
    "run": "dlg_run",
    "parent": "dlg_run",
    "agent": "worker",
    "envelope": envelope(level=2, tools=("refund",), resource_limit=1),
    "payload_sha256": None,
    "policy_digest": "p",
    "jkt": None,
}
CHANGES: list[dict[str, Any]] = [
    {"run": "dlg_other"},
    {"parent": "dlg_other"},
    {"agent": "other"},
    {"payload_sha256": "0" * 64},
    {"policy_digest": "q"},
    {"jkt": "k"},
    *(
        {"envelope": envelope(**{"level": 2, "tools": ("refund",), "resource_limit": 1, **change})}
        for change in (
            {"level": 1},
            {"tools": ("refund", "send_email")},
            {"ceilings": {"refund": {"max_calls": 1}}},
            {"credential_ttl_seconds": 299},
            {"approval_required": True},
            {"resource_limit": 2},
            {"tenant": "other"},
        )
    ),
]


@pytest.mark.parametrize("change", CHANGES, ids=repr)
def test_an_approval_is_bound_to_every_fact_a_person_saw(change: dict[str, Any]) -> None:
    assert envelope_digest(**(BOUND | change)) != envelope_digest(**BOUND)


def test_the_same_request_again_has_the_same_digest_whatever_its_trace() -> None:
    traced = envelope(level=2, tools=("refund",), resource_limit=1, trace_id="4bf92f3577b34da6a3ce929d0e0e4736")
    assert envelope_digest(**(BOUND | {"envelope": traced})) == envelope_digest(**BOUND)


def test_an_envelope_reads_as_the_wire_says() -> None:
    assert list(envelope_document(envelope())) == [
        "level",
        "tools",
        "ceilings",
        "credential_ttl_seconds",
        "approval_required",
        "resource_limit",
        "tenant",
        "trace_id",
    ]


def test_a_payload_is_bound_whatever_the_order_of_its_members() -> None:
    assert payload_digest({"a": 1, "b": [1]}) == payload_digest({"b": [1], "a": 1})
    assert payload_digest({"a": 1}) != payload_digest({"a": 1.0})
    assert payload_digest({"a": 1}) != payload_digest({"a": "1"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        payload_digest(float("nan"))


def test_ids_are_read_from_strings_integers_and_lists() -> None:
    assert read_resources({"a": 1}, None) == ()
    assert read_resources({"id": "cust_1"}, "id") == ("cust_1",)
    assert read_resources({"id": 7}, "id") == ("7",)
    assert read_resources({"id": ["b", "a", "b", 7]}, "id") == ("b", "a", "7")


@pytest.mark.parametrize(
    "value", [None, True, 1.0, "", [], [None], ["a", ""], [["a"]], {"a": 1}, "x" * 257, 2**53, [True]], ids=repr
)
def test_what_is_no_id_refuses_the_call(value: object) -> None:
    refused = read_resources({"id": value}, "id")
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.RESOURCE_UNREADABLE
    missing = read_resources({}, "id")
    assert isinstance(missing, Refusal)


ids = st.one_of(st.integers(-(10**6), 10**6), st.text('0123456789-"ab', min_size=1, max_size=4))


@given(st.lists(ids, min_size=1, max_size=6))
def test_two_different_ids_never_read_alike(values: list[int | str]) -> None:
    found = read_resources({"id": values}, "id")
    assert not isinstance(found, Refusal)
    assert len(found) == len({(type(value), value) for value in values})


def test_a_limit_counts_distinct_ids_with_those_seen_before() -> None:
    assert exceeds(None, (), 0, ("a", "b")) is None
    assert exceeds(2, {"a"}, 1, ("a", "b")) is None
    refused = exceeds(2, {"a", "b"}, 2, ("c",))
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.RESOURCE_LIMIT
    assert isinstance(exceeds(0, (), 0, ("a",)), Refusal)
    assert exceeds(0, (), 0, ()) is None
