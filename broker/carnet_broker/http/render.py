"""The values that use cases answer, as the documents that go on the wire. No decision is made here."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import orjson
from starlette.responses import Response

from carnet_broker.http.errors import NO_STORE
from carnet_broker.service.views import (
    ApprovalBrief,
    ApprovalView,
    AuditCheck,
    CallStatus,
    CallView,
    DelegationView,
    Fallen,
    GuardList,
    Issued,
    Listing,
    PolicyView,
    Session,
    TreeView,
)

__all__ = [
    "approval",
    "audit_check",
    "call",
    "call_status",
    "delegation",
    "dumps",
    "fallen",
    "guards",
    "issued",
    "json_answer",
    "listing",
    "policy",
    "session",
    "tokens",
    "tree",
]

Document = Mapping[str, Any]


def dumps(value: Any) -> bytes:
    """UTF-8 JSON. Read-only mappings and sets are written as objects and arrays."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:  # integers over 64 bits are JSON too: a payload may hold one
        return json.dumps(value, default=_plain, allow_nan=False, separators=(",", ":")).encode()


def json_answer(value: Any, status: int = 200) -> Response:
    return Response(dumps(value), status, NO_STORE, media_type="application/json")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def issued(token: Issued) -> Document:
    """The token answer of RFC 6749 §5.1."""
    document: dict[str, Any] = {
        "access_token": token.access_token,
        "token_type": "Bearer",
        "expires_in": token.expires_in,
    }
    if token.run is not None:
        document |= {"run_id": token.run, "run_expires_at": token.run_expires_at}
    if token.scope is not None:
        document["scope"] = token.scope
    return document


def tokens(found: Mapping[str, Issued]) -> Document:
    return {host: {**issued(token), "audience": token.audience} for host, token in found.items()}


def delegation(view: DelegationView) -> Document:
    document: dict[str, Any] = {
        "id": view.id,
        "run": view.run,
        "parent": view.parent,
        "agent": view.agent,
        "client": view.client,
        "state": view.state,
        "reason": view.reason,
        "approval": _brief(view.approval),
        "envelope": view.envelope,
        "created_at": view.created_at,
        "start": view.start,
        "expires_at": view.expires_at,
        "hosts": view.hosts,
        "receives": view.receives,
        "calls": view.calls,
    }
    if view.tokens:
        document["tokens"] = tokens(view.tokens)
    return document


def tree(view: TreeView) -> Document:
    return {**delegation(view.node), "children": [delegation(child) for child in view.children]}


def _brief(view: ApprovalBrief | None) -> Document | None:
    return None if view is None else asdict(view)


def approval(view: ApprovalView) -> Document:
    return {name: getattr(view, name) for name in _APPROVAL_FIELDS}


_APPROVAL_FIELDS = tuple(ApprovalView.__dataclass_fields__)


def call(view: CallView) -> Document:
    document: dict[str, Any] = {
        "call_id": view.call_id,
        "decision": view.decision,
        "state": view.state,
        "reason": view.reason,
        "detail": view.detail,
        "rule": view.rule,
        "policy": {"id": view.policy.id, "version": view.policy.version, "digest": view.policy.digest},
        "feed_seq": view.feed_seq,
    }
    for name in ("approval_id", "deadline", "on_denial"):
        if (value := getattr(view, name)) is not None:
            document[name] = value
    if view.repeat:
        document["repeat"] = True
    return document


def call_status(view: CallStatus) -> Document:
    return {
        "call_id": view.call_id,
        "state": view.state,
        "decision": view.decision,
        "reason": view.reason,
        "detail": view.detail,
        "approval": _brief(view.approval),
        "live": view.live,
        "policy_digest": view.policy_digest,
        "now": view.now,
    }


def policy(view: PolicyView) -> Document:
    host = view.host
    key = urlsafe_b64encode(host.audit_key).rstrip(b"=").decode()
    return {
        "digest": view.digest,
        "documents": [{"name": name, "text": text} for name, text in view.documents],
        "since": view.since,
        "host": {
            "name": host.name,
            "tenant": host.tenant,
            "issuer": host.issuer,
            "audience": host.audience,
            "tools": host.tools,
            "effects": host.effects,
            "bind_from_level": host.bind_from_level,
            "staleness": host.staleness,
            "audit_key": key,
            "clear_fields": host.clear_fields,
        },
        "now": view.now,
    }


def fallen(view: Fallen) -> Document:
    return {
        "mark": view.mark,
        "until": view.until,
        "seq": view.seq,
        "falls": view.falls,
        "count": view.count,
        "guards": {"total": view.guards_total, "applied": view.guards_applied},
    }


def guards(view: GuardList) -> Document:
    return {"guards": [asdict(guard) for guard in view.guards], "seq": view.seq}


def session(view: Session) -> Document:
    return {
        "access_token": view.access_token,
        "token_type": "Bearer",
        "expires_in": view.expires_in,
        "operator": view.operator,
        "role": view.role,
        "tenant": view.tenant,
    }


def audit_check(view: AuditCheck) -> Document:
    document = asdict(view)
    return document if view.problem is not None else {k: v for k, v in document.items() if k != "problem"}


def listing(name: str, page: Listing[Any], each: Any = None) -> Document:
    """One page under its name with the cursor of the next."""
    return {name: [each(row) for row in page.rows] if each else page.rows, "next": page.next}
