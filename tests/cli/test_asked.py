"""What is asked reads as words, and nothing of it is left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.cli.answering import show_approval
from carnet.cli.asked import envelope_words, task_words

TASK: dict[str, Any] = {"touches_pii": False, "touches_secrets": False, "reversible": False, "resource_count": 1}
ENVELOPE: dict[str, Any] = {
    "level": 2,
    "tools": ["get_invoice", "refund"],
    "ceilings": {"refund": {"args": {"amount": {"max": 20}}, "max_calls": 1}},
    "credential_ttl_seconds": 300,
    "approval_required": True,
    "resource_limit": 3,
    "tenant": "demo",
    "trace_id": "0" * 32,
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "1 resource, cannot be undone, touches no personal data, no secrets"),
        ({"resource_count": 0, "reversible": True}, "0 resources, can be undone, touches no personal data, no secrets"),
        ({"touches_pii": True}, "1 resource, cannot be undone, touches personal data, no secrets"),
        ({"touches_secrets": True}, "1 resource, cannot be undone, touches no personal data, but secrets"),
        (
            {"touches_pii": True, "touches_secrets": True},
            "1 resource, cannot be undone, touches personal data and secrets",
        ),
    ],
)
def test_a_task_is_told_in_words(change: dict[str, Any], words: str) -> None:
    assert task_words(TASK | change) == words
    assert task_words(TASK | change | {"tools": ["refund"]}) == f"{words}, for the tools refund"


def test_an_envelope_is_told_in_words() -> None:
    assert envelope_words(ENVELOPE) == "level 2: tools get_invoice refund for 300 s, at most 3 resources"
    assert envelope_words(ENVELOPE | {"resource_limit": None}).endswith("for 300 s, any number of resources")


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=4), max_size=2)


@given(st.sampled_from([*TASK, "tools"]), VALUES)
def test_a_task_that_is_not_as_expected_is_shown_as_it_came(name: str, value: Any) -> None:
    shown = task_words(TASK | {name: value})
    assert (name == "tools" or type(value) is type(TASK[name])) or shown.startswith("{")
    assert "\n" not in shown
    assert task_words({}) == "{}"


@given(st.sampled_from([*ENVELOPE]), VALUES)
def test_no_envelope_breaks_the_telling(name: str, value: Any) -> None:
    assert "\n" not in envelope_words(ENVELOPE | {name: value})
    assert envelope_words([1]) == "[1]"


def test_what_a_newer_broker_adds_is_shown() -> None:
    assert task_words(TASK | {"touches_money": True}).endswith(", touches_money true")
    assert envelope_words(ENVELOPE | {"region": "eu\u202e"}).endswith(", region eu\\u{202e}")


@pytest.mark.parametrize("state", ["pending", "approved"])
def test_an_approval_shows_the_words_and_the_bounds_of_each_call(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show_approval({"id": "apr_1", "kind": "delegation", "state": state, "task": TASK, "envelope": ENVELOPE})
    shown = capsys.readouterr().out
    assert "1 resource, cannot be undone, touches no personal data, no secrets\n" in shown
    assert "level 2: tools get_invoice refund for 300 s, at most 3 resources\n" in shown
    assert '"max": 20' in shown
    assert "touches_pii" not in shown
    assert "credential_ttl_seconds" not in shown
    assert ("without" in shown.lower() or "each call still asks" in shown) is (state == "pending")
