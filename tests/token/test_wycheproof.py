"""Project Wycheproof's JSON web signature vectors against the widest of our doors, the one for client assertions.

No vector labelled invalid may pass. A valid one passes when its key is one that we take at all (EC P-256 for ES256);
the others are refused at the key, which is the one exception, and is checked to be that. Encryption vectors (jwe) have
no counterpart here.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from carnet.reasons import Reason, Refusal
from carnet.token.assertion import client_header
from carnet.token.gate import open_signed
from carnet.token.keyset import parse_client_jwks, parse_jwks

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("TEST_DATA_DIR", ROOT.parent / "shared" / "data")) / "wycheproof"
FILES = ("json_web_signature_test.json", "json_web_key_test.json", "json_web_crypto_test.json")


def groups(name: str) -> list[dict[str, Any]]:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not there; set TEST_DATA_DIR to the folder that holds wycheproof/")
    found: list[dict[str, Any]] = json.loads(path.read_text())["testGroups"]
    return found


def document(group: dict[str, Any]) -> dict[str, Any]:
    jwk = group.get("public") or group["private"]
    return jwk if "keys" in jwk else {"keys": [jwk]}


@pytest.mark.parametrize("name", FILES)
def test_no_invalid_vector_passes_and_every_valid_one_of_our_kind_does(name: str) -> None:
    seen: Counter[str] = Counter()
    for group in groups(name):
        keys = parse_client_jwks(document(group))
        for vector in group["tests"]:
            if "jws" not in vector:
                seen["encryption"] += 1
                continue
            where = f"{name} tc {vector['tcId']} ({group['comment']}: {vector['comment']})"
            opened = keys if isinstance(keys, Refusal) else open_signed(vector["jws"], client_header(keys))
            if vector["result"] == "invalid":
                assert isinstance(opened, Refusal), where
                seen["refused at the key" if opened is keys else "refused at the token"] += 1
            elif isinstance(opened, Refusal):
                assert opened is keys, f"{where}: {opened}"
                seen["valid, with a kind of key that we do not take"] += 1
            else:
                seen["accepted"] += 1
    print(f"{name}: {dict(seen)}")
    assert seen.total() == {FILES[0]: 401, FILES[1]: 26, FILES[2]: 83}[name]


def test_the_vectors_reach_the_signature_and_not_only_the_key_rule() -> None:
    accepted = refused = 0
    for group in groups(FILES[0]):
        keys = parse_client_jwks(document(group))
        if isinstance(keys, Refusal):
            continue
        for vector in group["tests"]:
            opened = open_signed(vector["jws"], client_header(keys))
            accepted += not isinstance(opened, Refusal)
            refused += isinstance(opened, Refusal)
    assert accepted >= 2
    assert refused >= 20


@pytest.mark.parametrize("name", FILES)
def test_no_foreign_key_set_is_taken_for_an_issuers(name: str) -> None:
    for group in groups(name):
        refused = parse_jwks(document(group))
        assert isinstance(refused, Refusal)
        assert refused.reason is Reason.TOKEN_KEY
