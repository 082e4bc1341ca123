"""Marks as operators write them: checked, brought to the form in which they are stored, with the time they reach."""

import re
from dataclasses import dataclass

from carnet.reasons import Reason, Refusal
from carnet.token.marks import stored
from carnet_broker.core.registry import Registry, Role
from carnet_broker.core.rows import FOREVER, Approval, Delegation
from carnet_broker.service.context import SYSTEM, Context

__all__ = ["HOLD", "Target", "target_of", "until_of"]

HOLD = 24 * 3600  # seconds: a hold reaches at most so far ahead, for a maximum is never taken back
_ID = re.compile(r"[\x21-\x7e]{1,256}")
_SINGLE = frozenset({"dlg", "tool", "key"})  # what stays dead for ever
_BROAD = frozenset({"agent", "client", "host", "policy", "tenant"})


@dataclass(frozen=True, slots=True)
class Target:
    """A mark in its stored form, whose feed it goes to, and the role that it takes."""

    tenant: str
    mark: str
    role: Role = Role.OPERATOR

    @property
    def single(self) -> bool:
        return self.mark.partition(":")[0] in _SINGLE


async def target_of(ctx: Context, registry: Registry, mark: str) -> Target | Refusal:
    """`kind:id`, or an id that carries its kind. What the tenant does not have is not found."""
    kind, colon, name = mark.partition(":")
    if not colon:
        kind, name = mark.partition("_")[0], mark
    if _ID.fullmatch(name) is None:
        return Refusal(Reason.REQUEST_INVALID, "A mark reads kind:id.")
    if kind == "key":
        return _key(ctx, name)
    if kind == "apr":
        return await _approval(ctx, registry.tenant, name)
    if kind in ("dlg", "token", "tool"):
        return await _delegation(ctx, registry.tenant, kind, name)
    if kind not in _BROAD:
        return Refusal(Reason.REQUEST_INVALID, f"There is no kind of mark named {kind[:32]!r}.")
    if kind == "tenant" and name != registry.tenant:
        return Refusal(Reason.NOT_FOUND, "An operator revokes within the own tenant.")
    # an agent, client or host need not be registered any more: its delegations may live on
    return Target(registry.tenant, f"{kind}:{name}", Role.ADMIN if kind == "tenant" else Role.OPERATOR)


def until_of(target: Target, until: int | str | None, now: int) -> int | Refusal:
    """Up to when what is issued under the mark is dead."""
    if target.single:
        whole = until is None or until == "forever"
        return FOREVER if whole else Refusal(Reason.REQUEST_INVALID, "This kind of mark is revoked for ever.")
    if until is None:
        return now
    if not isinstance(until, int) or isinstance(until, bool) or not now <= until <= now + HOLD:
        return Refusal(Reason.REQUEST_INVALID, "until must be a time from now to 24 hours ahead; renew a longer hold.")
    return until


def _key(ctx: Context, name: str) -> Target | Refusal:
    if ctx.keys.keyset().find(name) is None:
        return Refusal(Reason.NOT_FOUND, "The broker publishes no key of this id.")
    if len(ctx.registries) > 1:
        return Refusal(Reason.FORBIDDEN, "The key signs for other tenants too: retire it where the keys are kept.")
    if ctx.keys.active.kid == name:
        return Refusal(Reason.REQUEST_INVALID, "The key is active: rotate first, then withdraw it.")
    return Target(SYSTEM, f"key:{name}", Role.ADMIN)


async def _approval(ctx: Context, tenant: str, name: str) -> Target | Refusal:
    row = await ctx.store.get(Approval, tenant, name)
    if row is None:
        return Refusal(Reason.NOT_FOUND, "There is no approval of this id.")
    return Target(tenant, f"dlg:{row.delegation}")


async def _delegation(ctx: Context, tenant: str, kind: str, name: str) -> Target | Refusal:
    mark = stored(f"{kind}:{name}")
    id, slash, tool = mark.partition(":")[2].partition("/")
    if (kind == "tool") is not bool(slash) or bool(slash) is not bool(tool):  # `dlg:<id>/` would kill nothing
        return Refusal(Reason.REQUEST_INVALID, "A tool's mark reads tool:<delegation>/<tool>.")
    row = await ctx.store.get(Delegation, tenant, id)
    return Refusal(Reason.NOT_FOUND, "There is no delegation of this id.") if row is None else Target(tenant, mark)
