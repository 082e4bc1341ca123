"""The key ring: what it publishes, how it turns, what it derives, and what it never shows."""

import json
import logging
import os
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from carnet.reasons import Reason, Refusal
from carnet.token.keyset import KeySet, parse_jwks
from carnet.token.verify import verify
from carnet_broker.keys import KeyRing, KeysError, State
from tests.token.making import AUD, ISS, NOW, child, minted


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def ring(path: Path) -> KeyRing:
    return KeyRing.create(path, NOW)


def states(ring: KeyRing) -> list[State]:
    return [key.state for key in ring.states]


def accepted(token: str, keys: KeySet) -> bool:
    return verify(token, keys=keys, issuer=ISS, audience=AUD, revoked={}, now=NOW) == child()


def test_a_new_directory_is_private_and_opens_again(ring: KeyRing, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o700
    assert {file.name for file in path.iterdir()} == {
        "marker.json",
        "master.key",
        "ring.json",
        *(f"{key.kid}.pem" for key in ring.states),
    }
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in path.iterdir())
    again = KeyRing.open(path)
    assert again.active.kid == ring.active.kid
    assert again.jwks() == ring.jwks()
    assert again.epoch_marker == ring.epoch_marker
    assert again.secret("audit", "acme") == ring.secret("audit", "acme")


def test_what_it_publishes_is_public_and_closed(ring: KeyRing) -> None:
    parsed = parse_jwks(json.loads(json.dumps(ring.jwks())))
    assert isinstance(parsed, KeySet)
    assert parsed.kids == ring.keyset().kids == {key.kid for key in ring.states}
    assert all(key.keys() == {"kty", "crv", "x", "y", "kid", "use", "alg"} for key in ring.jwks()["keys"])


def test_a_rotation_surprises_no_verifier(ring: KeyRing) -> None:
    before = ring.keyset()
    old = minted(child(), ring.active)
    prepared = next(key.kid for key in ring.states if key.state is State.PREPARED)
    assert ring.rotate(NOW + 10) == ring.active.kid == prepared
    new = minted(child(), ring.active)
    assert accepted(new, before), "a verifier that has not heard of the rotation"
    assert accepted(old, ring.keyset())
    assert accepted(new, ring.keyset())
    assert states(ring) == [State.ACTIVE, State.PREPARED, State.RETIRING]
    assert [key.since for key in ring.states] == [NOW + 10] * 3


def test_a_retired_key_proves_nothing_any_more(ring: KeyRing, path: Path) -> None:
    old = ring.active.kid
    token = minted(child(), ring.active)
    ring.rotate(NOW)
    ring.retire(old)
    answer = verify(token, keys=ring.keyset(), issuer=ISS, audience=AUD, revoked={}, now=NOW)
    assert isinstance(answer, Refusal)
    assert answer.reason is Reason.TOKEN_KEY
    assert old not in {key.kid for key in KeyRing.open(path).states}


def test_a_private_key_that_no_longer_signs_is_deleted(ring: KeyRing, path: Path) -> None:
    for turn in range(3):
        ring.rotate(NOW + turn)
    signing = {f"{key.kid}.pem" for key in ring.states if key.state is not State.RETIRING}
    assert {file.name for file in path.glob("*.pem")} == signing


def test_only_a_retiring_key_can_be_retired(ring: KeyRing) -> None:
    kids = {key.state: key.kid for key in ring.states}
    for kid, said in ((kids[State.ACTIVE], "rotate"), (kids[State.PREPARED], "rotate twice"), ("nobody", "list keys")):
        with pytest.raises(KeysError, match=said):
            ring.retire(kid)
    assert len(ring.states) == 2


def test_retiring_keys_do_not_pile_up_without_end(ring: KeyRing, path: Path) -> None:
    for turn in range(16):
        ring.rotate(NOW + turn)
    with pytest.raises(KeysError, match="carnet keys retire"):
        ring.rotate(NOW + 16)
    assert KeyRing.open(path).active.kid == ring.active.kid


def test_another_process_hears_of_a_rotation(ring: KeyRing, path: Path) -> None:
    other = KeyRing.open(path)
    assert not other.reload_if_changed()
    ring.rotate(NOW)
    assert other.reload_if_changed()
    assert other.active.kid == ring.active.kid
    assert not other.reload_if_changed()
    other.rotate(NOW)
    other.rotate(NOW)
    assert ring.rotate(NOW) == ring.active.kid, "a change starts from what is on disk"
    assert len(ring.states) == 6


def test_a_damaged_directory_leaves_the_keys_in_hand(ring: KeyRing, path: Path) -> None:
    kid = ring.active.kid
    (path / "ring.json").write_text("{}")
    with pytest.raises(KeysError, match="version"):
        ring.reload_if_changed()
    assert ring.active.kid == kid
    assert accepted(minted(child(), ring.active), ring.keyset())


def test_secrets_differ_by_purpose_and_context_and_directory(ring: KeyRing) -> None:
    made = [
        ring.secret("audit", "acme", "crm"),
        ring.secret("audit", "acme", "pay"),
        ring.secret("audit", "acmecrm"),
        ring.secret("audit", "acm", "ecrm"),
        ring.secret("audit"),
        ring.secret("session"),
        KeyRing.ephemeral().secret("audit"),
    ]
    assert all(len(secret) == 32 for secret in made)
    assert len(set(made)) == len(made)
    assert ring.secret("audit", "acme", "crm") == made[0]


def test_a_recovered_store_has_another_epoch(ring: KeyRing, path: Path) -> None:
    assert len(ring.epoch_marker) == 32
    ring.record_epoch("epoch-2", NOW)
    assert ring.epoch_marker == KeyRing.open(path).epoch_marker == "epoch-2"


def test_an_epoch_given_at_creation_is_kept(path: Path) -> None:
    assert KeyRing.create(path, NOW, epoch="epoch-1").epoch_marker == "epoch-1"


def test_an_ephemeral_ring_says_so_and_turns_like_any_other() -> None:
    ring = KeyRing.ephemeral()
    assert ring.is_ephemeral
    assert ring.epoch_marker.startswith("dev-")
    assert not ring.reload_if_changed()
    old = ring.active.kid
    ring.rotate(NOW)
    ring.retire(old)
    ring.record_epoch("dev-2", NOW)
    assert ring.epoch_marker == "dev-2"
    assert states(ring) == [State.ACTIVE, State.PREPARED]
    assert KeyRing.ephemeral().active.kid != ring.active.kid


def test_a_directory_is_never_initialised_twice(ring: KeyRing, path: Path) -> None:
    with pytest.raises(KeysError, match="not empty"):
        KeyRing.create(path, NOW)
    assert KeyRing.open(path).active.kid == ring.active.kid


def test_a_missing_directory_names_the_command_that_makes_it(path: Path) -> None:
    with pytest.raises(KeysError, match="carnet init"):
        KeyRing.open(path)
    path.write_text("a file")
    with pytest.raises(KeysError, match="is no directory"):
        KeyRing.open(path)
    with pytest.raises(KeysError, match="cannot make"):
        KeyRing.create(path, NOW)


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o711, 0o777])
def test_a_directory_open_to_others_is_refused_with_the_fix(ring: KeyRing, path: Path, mode: int) -> None:
    path.chmod(mode)
    with pytest.raises(KeysError, match="chmod 0700"):
        KeyRing.open(path)
    with pytest.raises(KeysError, match="chmod 0700"):
        ring.rotate(NOW)


@pytest.mark.parametrize("name", ["marker.json", "master.key", "ring.json", "pem"])
def test_a_file_open_to_others_is_refused_with_the_fix(ring: KeyRing, path: Path, name: str) -> None:
    file = path / (f"{ring.active.kid}.pem" if name == "pem" else name)
    file.chmod(0o640)
    with pytest.raises(KeysError, match="chmod 0600"):
        KeyRing.open(path)


@pytest.mark.parametrize("name", ["marker.json", "master.key", "ring.json", "pem"])
@pytest.mark.parametrize("content", [None, b"", b"canary-secret", b"[]", b'{"format":9,"keys":[]}', b"\xff" * 40])
def test_a_damaged_or_missing_file_is_one_sentence_and_no_content(
    ring: KeyRing, path: Path, name: str, content: bytes | None
) -> None:
    file = path / (f"{ring.active.kid}.pem" if name == "pem" else name)
    file.unlink()
    if content is not None:
        file.write_bytes(content)
        file.chmod(0o600)
    with pytest.raises(KeysError) as caught:
        KeyRing.open(path)
    assert "canary" not in str(caught.value)
    assert str(caught.value).count("\n") == 0
    assert ";" in str(caught.value), "what is wrong; what to do"


def tampered(document: dict[str, Any], what: str) -> None:
    first, second = document["keys"]
    if what == "two active":
        second["state"] = "active"
    elif what == "ids swapped":
        first["kid"], second["kid"] = second["kid"], first["kid"]
    elif what == "keys swapped":
        first["jwk"], second["jwk"] = second["jwk"], first["jwk"]
    elif what == "unknown state":
        first["state"] = "dormant"
    elif what == "another member":
        first["note"] = "x"
    else:
        document["keys"] = [first]


@pytest.mark.parametrize(
    "what", ["two active", "ids swapped", "keys swapped", "unknown state", "another member", "one key"]
)
def test_a_tampered_ring_is_refused(ring: KeyRing, path: Path, what: str) -> None:
    file = path / "ring.json"
    document = json.loads(file.read_text())
    tampered(document, what)
    file.write_text(json.dumps(document))
    with pytest.raises(KeysError, match="restore"):
        KeyRing.open(path)


def test_a_private_key_under_another_ones_name_is_refused(ring: KeyRing, path: Path) -> None:
    first, second = (path / f"{key.kid}.pem" for key in ring.states)
    first.write_bytes(second.read_bytes())
    with pytest.raises(KeysError, match="another key"):
        KeyRing.open(path)


def secrets_of(path: Path) -> list[str]:
    raw = [file.read_bytes() for file in path.iterdir() if file.suffix in {".pem", ".key"}]
    texts = [line for data in raw if data.startswith(b"-----") for line in data.decode().splitlines()[1:-1]]
    master = (path / "master.key").read_bytes()
    return [*texts, master.hex(), repr(master)[2:-1], str(list(master))[1:-1]]


def test_no_secret_is_in_what_can_be_printed(ring: KeyRing, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ring.rotate(NOW)
    said = [repr(ring), str(ring), repr(ring.active), repr(ring.keyset()), repr(ring.states), json.dumps(ring.jwks())]
    (path / "ring.json").write_text("broken")
    try:
        KeyRing.open(path)
    except KeysError as fault:
        said += traceback.TracebackException.from_exception(fault, capture_locals=True).format()
    said.append(caplog.text)
    for secret in secrets_of(path):
        assert not any(secret in text for text in said)


def test_no_secret_is_in_a_traceback_with_local_variables(ring: KeyRing, path: Path) -> None:
    for state in ring.states:
        (path / f"{state.kid}.pem").chmod(0o644)
        with pytest.raises(KeysError) as caught:
            KeyRing.open(path)
        said = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
        (path / f"{state.kid}.pem").chmod(0o600)
        assert not any(secret in said for secret in secrets_of(path))


def test_a_key_that_is_deleted_while_the_ring_is_read_is_no_damage(ring: KeyRing, path: Path) -> None:
    """Readers go on reading while another process turns the ring over and over."""

    def turn() -> None:
        for _ in range(15):
            ring.rotate(NOW)
            ring.retire(ring.states[-1].kid)

    with ThreadPoolExecutor(1) as pool:
        turning = pool.submit(turn)
        opened = 0
        while not turning.done():
            assert KeyRing.open(path).active.kid
            opened += 1
        turning.result()
    assert opened
    assert KeyRing.open(path).active.kid == ring.active.kid


def test_a_ring_cannot_be_copied_into_a_pickle(ring: KeyRing) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(ring)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_directory_of_another_user_is_refused(ring: KeyRing, path: Path) -> None:
    os.chown(path, 12345, -1)
    with pytest.raises(KeysError, match="another user"):
        KeyRing.open(path)
