"""Calls through the guard against a real broker: both lanes, approvals, refusals, revocation."""

import pytest

from carnet import Guard, Refused
from carnet.testing import CarnetBroker


def test_a_read_tool_runs_in_the_local_lane_and_is_on_record(carnet_broker: CarnetBroker) -> None:
    guard = carnet_broker.bind(Guard("desk"))

    @guard.tool
    def search(query: str, limit: int = 5) -> str:
        return f"{query} {limit}"

    with carnet_broker.child(tools=["search"], level=0):
        assert search("late parcels") == "late parcels 5"
        with pytest.raises(Refused) as caught:
            search("x" * 201)
    assert caught.value.reason.value == "no_match"
    kinds = [(row["kind"], row["decision"], row["outcome"]) for row in carnet_broker.records(tool="search")]
    assert ("call_intent", "allow", None) in kinds
    assert ("call_decided", "deny", None) in kinds
