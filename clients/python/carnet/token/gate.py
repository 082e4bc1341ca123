"""The strict gate: everything that is checked before claims are looked at, for every kind of token that we sign.

PyJWT alone takes a token of another kind, headers that name keys, members named twice, padding and more. The gate
refuses these first; then the one key that `kid` names verifies the signature with its one algorithm. Nothing
in a token is ever followed: no URL is fetched, no embedded key is used (RFC 8725 sections 3.1 to 3.12).
"""

import re
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from carnet.reasons import Reason, Refusal
from carnet.token.keyset import Keys, VerifyKey
from carnet.token.names import MAX_DEPTH, MAX_MEMBERS, MAX_TOKEN_BYTES
from carnet.token.strict import DuplicateMember, NotStrict, loads

__all__ = ["HeaderRule", "Segments", "open_bytes", "open_signed", "open_token", "parse_object", "split"]

_HEADER = frozenset({"alg", "typ", "kid"})
_USUAL = re.compile(rb'{"alg":"([A-Za-z0-9]+)","kid":"([A-Za-z0-9_-]+)","typ":"([A-Za-z0-9+-]+)"}')
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE64URL = _BASE64[:62] + b"-_"
_FOREIGN = bytes(byte for byte in range(256) if byte not in _BASE64URL + b".")
# What no segment may hold becomes NUL, which the strict decoder refuses; so do "+", "/" and "=".
_TO_BASE64 = bytes.maketrans(_BASE64URL + _FOREIGN, _BASE64 + bytes(len(_FOREIGN)))
# By length modulo 4: the padding that was left out, and the last characters that are allowed. Before padding these are
# the ones whose unused low bits (4 or 2 of 6) are zero: one value, one spelling. One character alone is no byte.
_PADDING = (b"", b"", b"==", b"=")
_LAST = (_BASE64, b"", _BASE64[::16], _BASE64[::4])

HeaderRule = Callable[[Mapping[str, Any]], "VerifyKey | Refusal"]


class Segments(NamedTuple):
    """The three decoded parts of a compact JWS, and the bytes that are signed (RFC 7515 section 5.2)."""

    header: bytes
    payload: bytes
    signature: bytes
    signed: bytes


def open_token(token: object, keys: Keys, *, typ: str) -> tuple[dict[str, Any], dict[str, Any]] | Refusal:
    """Header and payload of a genuine token of this kind. `typ` is compared exactly: kinds cannot stand in for each
    other. Claims are not looked at."""
    opened = open_bytes(token, keys, typ=typ)
    if isinstance(opened, Refusal):
        return opened
    header, raw = opened
    payload = parse_object(raw, "payload")
    return payload if isinstance(payload, Refusal) else (header, payload)


def open_bytes(token: object, keys: Keys, *, typ: str) -> tuple[dict[str, Any], bytes] | Refusal:
    """As `open_token`, with the payload as it was signed: not yet known to be JSON."""
    return open_signed(token, lambda header: _our_header(header, keys, typ))


def open_signed(token: object, rule: HeaderRule) -> tuple[dict[str, Any], bytes] | Refusal:
    """Header and signed bytes. The rule picks the key from the header; its algorithm is the only one tried."""
    parts = split(token)
    if isinstance(parts, Refusal):
        return parts
    header = _header(parts.header)
    if isinstance(header, Refusal):
        return header
    key = rule(header)
    if isinstance(key, Refusal):
        return key
    if header.get("alg") != key.alg:
        return Refusal(Reason.TOKEN_ALG, f"the header's alg is not the key's algorithm {key.alg}")
    if not key.verifies(parts.signed, parts.signature):
        return Refusal(Reason.TOKEN_SIGNATURE)
    return header, parts.payload


def split(token: object) -> Segments | Refusal:
    """Size, alphabet, number and spelling of the segments: one token has one spelling."""
    if type(token) is not str:
        return Refusal(Reason.TOKEN_MALFORMED, "the token is no string")
    if len(token) > MAX_TOKEN_BYTES:
        return Refusal(Reason.TOKEN_SIZE)
    text = token.encode("ascii", "replace")  # "?" is no character of a segment
    parts = text.translate(_TO_BASE64).split(b".")
    if len(parts) != 3:
        return Refusal(Reason.TOKEN_MALFORMED, "the token has not exactly three segments")
    header, payload, signature = map(_decoded, parts)
    if header is None or payload is None or signature is None:
        return Refusal(Reason.TOKEN_MALFORMED, "a segment of the token is no canonical base64url")
    return Segments(header, payload, signature, text[: text.rindex(b".")])


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


def _header(raw: bytes) -> dict[str, Any] | Refusal:
    """The usual spelling is read by one expression that leaves nothing open; everything else is parsed."""
    usual = _USUAL.fullmatch(raw)
    if usual is None:
        return parse_object(raw, "header")
    alg, kid, typ = usual.groups()
    return {"alg": alg.decode(), "kid": kid.decode(), "typ": typ.decode()}


def _our_header(header: Mapping[str, Any], keys: Keys, typ: str) -> VerifyKey | Refusal:
    if header.keys() != _HEADER:
        return Refusal(Reason.TOKEN_HEADER, "the header has not exactly alg, typ and kid")
    if header["typ"] != typ:
        return Refusal(Reason.TOKEN_TYP, f"the token's typ is not {typ}")
    kid = header["kid"]
    key = keys.find(kid) if type(kid) is str else None
    return Refusal(Reason.TOKEN_KEY) if key is None else key


def _decoded(segment: bytes) -> bytes | None:
    rest = len(segment) % 4
    if not segment or segment[-1] not in _LAST[rest]:
        return None
    try:
        return a2b_base64(segment + _PADDING[rest], strict_mode=True)
    except ValueError:
        return None
