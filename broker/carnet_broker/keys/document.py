"""ring.json: which keys there are, and what each one does. Replacing this file is the one act that changes the ring."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from carnet.reasons import Refusal
from carnet.token.keyset import parse_jwks
from carnet.token.strict import NotStrict, loads
from carnet_broker.keys.errors import KeysError

__all__ = ["FORMAT", "KeyState", "Ring", "State", "dump_ring", "parse_ring"]

FORMAT = 1


class State(StrEnum):
    """Published all three; only the active key signs."""

    ACTIVE = "active"
    PREPARED = "prepared"  # published ahead, so that every verifier knows it before it signs
    RETIRING = "retiring"  # verifies what it signed; its private half is gone


@dataclass(frozen=True, slots=True)
class KeyState:
    """A key of the ring. since: Unix seconds at which it got this state."""

    kid: str
    state: State
    since: int
    jwk: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ring:
    """Exactly one active and one prepared key, any number of retiring ones."""

    keys: tuple[KeyState, ...]

    def one(self, state: State) -> KeyState:
        return next(key for key in self.keys if key.state is state)


def dump_ring(ring: Ring) -> bytes:
    listed = [{"kid": key.kid, "state": key.state.value, "since": key.since, "jwk": key.jwk} for key in ring.keys]
    return json.dumps({"format": FORMAT, "keys": listed}, indent=1, sort_keys=True).encode() + b"\n"


def parse_ring(data: bytes, where: str) -> Ring:
    """Raises KeysError for anything but a ring that this version wrote."""
    try:
        document = loads(data, max_depth=6, max_members=4096)
        if document.keys() != {"format", "keys"} or document["format"] != FORMAT:
            raise KeysError(f"{where} is of another version of carnet; use the version that wrote it")
        ring = Ring(tuple(_key(entry) for entry in document["keys"]))
    except (NotStrict, AttributeError, KeyError, TypeError, ValueError):
        raise KeysError(f"{where} is damaged; restore the key directory from your backup") from None
    states = [key.state for key in ring.keys]
    published = parse_jwks({"keys": [key.jwk for key in ring.keys]})
    if isinstance(published, Refusal) or published.kids != {key.kid for key in ring.keys}:
        raise KeysError(f"{where} holds keys that do not fit their ids; restore the key directory from your backup")
    if states.count(State.ACTIVE) != 1 or states.count(State.PREPARED) != 1:
        raise KeysError(f"{where} has not exactly one active and one prepared key; restore it from your backup")
    return ring


def _key(entry: dict[str, Any]) -> KeyState:
    if entry.keys() != {"kid", "state", "since", "jwk"} or type(entry["since"]) is not int:
        raise ValueError
    key = KeyState(str(entry["kid"]), State(entry["state"]), entry["since"], dict(entry["jwk"]))
    if key.jwk.get("kid") != key.kid:
        raise ValueError
    return key
