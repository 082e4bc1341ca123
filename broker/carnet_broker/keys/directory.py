"""What lies in a key directory:

marker.json   written last by init: these keys belong to this epoch of the store
master.key    32 bytes from which every other secret is derived
ring.json     which keys there are; replacing it is the one act that changes the ring
<kid>.pem     private keys, of the active and the prepared key only
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from carnet.token.signer import P256Signer
from carnet.token.strict import NotStrict, loads
from carnet_broker.keys import files
from carnet_broker.keys.document import FORMAT, Ring, State, dump_ring, parse_ring
from carnet_broker.keys.errors import KeysError
from carnet_broker.keys.secrets import MasterSecret

__all__ = [
    "Held",
    "Seen",
    "Stamp",
    "change",
    "check",
    "make",
    "read_held",
    "read_marker",
    "read_master",
    "stamp",
    "write_marker",
]

_MARKER = "marker.json"
_MASTER = "master.key"
_RING = "ring.json"
_PEM = ".pem"
_TRIES = 5

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Held:
    """A ring with the two private keys that it needs."""

    ring: Ring
    active: P256Signer = field(repr=False)
    prepared: P256Signer = field(repr=False)


class Seen(NamedTuple):
    """A ring and the stamp of the file that it was read from or written to."""

    held: Held
    stamp: Stamp


def check(path: Path) -> None:
    files.check_directory(path)


def make(path: Path, master: MasterSecret, held: Held, epoch: str) -> None:
    """A whole new directory, the marker last. Raises KeysError."""
    files.make_directory(path)
    files.write_private(path / _MASTER, master.reveal())
    _write_held(path, held)
    write_marker(path, epoch, held.ring.one(State.ACTIVE).since)


def read_master(path: Path) -> MasterSecret:
    try:
        return MasterSecret(files.read_private(path / _MASTER))
    except ValueError:
        raise KeysError(f"{path / _MASTER} is damaged; restore the key directory from your backup") from None


def read_marker(path: Path) -> str:
    """The epoch. Raises KeysError when there is none: `carnet init` did not finish."""
    where = path / _MARKER
    if not where.exists():
        raise KeysError(f"{path} is not initialised (no {_MARKER}); empty it and run `carnet init`")
    try:
        document = loads(files.read_private(where), max_depth=2, max_members=8)
        if document["format"] == FORMAT and type(document["epoch"]) is str and document["epoch"]:
            return str(document["epoch"])
    except (NotStrict, KeyError, TypeError):
        pass
    raise KeysError(f"{where} is damaged; restore the key directory from your backup")


def write_marker(path: Path, epoch: str, now: int) -> None:
    document = {"format": FORMAT, "epoch": epoch, "at": now}
    files.write_private(path / _MARKER, json.dumps(document, sort_keys=True).encode() + b"\n")


def read_held(path: Path) -> Seen:
    """The ring as it is now. Another process may turn it meanwhile and delete a key that was just named: then once
    more. Raises KeysError."""
    for _ in range(_TRIES):
        seen = stamp(path)
        try:
            return Seen(_held(path), seen)
        except KeysError:
            if stamp(path) == seen:
                raise
    raise KeysError(f"{path} is being changed all the time; stop what rotates its keys and retry")


def change(path: Path, step: Callable[[Held], Held]) -> Seen:
    """Read, step, write, with no other process between. Up to the moment in which ring.json is replaced nothing has
    changed; afterwards the change is made, also when tidying fails. Raises KeysError."""
    with files.writing(path):
        after = step(_held(path))
        _write_held(path, after)
        seen = Seen(after, stamp(path))
        keep = frozenset(f"{signer.kid}{_PEM}" for signer in (after.active, after.prepared))
        files.tidy(path, keep, _PEM)
        return seen


def stamp(path: Path) -> Stamp:
    """Changes whenever the ring does. Raises KeysError."""
    return files.stamp(path / _RING)


def _held(path: Path) -> Held:
    ring = parse_ring(files.read_private(path / _RING), str(path / _RING))
    return Held(ring, _read_signer(path, ring.one(State.ACTIVE).kid), _read_signer(path, ring.one(State.PREPARED).kid))


def _write_held(path: Path, held: Held) -> None:
    for signer in (held.active, held.prepared):
        where = path / f"{signer.kid}{_PEM}"
        if not where.exists():
            files.write_private(where, signer.to_pem())
    files.write_private(path / _RING, dump_ring(held.ring))


def _read_signer(path: Path, kid: str) -> P256Signer:
    where = path / f"{kid}{_PEM}"
    try:
        signer = P256Signer.from_pem(files.read_private(where))
    except ValueError as fault:
        raise KeysError(f"{where}: {fault}; restore the key directory from your backup") from None
    if signer.kid != kid:
        raise KeysError(f"{where} holds another key than its name says; restore the key directory from your backup")
    return signer
