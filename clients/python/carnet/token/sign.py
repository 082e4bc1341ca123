"""Making tokens: one header, canonical compact JSON, one signature. What the verifier would refuse is never signed."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Protocol

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims, from_payload, to_payload
from carnet.token.names import MAX_TOKEN_BYTES, TYP_ACCESS

__all__ = ["Signer", "mint", "sign"]


class Signer(Protocol):
    """Holds one private key. `sign` answers the raw 64 bytes of RFC 7518 section 3.4 (r and s)."""

    @property
    def kid(self) -> str: ...

    @property
    def alg(self) -> str: ...

    def sign(self, data: bytes) -> bytes: ...

    def public_jwk(self) -> dict[str, Any]:
        """The public key as it is published: kty, crv, x, y, kid, use, alg."""
        ...


def mint(claims: Claims, signer: Signer, typ: str = TYP_ACCESS) -> str | Refusal:
    """The compact token, or token_too_large over 4096 bytes. Raises ValueError for claims that no verifier takes: that
    is a bug of the caller."""
    payload = to_payload(claims)
    read = from_payload(payload)
    if read != claims:
        raise ValueError(
            f"these claims contradict themselves: {read if isinstance(read, Refusal) else 'not read back'}"
        )
    return sign(payload, signer, typ)


def sign(payload: Mapping[str, Any], signer: Signer, typ: str) -> str | Refusal:
    """Sign any JSON object as a compact JWS of this kind."""
    header = {"alg": signer.alg, "kid": signer.kid, "typ": typ}
    signed = f"{_encoded(_canonical(header))}.{_encoded(_canonical(payload))}"
    if len(signed) + 87 > MAX_TOKEN_BYTES:  # "." and 86 characters of signature
        return Refusal(Reason.TOKEN_TOO_LARGE)
    return f"{signed}.{_encoded(signer.sign(signed.encode()))}"


def _canonical(obj: Mapping[str, Any]) -> bytes:
    return json.dumps(obj, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
