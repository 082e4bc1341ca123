"""Marks: what a delegation stands or falls with, and when each act judges them.

A mark `kind:id` revoked with `until` kills everything under it that was issued at or before `until`. A store checks
pairs (mark, issued) inside the commit, None meaning the time of the commit itself, so no act can race a revocation.
"""

from collections.abc import Iterable, Mapping

from carnet.reasons import Reason
from carnet.token.marks import tool_mark
from carnet_broker.core.rows import Approval, Delegation, Revocation

__all__ = [
    "alive",
    "child_marks",
    "ending_mark",
    "host_marks",
    "killer",
    "marks_of",
    "reason_of",
    "tool_marks",
]


def marks_of(delegation: Delegation) -> frozenset[str]:
    """The marks that end the delegation itself: its own id and its ancestors', every agent and client of the chain,
    the policy it was derived under, the tenant. A host's mark ends no delegation, only its tokens for that host."""
    own = {f"tenant:{delegation.tenant}", f"policy:{delegation.policy_digest}"}
    for dlg, agent, client in delegation.chain:
        own |= {f"dlg:{dlg}", f"agent:{agent}", f"client:{client}"}
    return frozenset(own)


def host_marks(hosts: Iterable[str]) -> frozenset[str]:
    """Of the named hosts: what a token for them carries besides its delegation's marks."""
    return frozenset(f"host:{name}" for name in hosts)


def tool_marks(delegation: Delegation, tool: str) -> frozenset[str]:
    """What takes one tool away, from this delegation or from one above it; looked up for the called tool only."""
    return frozenset(tool_mark(dlg, tool) for dlg, _, _ in delegation.chain)


def child_marks(child: Delegation) -> frozenset[str]:
    """What a spawn adds to its parent's marks: judged at the commit's own time, so that a hold refuses the spawn."""
    dlg, agent, client = child.chain[-1]
    return frozenset(
        {f"dlg:{dlg}", f"agent:{agent}", f"client:{client}", f"policy:{child.policy_digest}", f"tenant:{child.tenant}"}
    )


def alive(marks: Iterable[str], issued: int | None) -> frozenset[tuple[str, int | None]]:
    """Pairs for `Change.alive`. Issued: a spawn judges its parent at the parent's start and its own new ids at None; an
    approval at the delegation's creation; mint and call at the delegation's start; a renewal at the run's opening."""
    return frozenset((mark, issued) for mark in marks)


def killer(revoked: Iterable[Revocation], issued: Mapping[str, int]) -> Revocation | None:
    """What kills something that carries these marks, each issued at its time: of several the oldest, which gives the
    reason."""
    kills = [row for row in revoked if row.mark in issued and row.until >= issued[row.mark]]
    return min(kills, key=lambda row: (row.at, row.seq), default=None)


def reason_of(word: str) -> Reason:
    """The code that a revocation's reason is, or `revoked`: operators write free text."""
    try:
        return Reason(word)
    except ValueError:
        return Reason.REVOKED


def ending_mark(row: Approval | Delegation) -> str:
    """The mark that ends the delegation of an approval (or the delegation itself). The chain of a token names
    delegations and not approvals, so a denial is written as its delegation's mark."""
    return f"dlg:{row.delegation if isinstance(row, Approval) else row.id}"
