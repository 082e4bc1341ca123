"""private_key_jwt over the wire: who signs with the registered key gets in once, and every failure reads the same."""

import secrets
import time
from base64 import b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from carnet.token.names import TYP_ACCESS, TYP_CLIENT_AUTH
from carnet.token.sign import sign
from carnet.token.signer import P256Signer
from carnet_broker.http.client_auth import ASSERTION_TYPE
from carnet_broker.runner import BrokerServer
from tests.http.world import SECRETS, SIGNER, World


@pytest.fixture
def claims(server: BrokerServer) -> dict[str, Any]:
    now = int(time.time())
    return {
        "iss": "key-app",
        "sub": "key-app",
        "aud": server.url,
        "iat": now,
        "exp": now + 60,
        "jti": secrets.token_hex(16),
    }


def assertion(claims: dict[str, Any], typ: str = TYP_CLIENT_AUTH, signer: P256Signer = SIGNER) -> str:
    made = sign({name: value for name, value in claims.items() if value is not None}, signer, typ)
    assert isinstance(made, str)
    return made


def present(world: World, assertion: str, path: str = "/oauth2/token", **more: str) -> Any:
    fields = {
        "grant_type": "client_credentials",
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": assertion,
    }
    return world.http.post(path, data={**fields, **more})


def test_a_signed_assertion_opens_a_run_and_is_used_up_for_every_endpoint(world: World, claims: dict[str, Any]) -> None:
    token = assertion(claims)
    assert present(world, token).status_code == 200
    assert present(world, token).json()["error"] == "invalid_client"
    assert present(world, token, "/oauth2/introspect", token="x").json()["error"] == "invalid_client"


@pytest.mark.parametrize("typ", [TYP_CLIENT_AUTH, "JWT"])
def test_its_typ_is_its_own_or_plain(world: World, claims: dict[str, Any], typ: str) -> None:
    assert present(world, assertion(claims, typ)).status_code == 200


def test_the_client_id_may_stand_beside_it_and_must_agree(world: World, claims: dict[str, Any]) -> None:
    assert present(world, assertion(claims), client_id="support-app").status_code == 401
    assert present(world, assertion({**claims, "jti": "another"}), client_id="key-app").status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "https://elsewhere.example"},
        {"aud": None},
        {"exp": 1},
        {"exp": int(time.time()) + 4000},
        {"exp": None},
        {"jti": None},
        {"sub": "support-app"},
        {"iss": "support-app", "sub": "support-app"},
        {"iss": "nobody", "sub": "nobody"},
        {"iat": int(time.time()) + 4000},
        {"nbf": int(time.time()) + 4000},
    ],
)
def test_a_wrong_claim_is_an_invalid_client(world: World, claims: dict[str, Any], change: dict[str, Any]) -> None:
    answer = present(world, assertion({**claims, **change}))
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert answer.content == present(world, "no.assertion.at-all").content


def test_the_token_endpoint_is_no_audience(world: World, claims: dict[str, Any], server: BrokerServer) -> None:
    for audience in (f"{server.url}/oauth2/token", [server.url, "https://elsewhere.example"]):
        assert present(world, assertion({**claims, "aud": audience})).status_code == 401


def test_a_stranger_s_key_or_another_kind_of_token_does_not_authenticate(world: World, claims: dict[str, Any]) -> None:
    stranger = P256Signer(generate_private_key(SECP256R1()))
    assert present(world, assertion(claims, signer=stranger)).status_code == 401
    assert present(world, assertion(claims, TYP_ACCESS)).status_code == 401
    assert present(world, world.root()["access_token"]).status_code == 401


def test_two_credentials_are_an_invalid_request(world: World, claims: dict[str, Any]) -> None:
    token = assertion(claims)
    assert present(world, token, client_secret="x").json()["error"] == "invalid_request"
    both = {"grant_type": "client_credentials", "client_assertion_type": ASSERTION_TYPE, "client_assertion": token}
    answer = world.http.post("/oauth2/token", data=both, auth=("support-app", SECRETS["support-app"]))
    assert answer.json()["error"] == "invalid_request"


@pytest.mark.parametrize(
    "header", ["Basic", "Basic ", "Basic !!!", "Basic " + b64encode(b"nocolon").decode(), "Digest x", "Bearer a.b.c"]
)
def test_a_malformed_authorization_header_is_an_invalid_client(world: World, header: str) -> None:
    headers = {"authorization": header.strip() or "x"}
    answer = world.http.post("/oauth2/token", data={"grant_type": "client_credentials"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
