"""The one verifier, for guards and broker alike: is this token genuine, for me, and alive?

No argument weakens a check. What can change after a token was verified (its expiry, revocations) is `alive`, which a
cache repeats on every hit.
"""

from collections.abc import Collection
from typing import NamedTuple

from carnet.reasons import Reason, Refusal
from carnet.token._spelling import read_usual
from carnet.token.claims import Claims, from_payload
from carnet.token.gate import open_bytes, parse_object
from carnet.token.keyset import Keys
from carnet.token.marks import Revoked, dead, marks
from carnet.token.names import LEEWAY, LEVEL_TTL, ROOT_TTL, TYP_ACCESS

__all__ = ["Genuine", "alive", "living", "verify", "verify_genuine"]


class Genuine(NamedTuple):
    """Claims of a genuine token and the key that proves it; not yet known to be alive."""

    claims: Claims
    kid: str


def verify(
    token: object,
    *,
    keys: Keys,
    issuer: str,
    audience: str | Collection[str],
    revoked: Revoked,
    now: int,
    host: str | None = None,
) -> Claims | Refusal:
    """The claims of a genuine, living token, or why not.

    audience: the verifier's own, compared exactly; several where one verifier serves several (a broker: itself and its
    hosts). now: Unix seconds. host: name of the host, for its mark.
    """
    genuine = verify_genuine(token, keys=keys, issuer=issuer, audience=audience)
    if isinstance(genuine, Refusal):
        return genuine
    refused = alive(genuine.claims, revoked, now, host)
    return genuine.claims if refused is None else refused


def verify_genuine(token: object, *, keys: Keys, issuer: str, audience: str | Collection[str]) -> Genuine | Refusal:
    """The part of `verify` that stays true: signature, claims, issuer, audience, lifetime. Alone it proves no life."""
    opened = open_bytes(token, keys, typ=TYP_ACCESS)
    if isinstance(opened, Refusal):
        return opened
    header, raw = opened
    claims = _read(raw)
    if isinstance(claims, Refusal):
        return claims
    refused = _for_me(claims, issuer, audience)
    return Genuine(claims, header["kid"]) if refused is None else refused


def alive(claims: Claims, revoked: Revoked, now: int, host: str | None = None) -> Refusal | None:
    """What must be asked again each time: nbf and exp with 5 s of leeway, and the marks."""
    return living(claims.iat, claims.nbf, claims.exp, marks(claims, host), revoked, now)


def living(iat: int, nbf: int, exp: int, carried: Collection[str], revoked: Revoked, now: int) -> Refusal | None:
    """`alive` for one who has computed the marks before."""
    if now >= exp + LEEWAY:
        return Refusal(Reason.TOKEN_EXPIRED)
    if nbf > now + LEEWAY or iat > now + LEEWAY:
        return Refusal(Reason.TOKEN_NOT_YET)
    mark = dead(carried, iat, revoked)
    return None if mark is None else Refusal(Reason.REVOKED, f"{mark} is revoked")


def _read(raw: bytes) -> Claims | Refusal:
    claims = read_usual(raw)
    if claims is not None:
        return claims
    payload = parse_object(raw, "payload")
    return payload if isinstance(payload, Refusal) else from_payload(payload)


def _for_me(claims: Claims, issuer: str, audience: str | Collection[str]) -> Refusal | None:
    if claims.iss != issuer:
        return Refusal(Reason.TOKEN_ISS)
    mine = (audience,) if isinstance(audience, str) else audience
    if claims.aud not in mine:
        return Refusal(Reason.ROOT_TOKEN if claims.is_root else Reason.TOKEN_AUD)
    longest = ROOT_TTL if claims.is_root else LEVEL_TTL[claims.delegation.level]
    if claims.exp - claims.iat > longest:
        return Refusal(Reason.TOKEN_LIFETIME)
    return None
