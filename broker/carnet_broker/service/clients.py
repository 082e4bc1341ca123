"""Client authentication (RFC 6749 §2.3.1, RFC 7523): every failure is the one `invalid_client`, whatever its cause."""

import hmac
from collections.abc import Iterator
from hashlib import sha256

from carnet.reasons import Reason, Refusal
from carnet.token.assertion import claimed_client, verify_assertion
from carnet.token.keyset import parse_client_jwks
from carnet.token.names import LEEWAY
from carnet_broker.core.registry import Client, Registry
from carnet_broker.service.context import Context
from carnet_broker.service.principals import Kind, Principal

__all__ = ["by_assertion", "by_secret"]

_FAILED = Refusal(Reason.CLIENT_AUTH)
_NOBODY = "0" * 64
_MIN_SECRET, _MAX_SECRET = 32, 1024  # bytes; what is shorter can be guessed, whoever registered its hash


async def by_secret(ctx: Context, client: str, secret: str) -> Principal | Refusal:
    """A client that proves a secret of 32 to 1024 bytes. The comparison takes the same time for a client that does not
    exist, and is made for a secret of another length too."""
    given = secret.encode("utf-8", "surrogatepass")
    sent = sha256(given).hexdigest()
    proven = None
    for registry, known in _named(ctx, client):
        if hmac.compare_digest(known.secret_sha256 or _NOBODY, sent) and known.secret_sha256 is not None:
            proven = _principal(registry, known)
    if proven is None:
        hmac.compare_digest(_NOBODY, sent)
    fits = _MIN_SECRET <= len(given) <= _MAX_SECRET
    return proven if proven is not None and fits else _FAILED


async def by_assertion(ctx: Context, assertion: str) -> Principal | Refusal:
    """A client that signs with a registered key. The assertion is used up, also by one that comes too late."""
    client = claimed_client(assertion)
    if isinstance(client, Refusal):
        return _FAILED
    now = await ctx.store.now()
    for registry, known in _named(ctx, client):
        keys = parse_client_jwks({"keys": [dict(jwk) for jwk in known.jwks]}) if known.jwks else _FAILED
        if isinstance(keys, Refusal):
            continue
        proven = verify_assertion(assertion, keys=keys, issuer=ctx.issuer, now=now)
        if isinstance(proven, Refusal) or proven.client_id != known.id:
            continue
        used = f"assertion:{known.id}:{sha256(proven.jti.encode()).hexdigest()}"
        if await ctx.store.once(registry.tenant, used, proven.exp + LEEWAY + 1):
            return _principal(registry, known) or _FAILED
    return _FAILED


def _named(ctx: Context, client: str) -> Iterator[tuple[Registry, Client]]:
    for registry in ctx.registries.values():
        known = registry.clients.get(client)
        if known is not None:
            yield registry, known


def _principal(registry: Registry, known: Client) -> Principal | None:
    if known.agent is not None:
        return Principal(kind=Kind.AGENT, tenant=registry.tenant, name=known.agent, client=known.id)
    if known.host is not None:
        return Principal(kind=Kind.HOST, tenant=registry.tenant, name=known.host, client=known.id)
    return None
