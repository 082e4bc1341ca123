"""The feed's state machine and the arithmetic of freshness: pure, so every order of events can be tried."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.guard.feed import Feed, Gap
from carnet.guard.freshness import Anchor, Freshness

DIGEST = "d" * 64


def part(seq: int, *marks: str, snapshot: bool = False, epoch: str = "e1", until: int = 100) -> dict[str, Any]:
    first = seq - len(marks) + 1
    entries = [
        {"seq": first + index, "mark": mark, "until": until, "reason": "revoked"} for index, mark in enumerate(marks)
    ]
    return {"epoch": epoch, "seq": seq, "snapshot": snapshot, "entries": entries}


def document(tenant: dict[str, Any], system: dict[str, Any] | None = None) -> dict[str, Any]:
    return {**tenant, "system": system or part(0, epoch="s1"), "policy_digest": DIGEST, "now": 5, "mono": 1.0}


def followed() -> Feed:
    feed = Feed()
    feed.take(document(part(2, "dlg:a", "dlg:b", snapshot=True), part(0, snapshot=True, epoch="s1")))
    return feed


def test_a_snapshot_then_entries_in_order() -> None:
    feed = followed()
    assert feed.whole
    assert feed.take(document(part(3, "dlg:c")))
    assert set(feed.tenant.until) == {"dlg:a", "dlg:b", "dlg:c"}
    assert not feed.take(document(part(3)))
    assert feed.position() == {"epoch": "e1", "after": 3, "system_epoch": "s1", "system_after": 0}


@pytest.mark.parametrize(
    "tenant",
    [
        part(4, "dlg:d"),
        part(3),
        part(1),
        part(2, "dlg:b"),
        part(3, "dlg:c", epoch="e2"),
        part(3, "dlg:c", epoch=""),
        {"epoch": "e1", "seq": 2},
        {"epoch": "e1", "seq": True, "entries": [], "snapshot": False},
        {"epoch": "e1", "seq": 3, "snapshot": False, "entries": [{"seq": 3, "mark": "dlg:c", "until": "never"}]},
        {"epoch": "e1", "seq": 3, "snapshot": False, "entries": [None]},
    ],
)
def test_a_gap_another_epoch_a_step_back_or_nonsense_breaks_the_feed(tenant: dict[str, Any]) -> None:
    feed = followed()
    with pytest.raises(Gap):
        feed.take(document(tenant))
    assert feed.position()["epoch"] == "", "only a snapshot helps"
    assert set(feed.tenant.until) >= {"dlg:a", "dlg:b"}, "what is known to be revoked stays known"
    feed.take(document(part(9, "dlg:z", snapshot=True, epoch="e2"), part(0, snapshot=True, epoch="s1")))
    assert set(feed.tenant.until) == {"dlg:z"}


def test_the_system_feed_breaks_it_too_and_withdraws_keys() -> None:
    feed = followed()
    feed.take(document(part(2), part(1, "key:abc", epoch="s1")))
    assert feed.withdrawn_keys() == ["abc"]
    with pytest.raises(Gap):
        feed.take(document(part(2), part(3, "key:d", epoch="s1")))
    assert not feed.whole
    with pytest.raises(Gap):
        followed().take({**document(part(2)), "system": None})


def test_a_heartbeat_says_that_nothing_came() -> None:
    feed = followed()
    feed.beat({"seq": 2, "policy_digest": "new"})
    assert feed.digest == "new"
    for seq in (1, 3):
        feed = followed()
        with pytest.raises(Gap):
            feed.beat({"seq": seq, "policy_digest": DIGEST})
        assert not feed.whole


def test_merging_takes_the_later_end_and_the_first_reason() -> None:
    feed = Feed()
    feed.take(document(part(1, "dlg:a", snapshot=True, until=50), part(0, snapshot=True, epoch="s1")))
    later = part(2, "dlg:a", until=40)
    later["entries"][0]["reason"] = "completed"
    feed.take(document(later))
    assert feed.tenant.until["dlg:a"] == 50
    assert feed.tenant.reasons["dlg:a"] == "revoked"


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=12), st.data())
def test_whatever_is_lost_no_revocation_is_missed_while_the_feed_is_whole(
    marks: list[str], data: st.DataObject
) -> None:
    """A broker with a log, a link that drops and repeats: a whole feed knows all up to its number."""
    feed = Feed()
    for number in range(len(marks) + 1):
        action = data.draw(st.sampled_from(["deliver", "drop", "stale"]))
        start = feed.tenant.seq if feed.whole else 0
        upto = max(0, number - 1) if action == "stale" else number
        names = [f"dlg:{mark}" for mark in marks[start:upto]]
        try:
            if action == "drop":
                continue
            if feed.whole:
                feed.take(document(part(upto, *names) if upto >= start else part(upto)))
            else:
                feed.take(document(part(upto, *names, snapshot=True), part(0, snapshot=True, epoch="s1")))
        except Gap:
            assert not feed.whole
        if feed.whole:
            assert set(feed.tenant.until) >= {f"dlg:{mark}" for mark in marks[: feed.tenant.seq]}


def test_freshness_counts_from_the_sending() -> None:
    fresh = Freshness()
    assert fresh.age(100.0) == float("inf")
    fresh.heard(as_of=10.0, wall=1000, received=10.3)
    assert fresh.age(11.0) == pytest.approx(1.0)
    assert fresh.wall(12.3) == 1002
    fresh.heard(as_of=9.0, wall=1000, received=10.4)
    assert fresh.age(11.0) == pytest.approx(1.0), "an older truth makes nothing younger, and nothing older"
    fresh.lose()
    assert fresh.age(11.0) == float("inf")


@given(
    sent=st.floats(0, 1e6),
    lag=st.floats(0, 10),
    offset=st.floats(-1e6, 1e6),
    waits=st.lists(st.floats(0, 100), min_size=1, max_size=10),
    delay=st.floats(0, 50),
)
def test_a_stream_never_looks_fresher_than_it_is(
    sent: float, lag: float, offset: float, waits: list[float], delay: float
) -> None:
    """offset: how far the broker's clock is from ours; lag: between our sending and the broker's first reading."""
    first = sent + lag + offset
    anchor, truth = Anchor(sent, first), sent + lag
    for wait in waits:
        truth += wait
        assert anchor.as_of(truth + offset) <= truth + 1e-3
        received = truth + delay
        fresh = Freshness()
        fresh.heard(anchor.as_of(truth + offset), 0, received)
        assert fresh.age(received) >= delay - 1e-3
