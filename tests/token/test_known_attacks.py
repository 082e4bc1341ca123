"""A public collection of attacks on JWT verifiers, as data, against our verifier. TEST_CASES_DIR names another folder
of the same form."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from carnet.reasons import CATALOGUE, Refusal
from carnet.token.claims import to_payload
from carnet.token.verify import verify
from carnet_broker.keys import KeyRing
from tests.token.making import AUD, DLG, HOST, ISS, NOW, RING, child, forged, hs256
from tests.token.test_forgeries import DER, PEM

ROOT = Path(__file__).parents[2]
PATH = Path(os.environ.get("TEST_CASES_DIR", ROOT / "tests" / "cases" / "data")) / "token_verification.yaml"
CASES: list[dict[str, Any]] = yaml.safe_load(PATH.read_text())["cases"]
ATTACKER = KeyRing.ephemeral()


def value(given: Any) -> Any:
    if isinstance(given, dict) and "$repeat" in given:
        text, times = given["$repeat"]
        return text * times
    if isinstance(given, dict):
        return {name: value(inner) for name, inner in given.items()}
    if not isinstance(given, str):
        return given
    if given.startswith("str("):
        return str(value(given[4:-1]))
    if given == "now":
        return NOW
    if given.startswith(("now+", "now-")):
        return NOW + int(given[3:])
    known = {"@attacker_public_jwk": ATTACKER.active.public_jwk(), "@iss[:4]": ISS[:4]}
    return known.get(given, given.replace("@aud", AUD))


def edited(members: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    kept = {name: inner for name, inner in members.items() if name not in edit.get("remove", ())}
    return kept | {name: value(inner) for name, inner in edit.get("set", {}).items()}


def built(case: dict[str, Any]) -> str:
    given = case["input"]
    header = edited({"alg": "ES256", "kid": RING.active.kid, "typ": "at+jwt"}, given.get("header", {}))
    payload: Any = edited(to_payload(child()), given.get("claims", {}))
    if "raw_payload_append" in given:
        payload = f"{json.dumps(payload)[:-1]},{given['raw_payload_append']}}}"
    sign = {
        "active": RING.active.sign,
        "attacker": ATTACKER.active.sign,
        "none": lambda _: b"",
        "hmac-public-pem": hs256(PEM),
        "hmac-public-der": hs256(DER),
        "hmac-empty": hs256(b""),
    }[given["sign"]]
    token = forged(payload, json.dumps(header), sign)
    if "mutate" in given:
        token += given["mutate"].removeprefix("append:")
    return str(given["wrap"]).format(token=token).partition(" ")[2] if "wrap" in given else token


def test_the_collection_is_there() -> None:
    assert len(CASES) >= 24


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_a_known_attack_ends_as_expected(case: dict[str, Any]) -> None:
    revoked = {f"dlg:{DLG}": NOW} if "revoke" in case["input"].get("pre", ()) else {}
    token = built(case)
    began = time.thread_time()
    answer = verify(token, keys=RING.keyset(), issuer=ISS, audience=AUD, revoked=revoked, now=NOW, host=HOST)
    spent = time.thread_time() - began
    expected = case["expected"]
    assert isinstance(answer, Refusal) is not expected["valid"], answer
    if isinstance(answer, Refusal):
        said = f"{answer.reason.value} {answer.detail or CATALOGUE[answer.reason].sentence}".lower()
        assert any(word in said for word in expected["reason_any"]), said
    assert spent * 1000 <= expected.get("max_ms", 1000)
