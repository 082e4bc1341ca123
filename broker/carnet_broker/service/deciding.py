"""The decision about one call: pure, over what was read before. The broker's bounds come first, then the policy."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from carnet.reasons import CATALOGUE, Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.core.ceilings import pinned
from carnet_broker.core.lifecycle import ENDINGS, deadline
from carnet_broker.core.registry import Host, Registry
from carnet_broker.core.resources import read_resources
from carnet_broker.core.rows import Approval, ApprovalState, Call, Delegation
from carnet_broker.service.ledgers import Standing
from carnet_broker.service.questions import too_many
from carnet_broker.service.requests import CallRequest
from carnet_broker.store.base import Key
from carnet_policy import Call as PolicyCall
from carnet_policy import Effect, evaluate

__all__ = ["Asked", "Verdict", "decide"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call and everything that is known of it before the run's past. uncovered: why the token does not cover it."""

    claims: Claims
    row: Delegation
    run: Delegation
    registry: Registry
    host: Host
    guard: str  # client id, or "self"
    request: CallRequest
    digest: str
    uncovered: Refusal | None
    key: Key | None
    marks: tuple[str, ...]
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """waiting: the call that this one continues; spend: the approval that it uses up; until: a question's deadline."""

    decision: str
    reason: str
    detail: str
    rule: str | None = None
    resources: tuple[str, ...] = ()
    waiting: Call | None = None
    spend: Approval | None = None
    until: int | None = None

    @classmethod
    def deny(cls, why: Refusal) -> Self:
        """A denial stands for itself: a question of the same call that is open stays what it is."""
        return cls(decision="deny", reason=why.reason.value, detail=why.detail or CATALOGUE[why.reason].sentence)


def decide(asked: Asked, standing: Standing, now: int) -> Verdict:
    """Deny unless every bound holds, the policy allows, or a person approved this very call."""
    if asked.uncovered is not None:
        return Verdict.deny(asked.uncovered)
    resource_arg = asked.registry.policy.facts(asked.request.tool).resource_arg
    resources = read_resources(asked.request.args, resource_arg)
    if isinstance(resources, Refusal):
        return Verdict.deny(resources)
    waiting = standing.run.waiting(asked.digest, now)
    mismatch = _named_approval(asked, standing, now)
    if mismatch is not None:
        return Verdict.deny(mismatch)
    refused = _bounds(asked, standing, resources, waiting, now)
    if refused is not None:
        return Verdict.deny(refused)
    return _by_policy(asked, standing, resources, waiting, now)


def _bounds(
    asked: Asked, standing: Standing, resources: tuple[str, ...], waiting: Call | None, now: int
) -> Refusal | None:
    """Bounds that outlive one call. Each ancestor's max_calls counts everything below it together."""
    ledger, skip, row = standing.run, None if waiting is None else waiting.id, asked.row
    ceilings: dict[str, Mapping[str, Any]] = {row.id: row.envelope.ceilings, asked.run.id: asked.run.envelope.ceilings}
    over = ledger.resource_bound(row.id, row.envelope.resource_limit, resources, now, skip)
    return ledger.call_bound(ceilings, asked.request.tool, now, skip) if over is None else over


def _named_approval(asked: Asked, standing: Standing, now: int) -> Refusal | None:
    """An approval that the call names must be for this very call and stand: nothing is asked anew behind its back."""
    if asked.request.approval_id is None:
        return None
    approval = standing.run.approval(asked.request.approval_id)
    if approval is None or approval.digest != asked.digest or approval.subject == approval.delegation:
        return Refusal(Reason.APPROVAL_MISMATCH)
    if approval.state in ENDINGS:
        return Refusal(ENDINGS[approval.state], f"The named approval is {approval.state.value}.")
    if approval.state is ApprovalState.PENDING and now >= approval.deadline:
        return Refusal(Reason.APPROVAL_TIMED_OUT)
    return None


def _by_policy(asked: Asked, standing: Standing, resources: tuple[str, ...], waiting: Call | None, now: int) -> Verdict:
    ledger, tool, policy = standing.run, asked.request.tool, asked.registry.policy
    past = ledger.history(
        now,
        opened=asked.run.created_at,
        since=standing.policy.history,
        client=standing.client,
        skip=None if waiting is None else waiting.id,
    )
    answered = pinned(asked.row.envelope, policy, tool)  # by the person who approved the delegation
    found = evaluate(policy, PolicyCall(tool, asked.request.args, answered), past)
    base = Verdict(
        decision=found.effect.value, reason=found.reason, detail=found.detail, rule=found.rule, resources=resources
    )
    if found.effect is Effect.DENY:
        return base
    approval = None if waiting is None or waiting.approval is None else ledger.approval(waiting.approval)
    if waiting is not None and approval is not None and approval.state is ApprovalState.APPROVED:
        return replace(base, decision="allow", reason=Reason.APPROVED.value, waiting=waiting, spend=approval)
    if waiting is not None:
        return replace(base, decision="require_approval", waiting=waiting)
    if ledger.tool_denied(tool) and not answered:
        return Verdict.deny(Refusal(Reason.DENIED_BEFORE, f"A person denied a call of {tool} in this run."))
    return base if found.effect is Effect.ALLOW else _question(asked, standing, base, now)


def _question(asked: Asked, standing: Standing, base: Verdict, now: int) -> Verdict:
    until = deadline(now, asked.registry.policy.approvals.timeout, asked.claims.exp)
    if until <= now:
        return Verdict.deny(Refusal(Reason.TTL_TOO_SHORT, "The delegation ends before anybody could answer."))
    flood = too_many(standing, asked.row.id, asked.run.client, now)
    return replace(base, until=until) if flood is None else Verdict.deny(flood)
