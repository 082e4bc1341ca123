"""Public keys by kid (RFC 7517) and their thumbprints (RFC 7638)."""

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from carnet.reasons import Reason, Refusal

if TYPE_CHECKING:
    from jwt import PyJWK

__all__ = ["KeySet", "Keys", "VerifyKey", "parse_client_jwks", "parse_jwks", "thumbprint"]

_COORDINATE = re.compile(r"[A-Za-z0-9_-]{43}")
_KID = re.compile(r"[\x21-\x7e]{1,256}")
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_PUBLISHED = frozenset({"kty", "crv", "x", "y", "kid", "use", "alg"})
_THUMBPRINT_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
_MAX_KEYS = 32


@dataclass(frozen=True, slots=True)
class VerifyKey:
    """One public key with the only algorithm that it may be used with. key: for PyJWT, which our tokens also fit."""

    kid: str
    alg: str
    key: "PyJWK" = field(repr=False, compare=False)
    verifies: Callable[[bytes, bytes], bool] = field(repr=False, compare=False)  # (signed bytes, signature)


class Keys(Protocol):
    """Where a verifier looks a kid up: a KeySet, or a KeyCache in front of an issuer."""

    def find(self, kid: str) -> VerifyKey | None: ...


class KeySet:
    """An immutable set of public keys."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[VerifyKey] = ()) -> None:
        self._keys: Mapping[str, VerifyKey] = MappingProxyType({key.kid: key for key in keys})

    @property
    def kids(self) -> frozenset[str]:
        return frozenset(self._keys)

    def find(self, kid: str) -> VerifyKey | None:
        return self._keys.get(kid)

    def only(self) -> VerifyKey | None:
        """The key, when there is exactly one: the only case in which a kid may be absent (client assertions)."""
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    def without(self, kids: Iterable[str]) -> "KeySet":
        """The set without withdrawn keys."""
        gone = frozenset(kids)
        return KeySet(key for kid, key in self._keys.items() if kid not in gone)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"KeySet({sorted(self._keys)})"


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """RFC 7638: base64url SHA-256 over the required members in order. Raises ValueError for a kty it does not know."""
    names = _THUMBPRINT_MEMBERS.get(jwk.get("kty", ""))
    if names is None or any(type(jwk.get(name)) is not str for name in names):
        raise ValueError("no thumbprint: the key lacks a required member or is of an unknown type")
    text = json.dumps({name: jwk[name] for name in names}, sort_keys=True, separators=(",", ":"))
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()


def parse_jwks(document: object) -> KeySet | Refusal:
    """An issuer's published key set. Closed: EC P-256 for ES256 signatures only, kid = thumbprint, nothing else."""
    return _parse(document, _published)


def parse_client_jwks(document: object) -> KeySet | Refusal:
    """Keys registered for a client. A kid is optional and free (default: the thumbprint); foreign public members are
    ignored as RFC 7517 section 4 asks; use, alg and key_ops, where present, must allow ES256 verification."""
    return _parse(document, _registered)


class _Rule(Protocol):
    def __call__(self, jwk: Mapping[str, Any]) -> str | Refusal: ...


def _parse(document: object, rule: _Rule) -> KeySet | Refusal:
    if type(document) is not dict or document.keys() != {"keys"}:
        return _bad("the key set is no object with the one member keys")
    listed = document["keys"]
    if type(listed) is not list or not 1 <= len(listed) <= _MAX_KEYS:
        return _bad(f"the key set does not hold 1 to {_MAX_KEYS} keys")
    found: dict[str, VerifyKey] = {}
    for jwk in listed:
        key = _key(jwk, rule)
        if isinstance(key, Refusal):
            return key
        if key.kid in found:
            return _bad("the key set names a kid twice (duplicate)")
        found[key.kid] = key
    return KeySet(found.values())


def _key(jwk: object, rule: _Rule) -> VerifyKey | Refusal:
    if type(jwk) is not dict:
        return _bad("a key of the set is no object")
    if not _PRIVATE.isdisjoint(jwk):
        return _bad("a key of the set has private members")
    if jwk.get("kty") != "EC" or jwk.get("crv") != "P-256":
        return _bad("a key of the set is not EC P-256")
    if any(type(jwk.get(name)) is not str or not _COORDINATE.fullmatch(jwk[name]) for name in ("x", "y")):
        return _bad("a key of the set has no coordinates of 32 bytes")
    kid = rule(jwk)
    return kid if isinstance(kid, Refusal) else _built(jwk, kid)


def _built(jwk: Mapping[str, Any], kid: str) -> VerifyKey | Refusal:
    from jwt import PyJWK, PyJWTError  # cryptography is loaded only where a key is used

    from carnet.token._es256 import verifier

    try:
        key = PyJWK({name: jwk[name] for name in ("kty", "crv", "x", "y")}, "ES256")
        return VerifyKey(kid, "ES256", key, verifier(key.key))
    except (PyJWTError, ValueError):
        return _bad("a key of the set is no point of the curve")


def _published(jwk: Mapping[str, Any]) -> str | Refusal:
    if jwk.keys() != _PUBLISHED or jwk["use"] != "sig" or jwk["alg"] != "ES256":
        return _bad("a key of the set is not published for ES256 signatures alone")
    if jwk["kid"] != thumbprint(jwk):
        return _bad("a kid of the set is not the thumbprint of its key")
    return str(jwk["kid"])


def _registered(jwk: Mapping[str, Any]) -> str | Refusal:
    if jwk.get("use", "sig") != "sig" or jwk.get("alg", "ES256") != "ES256":
        return _bad("a registered key is not for ES256 signatures")
    operations = jwk.get("key_ops", ["verify"])
    if type(operations) is not list or "verify" not in operations:
        return _bad("a registered key may not verify (key_ops)")
    kid = jwk.get("kid", thumbprint(jwk))
    if type(kid) is not str or not _KID.fullmatch(kid):
        return _bad("a registered key has no usable kid")
    return kid


def _bad(detail: str) -> Refusal:
    return Refusal(Reason.TOKEN_KEY, detail)
