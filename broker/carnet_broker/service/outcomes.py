"""Finish: how a call ended, as its guard reports it. Reporting the same again changes nothing."""

from dataclasses import replace

from carnet.audit import Kind as Event
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.lifecycle import CallEvent, advance
from carnet_broker.core.rows import Call, CallState
from carnet_broker.service.context import Context
from carnet_broker.service.guarding import guard_id, owner_of
from carnet_broker.service.lines import by_call
from carnet_broker.service.principals import Principal
from carnet_broker.service.settling import Plan, note, settle
from carnet_broker.store.base import Change, Conflict, Move

__all__ = ["finish"]

_EVENTS = {"done": CallEvent.DONE, "failed": CallEvent.FAIL, "unknown": CallEvent.LOSE}


async def finish(ctx: Context, guard: Principal | Claims, call: str, outcome: str, detail: str) -> str | Refusal:
    """The call's state after it. outcome: done, failed or unknown."""
    event = _EVENTS.get(outcome)
    if event is None:
        return Refusal(Reason.REQUEST_INVALID, "outcome must be done, failed or unknown.")
    opened = await owner_of(ctx, guard, call)
    if isinstance(opened, Refusal):
        return opened
    settled = await settle(ctx.store, lambda now: _plan(ctx, opened, guard, event, detail, now))
    if isinstance(settled, Conflict):
        return Refusal(Reason.CONTENDED)
    return await _as_it_is(ctx, opened, guard, outcome, settled) if isinstance(settled, Refusal) else settled.answer


async def _plan(
    ctx: Context, opened: Call, guard: Principal | Claims, event: CallEvent, detail: str, now: int
) -> Plan[str] | Refusal:
    row = await ctx.store.get(Call, opened.tenant, opened.id) or opened
    after = advance(row, event, now, ends=now, detail=detail[:1000] or None)
    if isinstance(after, Refusal):
        return after
    line = by_call(row, Event.CALL_OUTCOME, f"guard:{guard_id(guard)}", now)
    line = replace(line, outcome=after.state.value, detail=detail[:1000])
    change = Change(tenant=row.tenant, at=now, records=(line,), moves=(Move(expect=row.version, to=after),))
    return Plan(change, after.state.value)


async def _as_it_is(
    ctx: Context, opened: Call, guard: Principal | Claims, outcome: str, refused: Refusal
) -> str | Refusal:
    """A repeat is answered; an outcome that comes after the call was given up is kept as a record of its own."""
    row = await ctx.store.get(Call, opened.tenant, opened.id) or opened
    if row.state.value == outcome:
        return outcome
    line = by_call(row, Event.CALL_OUTCOME, f"guard:{guard_id(guard)}")
    await note(ctx.store, replace(line, outcome=outcome, reason=refused.reason.value, detail=refused.detail))
    return row.state.value if row.state is CallState.UNKNOWN else refused
