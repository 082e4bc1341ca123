"""Edits a genuine token and signs it again: with the right key, a wrong one, or none."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

from carnet.token.signer import P256Signer
from tests.cases.verdict import CaseFailed
from tests.cases.writing import to_json

__all__ = ["Forge", "encoded"]

TIME = re.compile(r"now(?:([+-])([0-9]+))?")
TEXT_TIME = re.compile(r"str\((now(?:[+-][0-9]+)?)\)")
PLACE = re.compile(r"@([a-z_]+)(?:\[:([0-9]+)\])?")


def encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class Forge:
    """header, claims: of the genuine token. keys: signers by kid. extra: values of placeholders beside the claims."""

    def __init__(
        self,
        header: Mapping[str, Any],
        claims: Mapping[str, Any],
        keys: Mapping[str, P256Signer],
        attacker: P256Signer,
        extra: Mapping[str, Any],
    ) -> None:
        self.header, self.claims = dict(header), dict(claims)
        self._keys, self._attacker = keys, attacker
        self._now = int(claims["iat"])
        self._kid = str(header["kid"])
        self._places = {**{name: value for name, value in claims.items() if isinstance(value, str)}, **extra}

    def filled(self, value: Any) -> Any:
        """Times and placeholders filled in, at any depth."""
        if isinstance(value, Mapping):
            return {key: self.filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, str):
            return value
        if found := TEXT_TIME.fullmatch(value):
            return str(self._time(found[1]))
        if TIME.fullmatch(value):
            return self._time(value)
        whole = PLACE.fullmatch(value)
        if whole and whole[1] in self._places and whole[2] is None:
            return self._places[whole[1]]
        return PLACE.sub(self._filled_place, value)

    def _time(self, text: str) -> int:
        found = TIME.fullmatch(text)
        assert found is not None
        return self._now + int(f"{found[1] or '+'}{found[2] or 0}")

    def _filled_place(self, found: re.Match[str]) -> str:
        if found[1] not in self._places:
            return found[0]
        value = str(self._places[found[1]])
        return value[: int(found[2])] if found[2] else value

    def token(self, sign: str, given: Mapping[str, Any]) -> str:
        """given: raw_payload, raw_payload_append, raw_header_prepend as the case has them."""
        header = to_json(self.header)
        payload = str(given.get("raw_payload", to_json(self.claims)))
        if "raw_payload_append" in given:
            payload = f"{payload[:-1]},{given['raw_payload_append']}}}"
        if "raw_header_prepend" in given:
            header = f"{{{given['raw_header_prepend']},{header[1:]}"
        parts = (self.filled(header), payload)
        signed = ".".join(encoded(part.encode("utf-8", "surrogatepass")) for part in parts)
        return f"{signed}.{encoded(self._signature(sign, signed.encode()))}"

    def _signature(self, sign: str, data: bytes) -> bytes:
        ways: Mapping[str, Callable[[], bytes]] = {
            "active": lambda: self._keys.get(str(self.header.get("kid", "")), self._keys[self._kid]).sign(data),
            "attacker": lambda: self._attacker.sign(data),
            "none": lambda: b"",
            "hmac-public-pem": lambda: hmac.digest(self._public("PEM"), data, hashlib.sha256),
            "hmac-public-der": lambda: hmac.digest(self._public("DER"), data, hashlib.sha256),
            "hmac-empty": lambda: hmac.digest(b"", data, hashlib.sha256),
        }
        if sign not in ways:
            raise CaseFailed(f"unknown way to sign {sign!r}")
        return ways[sign]()

    def _public(self, form: str) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

        private = load_pem_private_key(self._keys[self._kid].to_pem(), None)
        return private.public_key().public_bytes(getattr(Encoding, form), PublicFormat.SubjectPublicKeyInfo)
