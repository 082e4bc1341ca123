"""The lines of the local lane: what was decided and how it ended. Arguments stand as HMAC digests, never in clear.

A line is JSON text. What is the same for every call of a token under one rule is encoded once and kept with the book:
most of a line, and most of its cost, is that.
"""

import json
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from typing import Any

from carnet.audit import Kind, clear_fields
from carnet.guard.book import Book
from carnet.token.claims import Claims

__all__ = ["decided", "ended"]

_MOST = 4096  # kept beginnings of lines per book
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


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
) -> str:
    """The line of one decision: an intent before the call, or a refusal."""
    key = (claims.jti, kind, tool, decision, reason, detail, rule)
    begun = book.begun.get(key)
    if begun is None:
        begun = _beginning(book, claims, kind, tool, decision, reason, detail, rule)
        if len(book.begun) >= _MOST:
            book.begun.clear()
        book.begun[key] = begun
    shown = clear_fields(book.clear, tool, args) if book.clear else None
    clear = _encode(shown) if shown else "{}"
    trace = trace_id or claims.delegation.trace_id
    digest = book.audit_key.digest
    digests = ""
    for name, value in args.items():
        digests += f',{quoted(name)}:"{digest(name, value)}"'
    return f'{begun},"call":"{call}","at":{at},"trace_id":"{trace}","clear":{clear},"args":{{{digests[1:]}}}}}'


def ended(call: str, at: int, outcome: str, detail: str) -> dict[str, Any]:
    """The line of one outcome."""
    return {"kind": Kind.CALL_OUTCOME, "call": call, "at": at, "outcome": outcome, "detail": detail}


def _beginning(
    book: Book, claims: Claims, kind: str, tool: str, decision: str, reason: str, detail: str, rule: str | None
) -> str:
    """Everything of a line that no single call changes, without the closing brace."""
    about, ref = claims.delegation, book.policy.ref
    line = {
        "kind": kind,
        "run": claims.txn,
        "delegation": about.id,
        "chain": [list(link) for link in about.chain],
        "agent": about.agent,
        "client": claims.client_id,
        "host": book.host,
        "tool": tool,
        "policy": {"id": ref.id, "version": ref.version, "digest": ref.digest},
        "level": about.level,
        "rule": rule,
        "decision": decision,
        "reason": reason,
        "detail": detail,
    }
    return _encode(line)[:-1]
