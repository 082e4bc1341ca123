"""Introspection (RFC 7662): the claims of a living token, for those whose business it is; for others it is inactive."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from carnet.audit import Kind as Event
from carnet.reasons import Refusal
from carnet.token.claims import Claims, to_payload
from carnet_broker.service.bearers import host_name, verify_access
from carnet_broker.service.context import Context
from carnet_broker.service.lines import by_claims
from carnet_broker.service.principals import Kind, Principal
from carnet_broker.service.settling import note

__all__ = ["introspect"]


async def introspect(ctx: Context, client: Principal, token: str) -> Mapping[str, Any]:
    """§2.2: a host's client sees tokens for its own audience, an agent's client those of its own runs."""
    claims = await verify_access(ctx, token)
    if isinstance(claims, Refusal) or not _concerns(ctx, client, claims):
        return {"active": False}
    line = by_claims(claims, Event.INTROSPECTED, claims.delegation.trace_id)
    await note(ctx.store, replace(line, actor=client.actor))
    return {"active": True, "token_type": "Bearer", **to_payload(claims)}


def _concerns(ctx: Context, client: Principal, claims: Claims) -> bool:
    if claims.tenant != client.tenant:
        return False
    if client.kind is Kind.HOST:
        return host_name(ctx, claims) == client.name
    return client.kind is Kind.AGENT and claims.client_id == client.client
