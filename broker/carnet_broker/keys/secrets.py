"""The master secret and what is derived from it. Each purpose and context has its own: one tells nothing of another."""

from secrets import token_bytes, token_hex
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from carnet.token.signer import P256Signer

__all__ = ["MASTER_BYTES", "MasterSecret", "new_epoch", "new_master", "new_signer"]

MASTER_BYTES = 32
_LABEL = b"carnet-secret-1\x00"


class MasterSecret:
    """32 secret bytes that no repr, and so no traceback with local variables, shows."""

    __slots__ = ("_raw",)

    def __init__(self, raw: bytes) -> None:
        if len(raw) != MASTER_BYTES:
            raise ValueError("the master secret has 32 bytes")
        self._raw = raw

    def reveal(self) -> bytes:
        """For the one file that holds it."""
        return self._raw

    def derive(self, purpose: str, context: tuple[str, ...]) -> bytes:
        """32 bytes by HKDF-SHA256 (RFC 5869). Purpose and context are framed by length: no two lists look alike."""
        parts = (part.encode() for part in (purpose, *context))
        info = _LABEL + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return HKDF(SHA256(), length=32, salt=None, info=info).derive(self._raw)

    def __repr__(self) -> str:
        return "MasterSecret()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("the master secret is not copied anywhere")


def new_master() -> MasterSecret:
    return MasterSecret(token_bytes(MASTER_BYTES))


def new_signer() -> P256Signer:
    return P256Signer(generate_private_key(SECP256R1()))


def new_epoch(prefix: str = "") -> str:
    """A random name for one life of a store."""
    return f"{prefix}{token_hex(16)}"
