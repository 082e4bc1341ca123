"""Public key sets: closed for an issuer, tolerant for a client, and never private."""

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, generate_private_key

from carnet.reasons import Refusal
from carnet.token.keyset import KeySet, parse_client_jwks, parse_jwks, thumbprint
from carnet.token.signer import P256Signer
from carnet_broker.keys import KeyRing
from tests.token.making import RING

JWK = RING.active.public_jwk()


def test_thumbprints_of_the_published_vectors() -> None:
    rsa = {  # RFC 7638 section 3.1
        "kty": "RSA",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiF"
        "V4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qM"
        "QvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        "e": "AQAB",
        "alg": "RS256",
        "kid": "2011-04-29",
    }
    assert thumbprint(rsa) == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    ed25519 = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}  # RFC 8037 A.3
    assert thumbprint(ed25519) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_a_key_of_no_known_type_has_no_thumbprint() -> None:
    for jwk in ({}, {"kty": "oct", "k": "AAAA"}, {"kty": "EC", "crv": "P-256", "x": "A"}):
        with pytest.raises(ValueError, match="no thumbprint"):
            thumbprint(jwk)


def test_the_ring_publishes_a_set_that_the_parser_takes() -> None:
    parsed = parse_jwks(json.loads(json.dumps(RING.jwks())))
    assert isinstance(parsed, KeySet)
    assert parsed.kids == RING.keyset().kids
    assert len(parsed) == 2


BAD: dict[str, Any] = {
    "no object": [],
    "no keys": {},
    "another member": {"keys": [JWK], "next": "http://127.0.0.1:9"},
    "empty": {"keys": []},
    "too many": {"keys": [JWK] * 33},
    "keys an object": {"keys": {"a": JWK}},
    "key a string": {"keys": ["x"]},
    "the same kid twice": {"keys": [JWK, JWK]},
    "private member": {"keys": [{**JWK, "d": "AAAA"}]},
    "symmetric": {"keys": [{"kty": "oct", "k": "AAAA", "kid": "a"}]},
    "RSA": {"keys": [{**JWK, "kty": "RSA"}]},
    "P-384": {"keys": [{**JWK, "crv": "P-384"}]},
    "use enc": {"keys": [{**JWK, "use": "enc"}]},
    "use missing": {"keys": [{name: v for name, v in JWK.items() if name != "use"}]},
    "alg of another curve": {"keys": [{**JWK, "alg": "ES384"}]},
    "alg none": {"keys": [{**JWK, "alg": "none"}]},
    "kid of another key": {"keys": [{**JWK, "kid": RING.states[1].kid}]},
    "kid free": {"keys": [{**JWK, "kid": "key-1"}]},
    "x5u": {"keys": [{**JWK, "x5u": "http://127.0.0.1:9"}]},
    "x too short": {"keys": [{**JWK, "x": JWK["x"][:-1]}]},
    "x padded": {"keys": [{**JWK, "x": JWK["x"] + "="}]},
    "x a number": {"keys": [{**JWK, "x": 7}]},
    "no point of the curve": {"keys": [{**JWK, "x": "A" * 43, "kid": thumbprint({**JWK, "x": "A" * 43})}]},
}


@pytest.mark.parametrize("name", BAD)
def test_an_issuers_set_is_closed(name: str) -> None:
    assert isinstance(parse_jwks(BAD[name]), Refusal)


def test_a_clients_key_may_have_its_own_kid_or_none() -> None:
    bare = {name: JWK[name] for name in ("kty", "crv", "x", "y")}
    own = parse_client_jwks({"keys": [{**bare, "kid": "key-1", "x5t": "ignored"}]})
    assert isinstance(own, KeySet)
    assert own.kids == {"key-1"}
    none = parse_client_jwks({"keys": [bare]})
    assert isinstance(none, KeySet)
    assert none.kids == {thumbprint(JWK)}


@pytest.mark.parametrize(
    "change", [{"use": "enc"}, {"alg": "ES384"}, {"key_ops": ["sign"]}, {"key_ops": "verify"}, {"kid": ""}, {"d": "A"}]
)
def test_a_clients_key_that_is_for_something_else_is_refused(change: dict[str, Any]) -> None:
    assert isinstance(parse_client_jwks({"keys": [{**JWK, **change}]}), Refusal)


def test_only_a_lone_key_can_be_meant_without_a_kid() -> None:
    assert RING.keyset().only() is None
    lone = parse_jwks({"keys": [JWK]})
    assert isinstance(lone, KeySet)
    key = lone.only()
    assert key is not None
    assert key.kid == RING.active.kid


def test_a_signer_takes_p256_private_keys_only_and_shows_nothing_of_them() -> None:
    signer = KeyRing.ephemeral().active
    assert isinstance(signer, P256Signer)
    assert P256Signer.from_pem(signer.to_pem()).public_jwk() == signer.public_jwk()
    assert repr(signer) == f"P256Signer({signer.kid})"
    with pytest.raises(ValueError, match="P-256"):
        P256Signer(generate_private_key(SECP384R1()))
    with pytest.raises(ValueError, match="no unencrypted private key") as caught:
        P256Signer.from_pem(b"canary-secret")
    assert "canary" not in repr(caught.value)
