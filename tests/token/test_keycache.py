"""The cache in front of an issuer's keys: floods cost nothing, failures take nothing away."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from carnet.clock import ManualClock
from carnet.token.keycache import KeyCache
from carnet_broker.keys import KeyRing


class Issuer:
    """An issuer whose key set document can be anything, and which counts how often it is asked."""

    def __init__(self) -> None:
        self.ring = KeyRing.ephemeral()
        self.fetches = 0
        self.fault: Exception | None = None
        self.document: Any = None
        self.clock = ManualClock()

    def fetch(self) -> Any:
        self.fetches += 1
        if self.fault is not None:
            raise self.fault
        return self.ring.jwks() if self.document is None else self.document

    def cache(self) -> KeyCache:
        return KeyCache(self.fetch, self.clock.mono)


def test_a_known_kid_is_fetched_once() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    for _ in range(50):
        key = cache.find(issuer.ring.active.kid)
        assert key is not None
        assert key.kid == issuer.ring.active.kid
    assert issuer.fetches == 1


def test_two_hundred_unknown_kids_in_twenty_seconds_cost_at_most_three_fetches() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    for number in range(200):
        assert cache.find(f"unknown-{number}") is None
        issuer.clock.advance(0.1)
    assert issuer.fetches <= 3
    assert cache.find(issuer.ring.active.kid) is not None


def test_a_flood_from_many_threads_is_one_fetch() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(cache.find, (f"unknown-{number}" for number in range(200))))
    assert found == [None] * 200
    assert issuer.fetches == 1


def test_a_rotated_key_is_known_before_it_signs() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    assert cache.find(issuer.ring.active.kid) is not None
    issuer.ring.rotate(0)
    assert cache.find(issuer.ring.active.kid) is not None
    assert issuer.fetches == 1


def test_a_kid_that_was_unknown_is_found_after_the_pause() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    cache.find("unknown")
    issuer.ring.rotate(0)
    issuer.ring.rotate(0)
    assert cache.find(issuer.ring.active.kid) is None
    issuer.clock.advance(10)
    assert cache.find(issuer.ring.active.kid) is not None


def test_failures_and_bad_documents_take_no_good_key_away() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    kid = issuer.ring.active.kid
    assert cache.find(kid) is not None
    for fault, document in (
        (OSError("down"), None),
        (ValueError("no JSON"), None),
        (RuntimeError("a transport's own"), None),
        (None, {"keys": []}),
        (None, "<html>"),
        (None, {"keys": [{"kty": "oct", "k": "AAAA"}]}),
    ):
        issuer.fault, issuer.document = fault, document
        issuer.clock.advance(400)
        assert cache.find(kid) is not None
        assert cache.find("unknown") is None
        assert cache.problem
        assert kid in cache.current.kids
    issuer.fault = issuer.document = None
    issuer.clock.advance(10)
    assert cache.refresh()
    assert cache.problem == ""


def test_an_issuer_that_never_answered_leaves_an_empty_set() -> None:
    issuer = Issuer()
    issuer.fault = OSError("down")
    cache = issuer.cache()
    assert cache.find(issuer.ring.active.kid) is None
    assert len(cache.current) == 0


def test_a_retired_key_is_forgotten_within_five_minutes() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    old = issuer.ring.active.kid
    assert cache.find(old) is not None
    issuer.ring.rotate(0)
    issuer.ring.retire(old)
    issuer.clock.advance(301)
    assert cache.find(old) is None


def test_a_withdrawn_key_stays_away_whatever_the_issuer_says() -> None:
    issuer = Issuer()
    cache = issuer.cache()
    kid = issuer.ring.active.kid
    assert cache.find(kid) is not None
    cache.withdraw([kid])
    assert cache.find(kid) is None
    issuer.clock.advance(11)
    assert cache.find(kid) is None
    assert kid not in repr(cache)


def test_before_the_first_success_a_fetch_is_tried_again_soon_but_not_at_once() -> None:
    issuer = Issuer()
    issuer.fault = OSError("not up yet")
    cache = issuer.cache()
    for _ in range(100):  # 2 s
        assert not cache.refresh()
        issuer.clock.advance(0.02)
    assert 4 <= issuer.fetches <= 6
    issuer.fault = None
    issuer.clock.advance(0.4)
    assert cache.refresh()
    fetches = issuer.fetches
    issuer.clock.advance(9)
    assert cache.find("unknown") is None
    assert issuer.fetches == fetches
