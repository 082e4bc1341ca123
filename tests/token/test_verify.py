"""The verifier: for whom, how long, and what a revocation kills."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims, child_jti
from carnet.token.gate import open_token
from carnet.token.keyset import KeySet
from carnet.token.marks import marks, stored, tool_mark
from carnet.token.names import TYP_ACCESS, TYP_CHECKPOINT, TYP_CLIENT_AUTH, TYP_GUARD, TYP_SESSION
from carnet.token.sign import sign
from carnet.token.verify import alive, verify
from tests.token.making import AUD, CLIENT, DLG, HOST, ISS, NOW, RING, RUN, child, minted, root

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \né"
TOKEN = minted(child())


def check(token: object, **changes: Any) -> Claims | Refusal:
    settings: dict[str, Any] = {"keys": RING.keyset(), "issuer": ISS, "audience": AUD, "revoked": {}, "now": NOW}
    settings["host"] = HOST
    return verify(token, **(settings | changes))


def reason(answer: Claims | Refusal | None) -> Reason | None:
    return answer.reason if isinstance(answer, Refusal) else None


@given(st.integers(0, len(TOKEN) - 1), st.sampled_from(ALPHABET))
def test_one_changed_character_makes_another_token_that_is_refused(at: int, character: str) -> None:
    changed = TOKEN[:at] + character + TOKEN[at + 1 :]
    assert changed == TOKEN or isinstance(check(changed), Refusal)


@given(st.text(max_size=60) | st.binary(max_size=60) | st.none() | st.integers())
def test_no_input_makes_the_verifier_raise(token: object) -> None:
    assert isinstance(check(token), Refusal)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_each_level_has_its_life_and_not_a_second_more(level: int) -> None:
    claims = child(level=level)
    leveled = replace(claims, delegation=replace(claims.delegation, level=level))
    assert check(minted(leveled)) == leveled
    longer = replace(leveled, exp=leveled.exp + 1)
    assert reason(check(minted(longer))) is Reason.TOKEN_LIFETIME


def test_leeway_is_five_seconds_at_both_ends() -> None:
    claims = child()
    assert check(TOKEN, now=claims.exp + 4) == claims
    assert reason(check(TOKEN, now=claims.exp + 5)) is Reason.TOKEN_EXPIRED
    assert check(TOKEN, now=NOW - 5) == claims
    assert reason(check(TOKEN, now=NOW - 6)) is Reason.TOKEN_NOT_YET


def test_the_audience_is_compared_exactly_even_where_text_contains_text() -> None:
    assert reason(check(TOKEN, audience=f"{AUD},x")) is Reason.TOKEN_AUD
    assert reason(check(TOKEN, audience=AUD[:-1])) is Reason.TOKEN_AUD
    assert check(TOKEN, audience={AUD, ISS}) == child()


def test_a_root_token_is_for_the_broker_alone() -> None:
    token = minted(root())
    assert check(token, audience=ISS, host=None) == root()
    assert reason(check(token)) is Reason.ROOT_TOKEN
    assert reason(check(token, audience=ISS, issuer="https://other.example")) is Reason.TOKEN_ISS


def test_a_key_that_is_no_longer_published_proves_nothing() -> None:
    assert reason(check(TOKEN, keys=KeySet())) is Reason.TOKEN_KEY
    assert reason(check(TOKEN, keys=RING.keyset().without([RING.active.kid]))) is Reason.TOKEN_KEY


def test_marks_name_everything_the_token_depends_on() -> None:
    assert set(marks(child(), HOST)) == {
        "tenant:acme",
        f"policy:{'a' * 64}",
        "host:crm",
        f"dlg:{RUN}",
        f"dlg:{DLG}",
        "agent:support",
        "agent:researcher",
        f"client:{CLIENT}",
    }
    assert "host:crm" not in marks(child(), None)


@pytest.mark.parametrize("mark", marks(child(), HOST))
def test_every_mark_kills_what_was_issued_up_to_its_time(mark: str) -> None:
    assert reason(check(TOKEN, revoked={mark: NOW})) is Reason.REVOKED
    assert reason(check(TOKEN, revoked={mark: NOW + 100})) is Reason.REVOKED
    assert check(TOKEN, revoked={mark: NOW - 1}) == child()
    assert reason(check(TOKEN, revoked={mark: NOW}.get)) is Reason.REVOKED


def test_other_ids_kill_nothing() -> None:
    others = {"dlg:dlg_other": 2**33, "agent:writer": 2**33, "tenant:acme2": 2**33, f"token:{child().jti}": 2**33}
    assert check(TOKEN, revoked=others) == child()


def test_a_revoked_token_is_written_as_its_delegation() -> None:
    assert stored(f"token:{child_jti(DLG, HOST, None)}") == f"dlg:{DLG}"
    assert stored(f"token:{root().jti}") == f"dlg:{RUN}"
    assert stored("agent:support") == "agent:support"
    assert tool_mark(DLG, "refund") == f"tool:{DLG}/refund"


def test_alive_is_the_part_that_time_can_change() -> None:
    assert alive(child(), {}, NOW, HOST) is None
    assert reason(alive(child(), {}, NOW + 905, HOST)) is Reason.TOKEN_EXPIRED
    assert reason(alive(child(), {"host:crm": NOW}, NOW, HOST)) is Reason.REVOKED
    assert alive(child(), {"host:crm": NOW}, NOW) is None


KINDS = (TYP_ACCESS, TYP_GUARD, TYP_SESSION, TYP_CHECKPOINT, TYP_CLIENT_AUTH, "dpop+jwt", "JWT")


@pytest.mark.parametrize("made", KINDS)
@pytest.mark.parametrize("wanted", KINDS)
def test_a_token_of_one_kind_never_stands_in_for_another(made: str, wanted: str) -> None:
    token = sign({"iss": ISS}, RING.active, made)
    opened = open_token(token, RING.keyset(), typ=wanted)
    if made == wanted:
        assert opened == ({"alg": "ES256", "kid": RING.active.kid, "typ": made}, {"iss": ISS})
    else:
        assert isinstance(opened, Refusal)
        assert opened.reason is Reason.TOKEN_TYP


def test_a_token_that_would_be_too_large_is_not_signed() -> None:
    many = replace(
        child(), scope=tuple(f"tool_{number:03}_{'x' * 80}" for number in range(40)), authorization_details=()
    )
    with pytest.raises(AssertionError, match="token_too_large"):
        minted(many)


def test_claims_that_contradict_themselves_are_never_signed() -> None:
    for wrong in (
        replace(child(), txn="dlg_other"),
        replace(child(), act=None),
        replace(child(), jti="dlg_x.1"),
        replace(root(), scope=("refund",)),
        replace(child(), exp=NOW),
    ):
        with pytest.raises(ValueError, match="contradict"):
            minted(wrong)
