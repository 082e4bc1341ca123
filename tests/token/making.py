"""Tokens for tests: genuine ones by the product's own minting, and forgeries signed with the real key."""

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from carnet.token.claims import Claims, DelegationClaim, actors, child_jti, detail, root_jti, to_payload
from carnet.token.names import DELEGATION
from carnet.token.sign import Signer, mint
from carnet_broker.keys import KeyRing

__all__ = [
    "AUD",
    "CLIENT",
    "HOST",
    "ISS",
    "NOW",
    "RING",
    "b64",
    "child",
    "compact",
    "forged",
    "hs256",
    "minted",
    "payload_of",
    "root",
    "with_delegation",
]

NOW = 1_800_000_000
ISS = "https://broker.example"
AUD = "https://crm.example"
HOST = "crm"
CLIENT = "support-prod"
RING = KeyRing.ephemeral()
RUN = "dlg_run0000000000000001"
DLG = "dlg_kid0000000000000001"


def child(*, level: int = 0, now: int = NOW, ttl: int | None = None, jkt: str | None = None) -> Claims:
    chain = ((RUN, "support", CLIENT), (DLG, "researcher", CLIENT))
    return Claims(
        iss=ISS,
        sub="agent:support",
        aud=AUD,
        client_id=CLIENT,
        act=actors(chain),
        scope=("read_ticket", "refund"),
        authorization_details=(detail(AUD, "refund", {"amount": {"max": 20}}, 1),),
        jkt=jkt,
        jti=child_jti(DLG, HOST, jkt),
        iat=now,
        nbf=now,
        exp=now + (ttl or {0: 900, 1: 600, 2: 300}[level]),
        txn=RUN,
        tenant="acme",
        delegation=DelegationClaim(
            id=DLG,
            chain=chain,
            level=level,
            depth=1,
            agent="researcher",
            approval_id="apr_0000000000000001",
            policy_id="support-tools",
            policy_version=3,
            policy_digest="a" * 64,
            payload_sha256="b" * 64,
            resource_limit=3,
            trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
        ),
    )


def root(now: int = NOW) -> Claims:
    base = child(now=now)
    return replace(
        base,
        aud=ISS,
        act=None,
        scope=(),
        authorization_details=(),
        jti=root_jti(RUN, now),
        delegation=replace(
            base.delegation,
            id=RUN,
            chain=base.delegation.chain[:1],
            depth=0,
            agent="support",
            approval_id=None,
            payload_sha256=None,
            resource_limit=None,
        ),
    )


def minted(claims: Claims, signer: Signer | None = None) -> str:
    token = mint(claims, signer or RING.active)
    assert isinstance(token, str), token
    return token


def payload_of(claims: Claims, **changes: Any) -> dict[str, Any]:
    """The payload with members replaced; None removes one."""
    payload = {**to_payload(claims), **changes}
    return {name: value for name, value in payload.items() if value is not None}


def with_delegation(claims: Claims, **changes: Any) -> dict[str, Any]:
    """The payload with members of the private object replaced."""
    payload = to_payload(claims)
    payload[DELEGATION] = {**payload[DELEGATION], **changes}
    return payload


def b64(raw: bytes | str) -> str:
    return urlsafe_b64encode(raw.encode() if isinstance(raw, str) else raw).rstrip(b"=").decode()


def compact(header: bytes | str, payload: bytes | str, sign: Callable[[bytes], bytes] = RING.active.sign) -> str:
    """Sign whatever texts these are."""
    signed = f"{b64(header)}.{b64(payload)}"
    return f"{signed}.{b64(sign(signed.encode()))}"


def forged(
    payload: Mapping[str, Any] | bytes | str,
    header: Mapping[str, Any] | bytes | str | None = None,
    sign: Callable[[bytes], bytes] = RING.active.sign,
) -> str:
    """A token with this payload and header, signed with the real key unless told otherwise. A mapping as header is laid
    over the right one; None as a value removes that member."""
    right = {"alg": "ES256", "kid": RING.active.kid, "typ": "at+jwt"}
    if header is None or isinstance(header, Mapping):
        header = json.dumps({name: value for name, value in {**right, **(header or {})}.items() if value is not None})
    body = json.dumps(payload) if isinstance(payload, Mapping) else payload
    return compact(header, body, sign)


def hs256(secret: bytes) -> Callable[[bytes], bytes]:
    return lambda signed: hmac.new(secret, signed, hashlib.sha256).digest()
