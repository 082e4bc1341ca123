"""Claims of the tokens that the broker gives out. No token is stored: a repeat signs the same claims again."""

from typing import Any

from carnet.reasons import Refusal
from carnet.token.claims import Claims, DelegationClaim, actors, child_jti, detail, root_jti
from carnet.token.names import ROOT_TTL, TYP_GUARD, TYP_SESSION
from carnet.token.sign import Signer, mint, sign
from carnet_broker.core.registry import Host
from carnet_broker.core.rows import Delegation
from carnet_broker.service.views import Issued

__all__ = ["GUARD_TTL", "SESSION_TTL", "child_token", "guard_token", "root_token", "session_token"]

GUARD_TTL = 900  # seconds
SESSION_TTL = 8 * 3600


def root_token(run: Delegation, issuer: str, now: int, signer: Signer) -> Issued | Refusal:
    """The run's own token: for the broker alone, no tool, at most 900 s inside the run's fixed end."""
    end = min(now + ROOT_TTL, run.live_until)
    claims = _claims(run, issuer, audience=issuer, jti=root_jti(run.id, now), start=now, end=end, host=None)
    token = mint(claims, signer)
    if isinstance(token, Refusal):
        return token
    return Issued(access_token=token, expires_in=end - now, audience=issuer, run=run.id, run_expires_at=run.live_until)


def child_token(
    row: Delegation, host: Host, issuer: str, *, start: int, end: int, now: int, signer: Signer
) -> Issued | Refusal:
    """The token of a delegation for one host. start, end: fixed by its approval, so every repeat is the same token."""
    jti = child_jti(row.id, host.name, row.jkt)
    claims = _claims(row, issuer, audience=host.audience, jti=jti, start=start, end=end, host=host)
    token = mint(claims, signer)
    if isinstance(token, Refusal):
        return token
    return Issued(access_token=token, expires_in=max(0, end - now), audience=host.audience)


def guard_token(tenant: str, client: str, host: str, issuer: str, now: int, signer: Signer) -> Issued | Refusal:
    """The bearer of every guard route. It opens no run and calls no tool."""
    payload = _own(issuer, tenant, client, now, GUARD_TTL) | {"client_id": client, "host": host}
    token = sign(payload, signer, TYP_GUARD)
    if isinstance(token, Refusal):
        return token
    return Issued(access_token=token, expires_in=GUARD_TTL, audience=issuer, scope="guard")


def session_token(tenant: str, operator: str, proof: str, issuer: str, now: int, signer: Signer) -> str | Refusal:
    """An operator's session. proof: mark of the credential it was opened with, so that a new passphrase ends it."""
    return sign(_own(issuer, tenant, operator, now, SESSION_TTL) | {"proof": proof}, signer, TYP_SESSION)


def _own(issuer: str, tenant: str, subject: str, now: int, ttl: int) -> dict[str, Any]:
    return {"iss": issuer, "aud": issuer, "sub": subject, "tenant": tenant, "iat": now, "exp": now + ttl}


def _claims(
    row: Delegation, issuer: str, *, audience: str, jti: str, start: int, end: int, host: Host | None
) -> Claims:
    tools = () if host is None else tuple(tool for tool in row.envelope.tools if tool in host.tools)
    ceilings = row.envelope.ceilings
    return Claims(
        iss=issuer,
        sub=row.sub,
        aud=audience,
        client_id=row.client,
        act=actors(row.chain),
        scope=tools,
        authorization_details=tuple(
            detail(audience, tool, ceilings[tool].get("args", {}), ceilings[tool].get("max_calls"))
            for tool in tools
            if tool in ceilings
        ),
        jkt=row.jkt,
        jti=jti,
        iat=start,
        nbf=start,
        exp=end,
        txn=row.run,
        tenant=row.tenant,
        delegation=DelegationClaim(
            id=row.id,
            chain=row.chain,
            level=row.envelope.level,
            depth=row.depth,
            agent=row.agent,
            approval_id=row.approval,
            policy_id=row.policy_id,
            policy_version=row.policy_version,
            policy_digest=row.policy_digest,
            payload_sha256=row.payload_sha256,
            resource_limit=row.envelope.resource_limit,
            trace_id=row.trace_id,
        ),
    )
