"""The lines of the local lane: what was decided and how it ended. Arguments stand as HMAC digests, never in clear."""

from collections.abc import Mapping
from typing import Any

from carnet.audit import Kind, argument_digests, clear_fields
from carnet.guard.book import Book
from carnet.token.claims import Claims

__all__ = ["decided", "ended"]


def decided(
    book: Book,
    claims: Claims,
    *,
    kind: str,
    call: str,
    at: int,
    tool: str,
    args: Mapping[str, Any],
    decision: str,
    reason: str,
    detail: str,
    rule: str | None,
    trace_id: str,
) -> dict[str, Any]:
    """The line of one decision: an intent before the call, or a refusal."""
    about = claims.delegation
    ref = book.policy.ref
    return {
        "kind": kind,
        "call": call,
        "at": at,
        "run": claims.txn,
        "delegation": about.id,
        "chain": [list(link) for link in about.chain],
        "agent": about.agent,
        "client": claims.client_id,
        "host": book.host,
        "tool": tool,
        "args": argument_digests(book.audit_key, args),
        "clear": clear_fields(book.clear, args),
        "policy": {"id": ref.id, "version": ref.version, "digest": ref.digest},
        "level": about.level,
        "rule": rule,
        "decision": decision,
        "reason": reason,
        "detail": detail,
        "exp": claims.exp,
        "trace_id": trace_id or about.trace_id,
    }


def ended(call: str, at: int, outcome: str, detail: str) -> dict[str, Any]:
    """The line of one outcome."""
    return {"kind": Kind.CALL_OUTCOME, "call": call, "at": at, "outcome": outcome, "detail": detail}
