"""The strict gate: everything that is checked before claims are looked at, for every kind of token that we sign.

PyJWT alone takes a token of another kind, headers that name keys, members named twice, padding and more. The gate
refuses these first; PyJWT then verifies the signature with the one algorithm of the one key that `kid` names. Nothing
in a token is ever followed: no URL is fetched, no embedded key is used (RFC 8725 sections 3.1 to 3.12).
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from carnet.reasons import Reason, Refusal
from carnet.token.keyset import Keys, VerifyKey
from carnet.token.names import MAX_DEPTH, MAX_MEMBERS, MAX_TOKEN_BYTES
from carnet.token.strict import DuplicateMember, NotStrict, loads

__all__ = ["HeaderRule", "Segments", "open_signed", "open_token", "parse_object", "split"]

_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = frozenset({"alg", "typ", "kid"})
_SIGNATURE_BYTES = 64

HeaderRule = Callable[[Mapping[str, Any]], "VerifyKey | Refusal"]


class Segments(NamedTuple):
    """The three decoded parts of a compact JWS."""

    header: bytes
    payload: bytes
    signature: bytes


def open_token(token: object, keys: Keys, *, typ: str) -> tuple[dict[str, Any], dict[str, Any]] | Refusal:
    """Header and payload of a genuine token of this kind. `typ` is compared exactly: kinds cannot stand in for each
    other. Claims are not looked at."""
    opened = open_signed(token, lambda header: _our_header(header, keys, typ))
    if isinstance(opened, Refusal):
        return opened
    header, raw = opened
    payload = parse_object(raw, "payload")
    return payload if isinstance(payload, Refusal) else (header, payload)


def open_signed(token: object, rule: HeaderRule) -> tuple[dict[str, Any], bytes] | Refusal:
    """Header and signed bytes. The rule picks the key from the header; its algorithm is the only one tried."""
    parts = split(token)
    if isinstance(parts, Refusal):
        return parts
    header = parse_object(parts.header, "header")
    if isinstance(header, Refusal):
        return header
    key = rule(header)
    if isinstance(key, Refusal):
        return key
    if header.get("alg") != key.alg:
        return Refusal(Reason.TOKEN_ALG, f"the header's alg is not the key's algorithm {key.alg}")
    if not _genuine(str(token), key):
        return Refusal(Reason.TOKEN_SIGNATURE)
    return header, parts.payload


def split(token: object) -> Segments | Refusal:
    """Size, alphabet, number and spelling of the segments: one token has one spelling."""
    if type(token) is not str:
        return Refusal(Reason.TOKEN_MALFORMED, "the token is no string")
    if len(token) > MAX_TOKEN_BYTES:
        return Refusal(Reason.TOKEN_SIZE)
    parts = token.split(".")
    if len(parts) != 3:
        return Refusal(Reason.TOKEN_MALFORMED, "the token has not exactly three segments")
    decoded = [_decoded(part) for part in parts]
    header, payload, signature = decoded
    if header is None or payload is None or signature is None:
        return Refusal(Reason.TOKEN_MALFORMED, "a segment of the token is no canonical base64url")
    return Segments(header, payload, signature)


def parse_object(raw: bytes, where: str) -> dict[str, Any] | Refusal:
    """One strict JSON object within the limits of a token."""
    try:
        value = loads(raw, max_depth=MAX_DEPTH, max_members=MAX_MEMBERS)
    except DuplicateMember:
        return Refusal(Reason.TOKEN_DUPLICATE, f"the {where} names a member twice (duplicate)")
    except NotStrict as fault:
        return Refusal(Reason.TOKEN_MALFORMED, f"the {where} is no strict JSON: {fault}")
    if type(value) is not dict:
        return Refusal(Reason.TOKEN_MALFORMED, f"the {where} is no JSON object")
    return value


def _our_header(header: Mapping[str, Any], keys: Keys, typ: str) -> VerifyKey | Refusal:
    if header.keys() != _HEADER:
        return Refusal(Reason.TOKEN_HEADER, "the header has not exactly alg, typ and kid")
    if header["typ"] != typ:
        return Refusal(Reason.TOKEN_TYP, f"the token's typ is not {typ}")
    kid = header["kid"]
    key = keys.find(kid) if type(kid) is str else None
    return Refusal(Reason.TOKEN_KEY) if key is None else key


def _decoded(segment: str) -> bytes | None:
    if _SEGMENT.fullmatch(segment) is None:
        return None
    try:
        raw = urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    except ValueError:
        return None
    return raw if urlsafe_b64encode(raw).rstrip(b"=").decode() == segment else None


def _genuine(token: str, key: VerifyKey) -> bool:
    import jwt  # cryptography is loaded only where a signature is checked

    try:
        jwt.api_jws.decode(token, key.key, algorithms=[key.alg])
    except jwt.PyJWTError:
        return False
    return True
