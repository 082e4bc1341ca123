"""The memory of verified tokens: a hit saves work and no check."""

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Reason, Refusal
from carnet.token.cache import Known, VerifiedCache
from carnet.token.claims import Claims, child_jti
from carnet.token.keyset import KeySet
from carnet.token.verify import verify
from tests.token.making import AUD, DLG, HOST, ISS, NOW, RING, child, minted, root

TOKEN = minted(child())
WARM = VerifiedCache(issuer=ISS, audience=AUD, host=HOST)


@pytest.fixture
def cache() -> VerifiedCache:
    return VerifiedCache(issuer=ISS, audience=AUD, host=HOST, size=4)


def refused(answer: Claims | Refusal) -> Reason:
    assert isinstance(answer, Refusal)
    return answer.reason


def test_a_hit_answers_the_same_claims(cache: VerifiedCache) -> None:
    first = cache.verify(TOKEN, keys=RING.keyset(), revoked={}, now=NOW)
    assert first == child()
    assert cache.verify(TOKEN, keys=RING.keyset(), revoked={}, now=NOW) is first


def test_a_hit_asks_expiry_revocation_and_key_again(cache: VerifiedCache) -> None:
    keys = RING.keyset()
    assert cache.verify(TOKEN, keys=keys, revoked={}, now=NOW) == child()
    assert refused(cache.verify(TOKEN, keys=keys, revoked={}, now=NOW + 905)) is Reason.TOKEN_EXPIRED
    assert refused(cache.verify(TOKEN, keys=keys, revoked={f"dlg:{DLG}": NOW}, now=NOW)) is Reason.REVOKED
    assert refused(cache.verify(TOKEN, keys=keys, revoked={"host:crm": NOW}, now=NOW)) is Reason.REVOKED
    assert refused(cache.verify(TOKEN, keys=KeySet(), revoked={}, now=NOW)) is Reason.TOKEN_KEY
    assert cache.verify(TOKEN, keys=keys, revoked={}, now=NOW) == child()


def test_a_token_that_was_dead_when_first_seen_is_refused_as_that_and_lives_only_if_it_may(
    cache: VerifiedCache,
) -> None:
    keys = RING.keyset()
    assert refused(cache.verify(TOKEN, keys=keys, revoked={}, now=NOW - 60)) is Reason.TOKEN_NOT_YET
    assert cache.verify(TOKEN, keys=keys, revoked={}, now=NOW) == child()


MARKS = st.sampled_from([f"dlg:{DLG}", "host:crm", "tenant:acme", "agent:support", "dlg:dlg_other"])


@given(st.integers(NOW - 20, NOW + 920), st.dictionaries(MARKS, st.integers(NOW - 2, NOW + 2)))
def test_a_hit_is_refused_when_and_as_the_token_itself_would_be(now: int, revoked: dict[str, int]) -> None:
    asked = {"keys": RING.keyset(), "revoked": revoked, "now": now}
    alone = verify(TOKEN, issuer=ISS, audience=AUD, host=HOST, **asked)  # type: ignore[arg-type]
    for ask in (asked, {**asked, "revoked": revoked.get}):  # both forms of a revocation list
        assert WARM.verify(TOKEN, **ask) == alone  # type: ignore[arg-type]


def test_a_token_that_is_forgotten_while_it_is_looked_up_is_read_anew() -> None:
    class Forgetful(OrderedDict[bytes, Known]):
        def move_to_end(self, key: bytes, last: bool = True) -> None:
            del self[key]
            super().move_to_end(key, last)

    cache = VerifiedCache(issuer=ISS, audience=AUD, host=HOST)
    cache._entries = Forgetful()
    for _ in range(3):
        assert cache.verify(TOKEN, keys=RING.keyset(), revoked={}, now=NOW) == child()
    assert len(cache) == 1


def test_refusals_are_not_remembered(cache: VerifiedCache) -> None:
    for token in (TOKEN + "=", minted(root()), "x" * 5000, "\ud800", ""):
        assert isinstance(cache.verify(token, keys=RING.keyset(), revoked={}, now=NOW), Refusal)
    assert isinstance(cache.verify(None, keys=RING.keyset(), revoked={}, now=NOW), Refusal)
    assert len(cache) == 0


def test_the_memory_is_bounded_and_forgets_the_least_used(cache: VerifiedCache) -> None:
    tokens = [minted(replace(child(), jti=child_jti(DLG, str(number), None))) for number in range(6)]
    for token in tokens:
        cache.verify(token, keys=RING.keyset(), revoked={}, now=NOW)
        cache.verify(tokens[0], keys=RING.keyset(), revoked={}, now=NOW)
        assert len(cache) <= 4


def test_many_threads_may_share_it(cache: VerifiedCache) -> None:
    tokens = [minted(replace(child(), jti=child_jti(DLG, str(number), None))) for number in range(8)]
    keys = RING.keyset()

    def ask(number: int) -> bool:
        answer = cache.verify(tokens[number % 8], keys=keys, revoked={}, now=NOW)
        return isinstance(answer, Claims) and answer.jti == child_jti(DLG, str(number % 8), None)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(400)))
    assert len(cache) <= 4


def test_it_shows_no_token(cache: VerifiedCache) -> None:
    cache.verify(TOKEN, keys=RING.keyset(), revoked={}, now=NOW)
    assert TOKEN not in repr(cache)
    assert TOKEN[:40] not in repr(cache)


def best(work: object, rounds: int, times: int = 5) -> float:
    assert callable(work)
    spent = []
    for _ in range(times):
        began = perf_counter()
        for _ in range(rounds):
            work()
        spent.append((perf_counter() - began) / rounds)
    return min(spent) * 1e6


def test_a_warm_token_costs_microseconds() -> None:
    cache = VerifiedCache(issuer=ISS, audience=AUD, host=HOST)
    keys = RING.keyset()
    revoked = {f"dlg:dlg_{number}": 2**33 for number in range(10_000)}
    warm = best(lambda: cache.verify(TOKEN, keys=keys, revoked=revoked, now=NOW), 2000)
    cold = best(
        lambda: verify(TOKEN, keys=keys, issuer=ISS, audience=AUD, revoked=revoked, now=NOW, host=HOST), 30, times=3
    )
    print(f"verify: warm {warm:.1f} us, cold {cold:.0f} us")
    assert warm < 50  # the goal is 5; a shared machine may be slow, a lost cache would cost hundreds
    assert warm * 5 < cold
