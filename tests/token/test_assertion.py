"""Client assertions: RFC 7523 with the sole-audience rule, single kinds of header, short lives."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from carnet.reasons import Reason, Refusal
from carnet.token.assertion import Assertion, claimed_client, verify_assertion
from carnet.token.keyset import KeySet, parse_client_jwks
from tests.token.making import ISS, NOW, RING, child, forged, minted

CLAIMS: dict[str, Any] = {
    "iss": "support-prod",
    "sub": "support-prod",
    "aud": ISS,
    "exp": NOW + 60,
    "iat": NOW,
    "jti": "a-random-id",
}


def keys(*kids: str) -> KeySet:
    jwks = [{**state.jwk, "kid": kid} for state, kid in zip(RING.states, kids, strict=False)]
    found = parse_client_jwks({"keys": jwks})
    assert isinstance(found, KeySet)
    return found


ONE = keys("key-1")


def made(claims: Mapping[str, Any] | None = None, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
    body = {name: value for name, value in {**(claims or CLAIMS), **changes}.items() if value is not None}
    return forged(body, {"typ": "client-authentication+jwt", "kid": "key-1", **(header or {})})


def check(token: object, **changes: Any) -> Assertion | Refusal:
    settings: dict[str, Any] = {"keys": ONE, "issuer": ISS, "now": NOW}
    return verify_assertion(token, **(settings | changes))


def reason(answer: Assertion | Refusal) -> Reason:
    assert isinstance(answer, Refusal)
    return answer.reason


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"typ": "JWT"},
        {"typ": "jwt"},
        {"typ": None},
        {"typ": "application/client-authentication+jwt"},
        {"kid": None},
        {"x5t": "ignored"},
        {"jku": "http://127.0.0.1:9/never-fetched"},
    ],
)
def test_a_clients_own_header_is_accepted(header: dict[str, Any]) -> None:
    assert check(made(header=header)) == Assertion("support-prod", "a-random-id", NOW + 60)


def test_the_audience_may_be_a_list_of_the_issuer_alone() -> None:
    assert isinstance(check(made(aud=[ISS])), Assertion)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"aud": f"{ISS}/oauth2/token"}, Reason.TOKEN_AUD),
        ({"aud": [ISS, "https://other.example"]}, Reason.TOKEN_AUD),
        ({"aud": []}, Reason.TOKEN_AUD),
        ({"aud": None}, Reason.TOKEN_CLAIM),
        ({"sub": "other"}, Reason.TOKEN_ISS),
        ({"iss": None}, Reason.TOKEN_CLAIM),
        ({"jti": None}, Reason.TOKEN_CLAIM),
        ({"jti": ""}, Reason.TOKEN_CLAIM),
        ({"exp": None}, Reason.TOKEN_CLAIM),
        ({"exp": str(NOW + 60)}, Reason.TOKEN_CLAIM),
        ({"exp": NOW - 5}, Reason.TOKEN_EXPIRED),
        ({"exp": NOW + 3600}, Reason.TOKEN_LIFETIME),
        ({"nbf": NOW + 60}, Reason.TOKEN_NOT_YET),
        ({"iat": NOW + 60}, Reason.TOKEN_NOT_YET),
    ],
)
def test_a_wrong_claim_is_refused(changes: dict[str, Any], expected: Reason) -> None:
    assert reason(check(made(**changes))) is expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"typ": "at+jwt"}, Reason.TOKEN_TYP),
        ({"typ": "dpop+jwt"}, Reason.TOKEN_TYP),
        ({"typ": "secevent+jwt"}, Reason.TOKEN_TYP),
        ({"typ": 7}, Reason.TOKEN_TYP),
        ({"crit": ["b64"], "b64": False}, Reason.TOKEN_HEADER),
        ({"kid": "key-2"}, Reason.TOKEN_KEY),
        ({"kid": ["key-1"]}, Reason.TOKEN_KEY),
        ({"alg": "none"}, Reason.TOKEN_ALG),
        ({"alg": "HS256"}, Reason.TOKEN_ALG),
        ({"alg": None}, Reason.TOKEN_ALG),
    ],
)
def test_a_wrong_header_is_refused(header: dict[str, Any], expected: Reason) -> None:
    assert reason(check(made(header=header))) is expected


def test_with_several_keys_the_kid_is_needed() -> None:
    assert reason(check(made(header={"kid": None}), keys=keys("key-1", "key-2"))) is Reason.TOKEN_KEY
    assert isinstance(check(made(), keys=keys("key-1", "key-2")), Assertion)
    assert reason(check(made(header={"kid": "key-2"}), keys=keys("key-1", "key-2"))) is Reason.TOKEN_SIGNATURE


def test_an_access_token_is_no_assertion() -> None:
    assert reason(check(minted(child()))) is Reason.TOKEN_TYP


def test_the_claimed_client_is_read_without_proof_and_without_harm() -> None:
    assert claimed_client(made()) == "support-prod"
    for token in ("", "a.b.c", made(iss=None), made(iss=7), made(iss="a\n"), None, forged(json.dumps([]))):
        assert isinstance(claimed_client(token), Refusal)
