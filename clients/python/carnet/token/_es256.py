"""ES256 (RFC 7518 section 3.4) on a public key of cryptography's, which is loaded when there is such a key."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

__all__ = ["verifier"]

_BYTES = 32  # of r and of s


def verifier(key: "EllipticCurvePublicKey") -> Callable[[bytes, bytes], bool]:
    """A function of signed bytes and signature (r and s, 32 bytes each): whether this P-256 key made it."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    algorithm = ECDSA(SHA256())

    def verifies(signed: bytes, signature: bytes) -> bool:
        if len(signature) != 2 * _BYTES:
            return False
        r, s = int.from_bytes(signature[:_BYTES], "big"), int.from_bytes(signature[_BYTES:], "big")
        try:
            key.verify(encode_dss_signature(r, s), signed, algorithm)
        except InvalidSignature:
            return False
        return True

    return verifies
