"""Client assertions (RFC 7523 with the audience rule of its revision): how a client proves who it is with a key.

The header is the client's own, so its rule is another one than for our tokens: typ `client-authentication+jwt`, `JWT`
or absent; kid optional while the client has one key; members that name keys or URLs are ignored, never followed; a
critical extension is refused. Single use of the jti is the caller's: it needs a store.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carnet.reasons import Reason, Refusal
from carnet.token._fields import Fault, number, text
from carnet.token.gate import HeaderRule, open_signed, parse_object, split
from carnet.token.keyset import KeySet, VerifyKey
from carnet.token.names import LEEWAY, MAX_TIME, TYP_CLIENT_AUTH

__all__ = ["MAX_LIFE", "Assertion", "claimed_client", "client_header", "verify_assertion"]

MAX_LIFE = 300  # seconds that an assertion may still live
_TYPES = frozenset({TYP_CLIENT_AUTH, "jwt"})


@dataclass(frozen=True, slots=True)
class Assertion:
    """A proven client. jti: to be used once until `exp` and leeway have passed."""

    client_id: str
    jti: str
    exp: int


def claimed_client(token: object) -> str | Refusal:
    """Who the assertion says it is from: unproven, good only for looking up that client's keys."""
    parts = split(token)
    if isinstance(parts, Refusal):
        return parts
    payload = parse_object(parts.payload, "payload")
    if isinstance(payload, Refusal):
        return payload
    try:
        return text(payload, "iss") if "iss" in payload else Refusal(Reason.TOKEN_CLAIM, "the assertion lacks iss")
    except Fault as fault:
        return fault.refusal


def verify_assertion(token: object, *, keys: KeySet, issuer: str, now: int) -> Assertion | Refusal:
    """The client that holds one of `keys`, or why not. issuer: ours, the only audience that is accepted."""
    opened = open_signed(token, client_header(keys))
    if isinstance(opened, Refusal):
        return opened
    payload = parse_object(opened[1], "payload")
    if isinstance(payload, Refusal):
        return payload
    try:
        return _read(payload, issuer, now)
    except Fault as fault:
        return fault.refusal


def client_header(keys: KeySet) -> HeaderRule:
    """The header rule of assertions, over one client's keys."""
    return lambda header: _pick(header, keys)


def _pick(header: Mapping[str, Any], keys: KeySet) -> VerifyKey | Refusal:
    if "crit" in header or "b64" in header:
        return Refusal(Reason.TOKEN_HEADER, "the header names a critical extension (crit)")
    typ = header.get("typ", "JWT")
    if type(typ) is not str or typ.lower().removeprefix("application/") not in _TYPES:
        return Refusal(Reason.TOKEN_TYP, f"the assertion's typ is not {TYP_CLIENT_AUTH} or JWT")
    if "kid" not in header:
        key = keys.only()
        return (
            Refusal(Reason.TOKEN_KEY, "the assertion needs a kid: the client has several keys") if key is None else key
        )
    kid = header["kid"]
    key = keys.find(kid) if type(kid) is str else None
    return Refusal(Reason.TOKEN_KEY, "the assertion's kid is none of the client's keys") if key is None else key


def _read(payload: Mapping[str, Any], issuer: str, now: int) -> Assertion | Refusal:
    for name in ("iss", "sub", "aud", "exp", "jti"):
        if name not in payload:
            raise Fault(f"the assertion lacks the claim {name}")
    client = text(payload, "iss")
    if text(payload, "sub") != client:
        raise Fault("iss and sub of the assertion differ", Reason.TOKEN_ISS)
    if payload["aud"] != issuer and payload["aud"] != [issuer]:
        raise Fault("the assertion's aud is not this issuer alone", Reason.TOKEN_AUD)
    exp = number(payload, "exp", 1, MAX_TIME)
    if now >= exp + LEEWAY:
        return Refusal(Reason.TOKEN_EXPIRED)
    if exp > now + MAX_LIFE + LEEWAY:
        return Refusal(Reason.TOKEN_LIFETIME, f"the assertion's exp is more than {MAX_LIFE} s ahead")
    for name in ("iat", "nbf"):
        if name in payload and number(payload, name, 1, MAX_TIME) > now + LEEWAY:
            return Refusal(Reason.TOKEN_NOT_YET)
    return Assertion(client, text(payload, "jti"), exp)
