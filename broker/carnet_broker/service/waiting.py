"""Look at a delegation or a call, and wait while a person has not answered. Looking writes nothing."""

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.registry import Role
from carnet_broker.core.rows import Approval, Call, CallState, Delegation
from carnet_broker.core.standing import host_marks, marks_of, tool_marks
from carnet_broker.core.status import State
from carnet_broker.service.bearers import ended_by
from carnet_broker.service.context import Context
from carnet_broker.service.guarding import owner_of
from carnet_broker.service.permitting import permitted
from carnet_broker.service.principals import Principal
from carnet_broker.service.showing import brief, delegation_view, known, look_up
from carnet_broker.service.views import CallStatus, DelegationView

__all__ = ["call_state", "show"]

_SLICE = 0.5  # seconds between looks at what no commit announces: deadlines, ends, marks of ancestors


async def show(ctx: Context, caller: Claims | Principal, delegation: str, wait: float) -> DelegationView | Refusal:
    """For the run's root token, a token of this very delegation, or a viewer. wait: seconds for which a pending one is
    waited for; any other is answered at once, because what the caller waits for may have happened before it asked."""
    registry = ctx.registry(caller.tenant)
    if isinstance(registry, Refusal):
        return registry
    found = await look_up(ctx, caller.tenant, delegation)
    if found is None or not _may_see(ctx, caller, found.row):
        return Refusal(Reason.NOT_FOUND, "There is no delegation of this id for this caller.")
    left = wait
    while left > 0 and found.status.state is State.PENDING and found.approval is not None:
        step = min(left, _SLICE)
        await ctx.store.watch(found.row.tenant, found.approval.id, found.approval.version, step)
        found, left = await known(ctx, found.row), left - step
    return await delegation_view(ctx, registry, found)


def _may_see(ctx: Context, caller: Claims | Principal, row: Delegation) -> bool:
    if isinstance(caller, Principal):
        return not isinstance(permitted(ctx, caller, Role.VIEWER), Refusal)
    return caller.delegation.id == row.id or (caller.is_root and caller.txn == row.run)


async def call_state(ctx: Context, guard: Principal | Claims, call: str, wait: float) -> CallStatus | Refusal:
    """State and liveness of a call that this guard opened. wait: seconds for which its open question is waited for."""
    row = await owner_of(ctx, guard, call)
    if isinstance(row, Refusal):
        return row
    status, left = await _status(ctx, row), wait
    while left > 0 and _asks(status):
        step = min(left, _SLICE)
        await ctx.store.watch(row.tenant, row.id, row.version, step)
        left -= step
        row = await ctx.store.get(Call, row.tenant, call) or row
        status = await _status(ctx, row)
    return status


def _asks(status: CallStatus) -> bool:
    """Whether a person may still answer it."""
    pending = status.approval is not None and status.approval.state == "pending"
    return status.live and status.state == "waiting" and pending


async def _status(ctx: Context, row: Call) -> CallStatus:
    approval = await ctx.store.get(Approval, row.tenant, row.approval) if row.approval is not None else None
    now = await ctx.store.now()
    told = None if approval is None else brief(approval, now)
    late = row.state is CallState.WAITING and told is not None and told.state == "timed_out"
    reason = Reason.APPROVAL_TIMED_OUT.value if late else row.reason
    return CallStatus(
        call_id=row.id,
        state=CallState.REFUSED.value if late else row.state.value,
        decision="deny" if late or row.state is CallState.REFUSED else row.decision,
        reason=reason,
        detail=row.detail,
        approval=told,
        live=await _live(ctx, row),
        policy_digest=row.policy_digest,
        now=now,
    )


async def _live(ctx: Context, row: Call) -> bool:
    """Whether nothing that the call stands on has been revoked, and the policy that decided it is in force."""
    found = await look_up(ctx, row.tenant, row.delegation)
    if found is None or found.status.state is not State.ACTIVE or found.status.start is None:
        return False
    carried = marks_of(found.row) | host_marks((row.host,)) | tool_marks(found.row, row.tool)
    revoked = await ctx.store.revoked(row.tenant, tuple(carried))
    in_force, _ = await ctx.ledgers.policy(ctx.store, row.tenant)
    current = in_force is not None and in_force.digest == row.policy_digest
    return current and ended_by(revoked, carried, found.status.start) is None
