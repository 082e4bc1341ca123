"""Who a bearer token is. Genuine is not enough: marks, roles and registrations are looked up at every request."""

import hmac
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.gate import open_token, parse_object, split
from carnet.token.marks import marks
from carnet.token.names import LEEWAY, TYP_ACCESS, TYP_GUARD, TYP_SESSION
from carnet.token.verify import living
from carnet_broker.core.registry import Operator, Registry
from carnet_broker.core.rows import Revocation
from carnet_broker.core.standing import killer, reason_of
from carnet_broker.service.context import SYSTEM, Context
from carnet_broker.service.principals import Bearer, Kind, Principal

TOLD = 3600  # seconds after its end in which a child's token still learns why its delegation ended

__all__ = ["TOLD", "caller", "credential_mark", "ended_by", "genuine", "host_name", "verify_access"]


async def caller(ctx: Context, token: str, accept: Collection[Bearer]) -> Claims | Principal | Refusal:
    """Claims of a run's or a child's token, or the guard or operator that the token names."""
    kind = _typ(token)
    if isinstance(kind, Refusal):
        return kind
    if kind == TYP_ACCESS and Bearer.ENDED in accept:
        claims = await verify_access(ctx, token)
        if isinstance(claims, Refusal) and claims.reason is not Reason.TOKEN_KEY:  # nobody knows who signed that one
            claims = await _of_an_ended(ctx, token, claims)
        return claims if isinstance(claims, Refusal) else _accepted(claims, accept)
    if kind == TYP_ACCESS and not {Bearer.ROOT, Bearer.CHILD}.isdisjoint(accept):
        claims = await verify_access(ctx, token)
        return claims if isinstance(claims, Refusal) else _accepted(claims, accept)
    if kind == TYP_GUARD and Bearer.GUARD in accept:
        return await _guard(ctx, token)
    if kind == TYP_SESSION and Bearer.SESSION in accept:
        return await _operator(ctx, token)
    return Refusal(Reason.TOKEN_TYP, "A token of this kind does not open this door.")


async def verify_access(ctx: Context, token: str) -> Claims | Refusal:
    """The claims of a genuine, living run's or child's token, whatever its audience."""
    opened = genuine(ctx, token)
    if isinstance(opened, Refusal):
        return opened
    claims, kid = opened
    carried = marks(claims, host_name(ctx, claims))
    revoked = dict(await ctx.store.revoked(claims.tenant, carried))
    withdrawn = await ctx.store.revoked(SYSTEM, (f"key:{kid}",))
    if withdrawn:
        return Refusal(Reason.TOKEN_KEY, "The key that signed the token was withdrawn.")
    refused = living(claims.iat, claims.nbf, claims.exp, (), {}, await ctx.store.now())
    if refused is None:
        refused = ended_by(revoked, carried, claims.iat)
    if refused is None:
        refused = _unregistered(ctx, claims)
    return claims if refused is None else refused


def genuine(ctx: Context, token: str) -> tuple[Claims, str] | Refusal:
    """Claims and key of a genuine token, alive or not."""
    opened = ctx.verified.genuine(token, keys=ctx.keys.keyset(), issuer=ctx.issuer, audiences=_audiences(ctx))
    if isinstance(opened, Refusal):
        return opened
    if not opened.claims.is_root and host_name(ctx, opened.claims) is None:
        return Refusal(Reason.TOKEN_AUD, "The token's audience is no host of its tenant.")
    return opened.claims, opened.kid


def _unregistered(ctx: Context, claims: Claims) -> Refusal | None:
    """What was taken out of the registry while its tokens live has no say any more."""
    registry = ctx.registries.get(claims.tenant)
    gone = registry.strangers(claims.delegation.chain) if registry is not None else ()
    return Refusal(Reason.TOKEN_ENDED, f"Not registered any more: {', '.join(gone)}.") if gone else None


def host_name(ctx: Context, claims: Claims) -> str | None:
    """The host of the token's tenant that its audience belongs to; None for a root token."""
    registry = ctx.registries.get(claims.tenant)
    hosts = registry.hosts.values() if registry is not None else ()
    return next((host.name for host in hosts if host.audience == claims.aud), None)


def ended_by(revoked: Mapping[str, Revocation], carried: Iterable[str], issued: int) -> Refusal | None:
    """The refusal that the oldest mark gives which kills what was issued then."""
    first = killer(revoked.values(), dict.fromkeys(carried, issued))
    return None if first is None else Refusal(reason_of(first.reason), f"{first.mark} is revoked.")


def credential_mark(operator: Operator) -> str:
    """A name for the passphrase record of an operator that tells nothing about it."""
    return sha256(b"carnet-session\x00" + (operator.passphrase or "").encode()).hexdigest()[:16]


def _audiences(ctx: Context) -> frozenset[str]:
    hosts = (host.audience for registry in ctx.registries.values() for host in registry.hosts.values())
    return frozenset({ctx.issuer, *hosts})


def _accepted(claims: Claims, accept: Collection[Bearer]) -> Claims | Refusal:
    if claims.is_root:
        return claims if Bearer.ROOT in accept else Refusal(Reason.ROOT_TOKEN)
    return claims if Bearer.CHILD in accept else Refusal(Reason.TOKEN_AUD, "The token is not for this door.")


def _typ(token: str) -> str | Refusal:
    parts = split(token)
    header = parts if isinstance(parts, Refusal) else parse_object(parts.header, "header")
    if isinstance(header, Refusal):
        return header
    typ = header.get("typ")
    return typ if isinstance(typ, str) else Refusal(Reason.TOKEN_TYP)


async def _of_an_ended(ctx: Context, token: str, refused: Refusal) -> Claims | Refusal:
    """A child whose delegation has ended is still told so, for an hour after its token's end."""
    opened = genuine(ctx, token)
    if isinstance(opened, Refusal):
        return opened
    claims = opened[0]
    told = not claims.is_root and await ctx.store.now() < claims.exp + TOLD
    return claims if told else refused


async def _guard(ctx: Context, token: str) -> Principal | Refusal:
    payload = await _own_payload(ctx, token, TYP_GUARD, {"client_id", "host"})
    if isinstance(payload, Refusal):
        return payload
    tenant, client = payload["tenant"], payload["client_id"]
    registered = _registry(ctx, tenant)
    known = registered.clients.get(client) if registered is not None else None
    if known is None or known.host is None or known.host != payload["host"]:
        return Refusal(Reason.TOKEN_ENDED, "The guard's client is not registered for this host any more.")
    carried = (f"tenant:{tenant}", f"client:{client}", f"host:{known.host}")
    ended = ended_by(await ctx.store.revoked(tenant, carried), carried, payload["iat"])
    if ended is not None:
        return ended
    return Principal(kind=Kind.HOST, tenant=tenant, name=known.host, client=client)


async def _operator(ctx: Context, token: str) -> Principal | Refusal:
    payload = await _own_payload(ctx, token, TYP_SESSION, {"proof"})
    if isinstance(payload, Refusal):
        return Refusal(Reason.OPERATOR_AUTH)
    registered = _registry(ctx, payload["tenant"])
    operator = registered.operators.get(payload["sub"]) if registered is not None else None
    if operator is None or not hmac.compare_digest(credential_mark(operator), payload["proof"]):
        return Refusal(Reason.OPERATOR_AUTH)
    return Principal(kind=Kind.OPERATOR, tenant=payload["tenant"], name=operator.name, role=operator.role)


async def _own_payload(ctx: Context, token: str, typ: str, more: set[str]) -> dict[str, Any] | Refusal:
    """The payload of a token that the broker made for its own doors: closed set of typed members, in time."""
    opened = open_token(token, ctx.keys.keyset(), typ=typ)
    if isinstance(opened, Refusal):
        return opened
    header, payload = opened
    texts = {"iss", "aud", "sub", "tenant", *more}
    if payload.keys() != texts | {"iat", "exp"} or any(type(payload[name]) is not str for name in texts):
        return Refusal(Reason.TOKEN_CLAIM)
    if type(payload["iat"]) is not int or type(payload["exp"]) is not int:
        return Refusal(Reason.TOKEN_CLAIM)
    if payload["iss"] != ctx.issuer or payload["aud"] != ctx.issuer:
        return Refusal(Reason.TOKEN_AUD)
    if await ctx.store.revoked(SYSTEM, (f"key:{header['kid']}",)):
        return Refusal(Reason.TOKEN_KEY)
    now = await ctx.store.now()
    if now >= payload["exp"]:
        return Refusal(Reason.TOKEN_EXPIRED)
    return payload if payload["iat"] <= now + LEEWAY else Refusal(Reason.TOKEN_NOT_YET)


def _registry(ctx: Context, tenant: str) -> Registry | None:
    return ctx.registries.get(tenant)
