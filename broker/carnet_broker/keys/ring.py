"""`KeyRing`: the broker's signing keys, and every secret that it derives.

Rotation never surprises a verifier: the next key is published (prepared) one rotation ahead. A ring on disk changes by
replacing one file; what a crash leaves beside it is ignored, and tidied away by the next change. The private half of a
key is deleted as soon as it no longer signs.
"""

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from carnet.reasons import Refusal
from carnet.token.keyset import KeySet, parse_jwks
from carnet.token.sign import Signer
from carnet_broker.keys import directory
from carnet_broker.keys.directory import Held, Stamp
from carnet_broker.keys.document import KeyState, Ring, State
from carnet_broker.keys.errors import KeysError
from carnet_broker.keys.secrets import MasterSecret, new_epoch, new_master, new_signer

__all__ = ["KeyRing"]

_MAX_RETIRING = 16


class KeyRing:
    """Made by `open`, `create` or `ephemeral`. Thread-safe: what is read is one consistent state."""

    __slots__ = ("_changing", "_epoch", "_held", "_master", "_path", "_set", "_stamp")

    def __init__(
        self, path: Path | None, master: MasterSecret, epoch: str, held: Held, stamp: Stamp | None = None
    ) -> None:
        self._changing = Lock()
        self._path = path
        self._master = master
        self._epoch = epoch
        self._adopt(held, stamp)

    @classmethod
    def open(cls, path: Path | str) -> "KeyRing":
        """The ring of an initialised key directory. Raises KeysError: missing, open to others, damaged, incomplete."""
        where = Path(path)
        directory.check(where)
        epoch = directory.read_marker(where)  # first: written last, it says whether the rest is complete
        return cls(where, directory.read_master(where), epoch, *directory.read_held(where))

    @classmethod
    def create(cls, path: Path | str, now: int, *, epoch: str | None = None) -> "KeyRing":
        """Initialise a new key directory: keys, master secret and, last, the marker with the store's epoch. Raises
        KeysError when anything is there already."""
        where = Path(path)
        directory.make(where, new_master(), _fresh(now), epoch or new_epoch())
        return cls.open(where)

    @classmethod
    def ephemeral(cls, prefix: str = "dev-", now: int = 0) -> "KeyRing":
        """A ring that lives in this process only, for development and tests; its epoch begins with `prefix`."""
        return cls(None, new_master(), new_epoch(prefix), _fresh(now))

    @property
    def is_ephemeral(self) -> bool:
        """Whether the keys die with the process: a serving broker refuses such a ring."""
        return self._path is None

    @property
    def active(self) -> Signer:
        return self._held.active

    @property
    def states(self) -> tuple[KeyState, ...]:
        """Every published key, what it does and since when."""
        return self._held.ring.keys

    @property
    def epoch_marker(self) -> str:
        """The epoch of the store that belongs to these keys: an empty store beside it is a store that was lost."""
        return self._epoch

    def jwks(self) -> dict[str, Any]:
        """The public key set document: active, prepared and retiring keys."""
        return {"keys": [dict(key.jwk) for key in self._held.ring.keys]}

    def keyset(self) -> KeySet:
        return self._set

    def secret(self, purpose: str, *context: str) -> bytes:
        """32 secret bytes for this purpose and context, always the same ones for this directory."""
        return self._master.derive(purpose, context)

    def rotate(self, now: int) -> str:
        """The prepared key becomes active, the active one retires, a new one is prepared. Answers the active kid. Keep
        the retired key until its last token has expired (900 s and leeway), then `retire` it."""

        def turn(held: Held) -> Held:
            old, active, fresh = held.ring.one(State.ACTIVE), held.ring.one(State.PREPARED), new_signer()
            retiring = [key for key in held.ring.keys if key.state is State.RETIRING]
            if len(retiring) >= _MAX_RETIRING:
                raise KeysError(f"{len(retiring)} keys are retiring; drop old ones first with `carnet keys retire`")
            keys = (
                KeyState(active.kid, State.ACTIVE, now, active.jwk),
                KeyState(fresh.kid, State.PREPARED, now, fresh.public_jwk()),
                KeyState(old.kid, State.RETIRING, now, old.jwk),
                *retiring,
            )
            return Held(Ring(keys), held.prepared, fresh)

        return self._change(turn).active.kid

    def retire(self, kid: str) -> None:
        """No longer publish a retiring key: whatever it signed is refused from then on. Raises KeysError for others."""

        def drop(held: Held) -> Held:
            state = {key.kid: key.state for key in held.ring.keys}.get(kid)
            if state is State.ACTIVE:
                raise KeysError("the key is active; run `carnet keys rotate` first, then retire it")
            if state is State.PREPARED:
                raise KeysError("the key is prepared and has signed nothing; to be rid of it rotate twice, then retire")
            if state is None:
                raise KeysError("no key of the ring has this id; `carnet list keys` names them")
            return Held(Ring(tuple(key for key in held.ring.keys if key.kid != kid)), held.active, held.prepared)

        self._change(drop)

    def record_epoch(self, epoch: str, now: int) -> None:
        """Write down that the keys now belong to another life of the store (after a recovery). Raises KeysError."""
        with self._changing:
            if self._path is not None:
                directory.write_marker(self._path, epoch, now)
            self._epoch = epoch

    def reload_if_changed(self) -> bool:
        """Follow a change that another process made to the directory. Raises KeysError when it cannot be read: the
        keys in hand stay."""
        with self._changing:
            if self._path is None or directory.stamp(self._path) == self._stamp:
                return False
            directory.check(self._path)
            self._adopt(*directory.read_held(self._path))
            return True

    def __repr__(self) -> str:
        where = "ephemeral" if self._path is None else str(self._path)
        return f"KeyRing({where}, active={self.active.kid})"

    def _change(self, step: Callable[[Held], Held]) -> Held:
        with self._changing:
            if self._path is None:
                self._adopt(step(self._held), None)
            else:
                directory.check(self._path)
                self._adopt(*directory.change(self._path, step))
            return self._held

    def _adopt(self, held: Held, stamp: Stamp | None) -> None:
        published = parse_jwks({"keys": [key.jwk for key in held.ring.keys]})
        if isinstance(published, Refusal):
            raise KeysError(f"the ring cannot be published: {published.detail}; retire old keys")
        self._held = held
        self._set = published
        self._stamp = stamp


def _fresh(now: int) -> Held:
    active, prepared = new_signer(), new_signer()
    keys = (
        KeyState(active.kid, State.ACTIVE, now, active.public_jwk()),
        KeyState(prepared.kid, State.PREPARED, now, prepared.public_jwk()),
    )
    return Held(Ring(keys), active, prepared)
