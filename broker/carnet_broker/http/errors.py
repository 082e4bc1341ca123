"""Refusals on the wire: problem details (RFC 9457), OAuth errors (RFC 6749 §5.2) and challenges (RFC 6750 §3).

The status of a reason stands in `carnet.reasons.CATALOGUE` alone. Why a token did not verify is told to authenticated
guards and to the audit log; everybody else reads one text, so that a probe learns nothing.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType

import orjson
from starlette.responses import Response

from carnet.reasons import CATALOGUE, Reason, Refusal, Seen

__all__ = ["NO_STORE", "describe", "oauth_error", "problem", "raw_problem", "title"]

NO_STORE = {"cache-control": "no-store"}
_PROBLEM = "application/problem+json"
_HIDDEN = "invalid_token"
_HIDDEN_TITLE = "The token was not accepted."
_RETRY_AFTER = "1"
_REALM = 'Bearer realm="carnet"'

# Reasons that have a code of their own in OAuth; the others follow from their status.
_OAUTH: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.CLIENT_AUTH: "invalid_client",
        Reason.GRANT_UNSUPPORTED: "unsupported_grant_type",
        Reason.SCOPE_NOT_GRANTABLE: "invalid_scope",
        Reason.HOST_UNKNOWN: "invalid_target",
        Reason.FORBIDDEN: "unauthorized_client",
        Reason.NOT_FOUND: "invalid_grant",
        Reason.EXPIRED: "invalid_grant",
        Reason.RUN_CLOSED: "invalid_grant",
        Reason.COMPLETED: "invalid_grant",
        Reason.REVOKED: "invalid_grant",
        Reason.TOKEN_ENDED: "invalid_grant",
        Reason.INTERNAL: "server_error",
    }
)
_KEPT_STATUS = frozenset({405, 408, 413, 429, 431, 500, 503})  # of OAuth errors; any other is 400, or 401


def title(reason: Reason) -> str:
    """The sentence of a reason, the same for each problem of its type."""
    return CATALOGUE[reason].sentence


def problem(refusal: Refusal, trace: str, *, guard: bool = False) -> Response:
    """problem+json of a refusal. guard: the asker is an authenticated guard and may read why a token failed."""
    entry = CATALOGUE[refusal.reason]
    hidden = entry.seen is Seen.AUDIT and not guard
    body = {
        "type": f"urn:carnet:reason:{_HIDDEN if hidden else refusal.reason.value}",
        "title": _HIDDEN_TITLE if hidden else entry.sentence,
        "status": entry.status,
        "detail": _HIDDEN_TITLE if hidden else refusal.detail or entry.sentence,
        "reason": _HIDDEN if hidden else refusal.reason.value,
        "trace_id": trace,
    }
    headers = {**NO_STORE, **_challenge(refusal.reason, entry.status), **_retry(entry.status)}
    return Response(orjson.dumps(body), entry.status, headers, media_type=_PROBLEM)


def oauth_error(refusal: Refusal, *, basic: bool = False) -> Response:
    """RFC 6749 JSON. basic: the client used HTTP Basic, so a 401 names that scheme (RFC 6749 §5.2)."""
    entry = CATALOGUE[refusal.reason]
    code = 401 if refusal.reason is Reason.CLIENT_AUTH else entry.status if entry.status in _KEPT_STATUS else 400
    fallback = "temporarily_unavailable" if code in (429, 503) else "invalid_request"
    error = _OAUTH.get(refusal.reason, fallback)
    hidden = entry.seen is Seen.AUDIT
    detail = _HIDDEN_TITLE if hidden else entry.sentence if code == 401 else refusal.detail or entry.sentence
    headers = {**NO_STORE, "pragma": "no-cache", **_retry(code)}
    if code == 401 and basic:
        headers["www-authenticate"] = 'Basic realm="carnet"'
    body = {"error": error, "error_description": describe(detail)}
    if not hidden:
        body["reason"] = refusal.reason.value  # finer than OAuth's codes; clients that do not know it ignore it
    return Response(orjson.dumps(body), code, headers, media_type="application/json")


def describe(text: str) -> str:
    """What of a text may stand in `error_description`: %x20-21 / %x23-5B / %x5D-7E, at most 300 characters."""
    kept = (c if " " <= c <= "~" and c not in '"\\' else "'" if c == '"' else "?" for c in text[:300])
    return "".join(kept)


def raw_problem(reason: Reason, status: int, detail: str) -> bytes:
    """A whole HTTP response for a request that never reached the application; the connection closes after it."""
    body = json.dumps(
        {
            "type": f"urn:carnet:reason:{reason.value}",
            "title": title(reason),
            "status": status,
            "detail": detail,
            "reason": reason.value,
        }
    ).encode()
    retry = f"retry-after: {_RETRY_AFTER}\r\n" if status == 503 else ""
    head = (
        f"HTTP/1.1 {status} {_PHRASES.get(status, 'Error')}\r\ncontent-type: {_PROBLEM}\r\n"
        f"content-length: {len(body)}\r\ncache-control: no-store\r\n{retry}connection: close\r\n\r\n"
    )
    return head.encode() + body


_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def _challenge(reason: Reason, status: int) -> dict[str, str]:
    if status != 401:
        return {}
    without_error = reason in (Reason.TOKEN_MISSING, Reason.CLIENT_AUTH, Reason.OPERATOR_AUTH)
    return {"www-authenticate": _REALM if without_error else f'{_REALM}, error="invalid_token"'}


def _retry(status: int) -> dict[str, str]:
    return {"retry-after": _RETRY_AFTER} if status in (429, 503) else {}
