"""The master secret and what is derived from it. Each purpose and context has its own: one tells nothing of another."""

from secrets import token_bytes, token_hex

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from carnet.token.signer import P256Signer

__all__ = ["MASTER_BYTES", "derive", "new_epoch", "new_master", "new_signer"]

MASTER_BYTES = 32
_LABEL = b"carnet-secret-1\x00"


def derive(master: bytes, purpose: str, context: tuple[str, ...]) -> bytes:
    """32 bytes by HKDF-SHA256 (RFC 5869). Purpose and context are framed by length, so no two lists look alike."""
    parts = (part.encode() for part in (purpose, *context))
    info = _LABEL + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return HKDF(SHA256(), length=32, salt=None, info=info).derive(master)


def new_master() -> bytes:
    return token_bytes(MASTER_BYTES)


def new_signer() -> P256Signer:
    return P256Signer(generate_private_key(SECP256R1()))


def new_epoch(prefix: str = "") -> str:
    """A random name for one life of a store."""
    return f"{prefix}{token_hex(16)}"
