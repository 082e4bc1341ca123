"""End: a parent closes its run or ends a child, a child ends itself. One mark, however many descendants."""

from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.rows import FOREVER, Delegation, Revocation
from carnet_broker.core.status import State
from carnet_broker.service.context import Context
from carnet_broker.service.lines import by_claims, by_delegation
from carnet_broker.service.settling import Plan, refuse, settle
from carnet_broker.service.showing import delegation_view, known, look_up
from carnet_broker.service.views import DelegationView
from carnet_broker.store.base import Change, Conflict, Key

__all__ = ["GRACE", "end", "ended_key"]

GRACE = 3600  # seconds after its run's end for which the key of an `ended` record is kept
_REASONS = {"completed": Reason.COMPLETED, "run_closed": Reason.RUN_CLOSED}


async def end(ctx: Context, caller: Claims, delegation: str, reason: str, trace: str) -> DelegationView | Refusal:
    """By the run's root token, or by a token of that very delegation. What has ended stays ended as it did."""
    registry, why = ctx.registry(caller.tenant), _REASONS.get(reason)
    if isinstance(registry, Refusal):
        return registry
    found = await look_up(ctx, caller.tenant, delegation)
    own = found is not None and (caller.delegation.id == delegation or (caller.is_root and caller.txn == found.row.run))
    if found is None or not own or why is None:
        code = Reason.NOT_FOUND if why is not None else Reason.REQUEST_INVALID
        line = replace(by_claims(caller, Event.REVOKE_REFUSED, trace), facts={"delegation": delegation[:128]})
        return await refuse(ctx.store, line, Refusal(code, "The caller may end no delegation of this id this way."))
    row = found.row
    if found.status.state is not State.ENDED:
        actor = f"agent:{caller.delegation.agent}"
        outcome = await settle(ctx.store, lambda now: _plan(row, why, actor, trace, now))
        if isinstance(outcome, Refusal | Conflict):
            return outcome if isinstance(outcome, Refusal) else Refusal(Reason.CONTENDED)
    return await delegation_view(ctx, registry, await known(ctx, row))


def ended_key(row: Delegation) -> Key:
    """Under this key a delegation has one `ended` record, whoever writes it first."""
    return Key(
        caller="broker",
        delegation=row.id,
        key=f"ended:{row.id}",
        request="0" * 64,
        row=row.id,
        until=row.live_until + GRACE,
    )


async def _plan(row: Delegation, why: Reason, actor: str, trace: str, now: int) -> Plan[None] | Refusal:
    mark = f"dlg:{row.id}"
    line = by_delegation(row, Event.ENDED, actor, trace, now)
    line = replace(line, reason=why.value, mark=mark, cause=mark)
    gone = Revocation(tenant=row.tenant, mark=mark, until=FOREVER, at=now, reason=why.value, actor=actor)
    return Plan(Change(tenant=row.tenant, at=now, records=(line,), key=ended_key(row), revoke=(gone,)), None)
