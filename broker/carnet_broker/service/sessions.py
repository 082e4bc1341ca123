"""Operators' sessions: views, denials and revocations. A session never suffices to approve."""

from carnet.audit import Kind as Event
from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Operator, Registry
from carnet_broker.service.bearers import credential_mark
from carnet_broker.service.context import Context
from carnet_broker.service.lines import by_principal
from carnet_broker.service.principals import Kind, Principal
from carnet_broker.service.settling import note, refuse
from carnet_broker.service.tokens import SESSION_TTL, session_token
from carnet_broker.service.views import Session

__all__ = ["login"]

_FAILED = Refusal(Reason.OPERATOR_AUTH)  # one text for every cause


async def login(ctx: Context, tenant: str | None, operator: str, passphrase: str, trace: str) -> Session | Refusal:
    """tenant None: the one tenant that has an operator of this name. A failure for a name that nobody has leaves no
    record: it proves no tenant."""
    found = _find(ctx, tenant, operator)
    now = await ctx.store.now()
    if found is not None and not ctx.logins.may_try(found[0].tenant, operator, now):
        return Refusal(Reason.TOO_MANY_REQUESTS, "Too many wrong passphrases; wait a minute.")
    stored = None if found is None else found[1].passphrase
    proven = await ctx.proofs.holds(passphrase, stored)
    if found is None:
        return _FAILED
    registry, known = found
    who = Principal(kind=Kind.OPERATOR, tenant=registry.tenant, name=known.name, role=known.role)
    if not proven:
        ctx.logins.failed(registry.tenant, operator, now)
        return await refuse(ctx.store, by_principal(who, Event.LOGIN_REFUSED, trace), _FAILED)
    token = session_token(registry.tenant, known.name, credential_mark(known), ctx.issuer, now, ctx.keys.active)
    if isinstance(token, Refusal):
        return token
    await note(ctx.store, by_principal(who, Event.LOGGED_IN, trace))
    return Session(
        access_token=token,
        expires_in=SESSION_TTL,
        operator=known.name,
        role=known.role.name.lower(),
        tenant=registry.tenant,
    )


def _find(ctx: Context, tenant: str | None, operator: str) -> tuple[Registry, Operator] | None:
    registries = [row for name, row in ctx.registries.items() if tenant in (None, name)]
    found = [(row, row.operators[operator]) for row in registries if operator in row.operators]
    return found[0] if len(found) == 1 else None
