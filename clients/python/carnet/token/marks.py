"""Marks, the keys of revocation: which ones a token carries, and whether one of them kills it.

A revocation is one record (mark, until): whatever was issued up to `until` under that mark is dead. A token carries
the marks of its tenant, policy, host, and of every delegation, agent and client of its chain, so revoking an ancestor
reaches every descendant without a list of them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carnet.token.claims import Claims

__all__ = ["Revoked", "dead", "marks", "stored", "tool_mark", "until_of"]

Revoked = Mapping[str, int] | Callable[[str], int | None]


def marks(claims: "Claims", host: str | None) -> tuple[str, ...]:
    """Every mark that the token carries; `host` is the name of the host that its audience belongs to, if known."""
    carried = [f"tenant:{claims.tenant}", f"policy:{claims.delegation.policy_digest}"]
    if host is not None:
        carried.append(f"host:{host}")
    for delegation, agent, client in claims.delegation.chain:
        carried += (f"dlg:{delegation}", f"agent:{agent}", f"client:{client}")
    return tuple(dict.fromkeys(carried))


def tool_mark(delegation: str, tool: str) -> str:
    """The mark that takes one tool from a delegation and from what is below it; looked up for the called tool only."""
    return f"tool:{delegation}/{tool}"


def stored(mark: str) -> str:
    """The mark under which a revocation is written: a token stands for its delegation, which its jti names."""
    kind, _, name = mark.partition(":")
    return f"dlg:{name.partition('.')[0]}" if kind == "token" else mark


def until_of(revoked: Revoked) -> Callable[[str], int | None]:
    """One way to ask both forms of a revocation list."""
    return revoked.get if isinstance(revoked, Mapping) else revoked


def dead(carried: Collection[str], issued: int, revoked: Revoked) -> str | None:
    """The first mark that kills what was issued then, or None."""
    if isinstance(revoked, dict) and revoked.keys().isdisjoint(carried):
        return None  # nearly always; one call, whatever the number of marks
    ask = until_of(revoked)
    for mark in carried:
        until = ask(mark)
        if until is not None and until >= issued:
            return mark
    return None
