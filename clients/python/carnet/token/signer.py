"""One P-256 private key as a `Signer`: for the broker's tokens, a client's assertions, proofs of possession."""

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from carnet.token.keyset import thumbprint

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = ["P256Signer"]


class P256Signer:
    """ES256 (RFC 7518 section 3.4). Its repr names the kid only."""

    alg = "ES256"

    def __init__(self, key: "EllipticCurvePrivateKey") -> None:
        if key.curve.name != "secp256r1":
            raise ValueError("the key is not on the curve P-256")
        self._key = key
        self._point = _point(key)
        self.kid = thumbprint(self._point)

    @classmethod
    def from_pem(cls, pem: bytes) -> "P256Signer":
        """An unencrypted PEM private key. Raises ValueError, without repeating any of it, for anything else."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ValueError("this is no unencrypted private key in PEM form") from None
        if not isinstance(key, EllipticCurvePrivateKey):
            raise ValueError("the key is not an EC key on the curve P-256")
        return cls(key)

    def to_pem(self) -> bytes:
        """PKCS #8, unencrypted: keep it in a file of mode 0600."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def sign(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        r, s = decode_dss_signature(self._key.sign(data, ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def public_jwk(self) -> dict[str, Any]:
        return {**self._point, "kid": self.kid, "use": "sig", "alg": self.alg}

    def __repr__(self) -> str:
        return f"P256Signer({self.kid})"


def _point(key: "EllipticCurvePrivateKey") -> dict[str, str]:
    """The public key's members of RFC 7518 section 6.2.1."""
    numbers = key.public_key().public_numbers()
    x, y = (urlsafe_b64encode(n.to_bytes(32, "big")).rstrip(b"=").decode() for n in (numbers.x, numbers.y))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}
