"""What a token covers: its scope, less what was taken away, within its ceilings."""

from dataclasses import replace
from typing import Any

import pytest

from carnet.reasons import Reason
from carnet.token.claims import Claims, detail
from carnet.token.clear import clear
from tests.token.making import AUD, DLG, NOW, RUN, child, root


def reason(claims: Claims, tool: str, args: dict[str, Any], revoked: dict[str, int] | None = None) -> Reason | None:
    refused = clear(claims, tool, args, revoked=revoked or {})
    return None if refused is None else refused.reason


def limited(constraints: dict[str, Any]) -> Claims:
    return replace(child(), authorization_details=(detail(AUD, "refund", constraints),))


def test_a_tool_of_the_scope_is_clear_and_no_other() -> None:
    assert reason(child(), "read_ticket", {"id": 7}) is None
    assert reason(child(), "send_email", {}) is Reason.SCOPE_MISSING
    assert reason(child(), "read_ticket refund", {}) is Reason.SCOPE_MISSING
    assert reason(child(), "READ_TICKET", {}) is Reason.SCOPE_MISSING
    assert reason(child(), "", {}) is Reason.SCOPE_MISSING


def test_a_root_token_covers_nothing() -> None:
    assert reason(root(), "read_ticket", {}) is Reason.ROOT_TOKEN


@pytest.mark.parametrize("owner", [DLG, RUN])
def test_a_tool_taken_from_the_delegation_or_an_ancestor_is_gone_and_others_stay(owner: str) -> None:
    gone = {f"tool:{owner}/refund": NOW}
    assert reason(child(), "refund", {"amount": 1}, gone) is Reason.REVOKED
    assert reason(child(), "read_ticket", {}, gone) is None
    assert reason(child(), "refund", {"amount": 1}, {f"tool:{owner}/refund": NOW - 1}) is None
    assert reason(child(), "refund", {"amount": 1}, {"tool:dlg_other/refund": 2**33}) is None


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"amount": 20}, None),
        ({"amount": 19.99}, None),
        ({"amount": 20.01}, Reason.CEILING_EXCEEDED),
        ({"amount": "20"}, Reason.CEILING_EXCEEDED),
        ({"amount": True}, Reason.CEILING_EXCEEDED),
        ({"amount": None}, Reason.CEILING_EXCEEDED),
        ({"amount": float("nan")}, Reason.CEILING_EXCEEDED),
        ({"amount": [1]}, Reason.CEILING_EXCEEDED),
        ({}, Reason.CEILING_EXCEEDED),
        ({"Amount": 1}, Reason.CEILING_EXCEEDED),
        ({"amount": 1, "note": "not bounded"}, None),
    ],
)
def test_a_ceiling_bounds_its_argument_and_fails_closed(args: dict[str, Any], expected: Reason | None) -> None:
    assert reason(child(), "refund", args) is expected


@pytest.mark.parametrize(
    "unreadable",
    [
        {"amount": {"maximum": 5}},
        {"amount": {"max": "5"}},
        {"amount": {"pattern": "("}},
        {"amount": {"min": 2, "max": 1}},
    ],
)
def test_a_ceiling_that_cannot_be_read_lets_no_call_through(unreadable: dict[str, Any]) -> None:
    assert reason(limited(unreadable), "refund", {"amount": 1}) is Reason.CEILING_EXCEEDED
    assert reason(limited(unreadable), "read_ticket", {}) is None


def test_a_ceiling_without_constraints_bounds_no_argument() -> None:
    assert reason(limited({}), "refund", {"amount": 10**6}) is None
