"""Audit lines of the use cases: who asked, under which delegation. What was decided is filled in last."""

from collections.abc import Mapping
from typing import Any

from carnet.audit import Record
from carnet.token.claims import Claims
from carnet_broker.core.rows import Approval, Call, Delegation
from carnet_broker.service.principals import Principal

__all__ = ["BROKER", "by_approval", "by_call", "by_claims", "by_delegation", "by_principal"]

BROKER = "broker"


def by_claims(claims: Claims, kind: str, trace: str, at: int = 0) -> Record:
    """A line about what the holder of this token asked for."""
    about = claims.delegation
    return Record(
        at=at,
        tenant=claims.tenant,
        kind=kind,
        actor=f"agent:{about.agent}",
        run=claims.txn,
        delegation=about.id,
        chain=about.chain,
        agent=about.agent,
        client=claims.client_id,
        policy={"id": about.policy_id, "version": about.policy_version, "digest": about.policy_digest},
        level=about.level,
        approval=about.approval_id,
        trace_id=trace,
    )


def by_delegation(row: Delegation, kind: str, actor: str, trace: str = "", at: int = 0) -> Record:
    """A line about a delegation that is on record."""
    return Record(
        at=at,
        tenant=row.tenant,
        kind=kind,
        actor=actor,
        run=row.run,
        delegation=row.id,
        chain=row.chain,
        agent=row.agent,
        client=row.client,
        policy={"id": row.policy_id, "version": row.policy_version, "digest": row.policy_digest},
        level=row.envelope.level,
        approval=row.approval,
        trace_id=trace or row.trace_id,
    )


def by_principal(who: Principal, kind: str, trace: str = "", at: int = 0) -> Record:
    """A line about a client, a guard or an operator."""
    return Record(at=at, tenant=who.tenant, kind=kind, actor=who.actor, client=who.client or None, trace_id=trace)


def by_approval(
    row: Approval, kind: str, actor: str, trace: str = "", at: int = 0, about: Delegation | None = None
) -> Record:
    """A line about a question. about: its delegation, where it is at hand."""
    call = row.subject if row.subject != row.delegation else None
    return Record(
        at=at,
        tenant=row.tenant,
        kind=kind,
        actor=actor,
        run=row.run,
        delegation=row.delegation,
        chain=() if about is None else about.chain,
        agent=None if about is None else about.agent,
        client=None if about is None else about.client,
        level=None if about is None else about.envelope.level,
        tool=str(row.shown["tool"]) if row.shown is not None and row.shown.get("tool") is not None else None,
        approval=row.id,
        call=call,
        trace_id=trace or row.trace_id,
        facts={"digest": row.digest, "policy": row.policy_digest},
    )


def by_call(row: Call, kind: str, actor: str, at: int = 0, policy: Mapping[str, Any] | None = None) -> Record:
    """A line about a call that is on record."""
    return Record(
        at=at,
        tenant=row.tenant,
        kind=kind,
        actor=actor,
        run=row.run,
        delegation=row.delegation,
        client=row.client,
        host=row.host,
        guard=row.guard,
        tool=row.tool,
        resource=row.resources,
        policy=policy,
        rule=row.rule,
        approval=row.approval,
        call=row.id,
        trace_id=row.trace_id,
    )
