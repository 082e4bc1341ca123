"""What a guarded HTTP server answers when it says no (RFC 6750 §3, RFC 9457, RFC 9728 §5.1)."""

import json
from urllib.parse import urlsplit, urlunsplit

from carnet.errors import Interrupted, Refused, Unavailable
from carnet.reasons import CATALOGUE, Reason, Seen

__all__ = ["Answer", "challenge", "metadata", "metadata_url", "problem_of", "unauthorised"]

Answer = tuple[int, dict[str, str], bytes]  # status, headers, body
_UNKNOWN = {Reason.STALE, Reason.NOT_READY, Reason.UNAVAILABLE, Reason.CONTENDED, Reason.NO_SINK}
_RETRY = "1"  # seconds
_WELL_KNOWN = "/.well-known/oauth-protected-resource"


def problem_of(fault: Refused | Unavailable | Interrupted) -> Answer:
    """The answer to a call that a guard refused: 403 without a challenge, for no other token would help; 503 where
    nobody could tell; 500 for a tool that was stopped in the middle."""
    if isinstance(fault, Unavailable):
        return _problem(503, Reason.UNAVAILABLE, str(fault), {}, {"retry-after": _RETRY})
    if isinstance(fault, Interrupted):
        return _problem(500, fault.reason, str(fault), {"call_id": fault.call_id}, {})
    if CATALOGUE[fault.reason].status == 401:  # the token died between the edge and the tool
        return unauthorised(fault, None, "invalid_token")
    status = 503 if fault.reason in _UNKNOWN else 403
    again = status == 503 or fault.reason is Reason.APPROVAL_PENDING
    members = {"call_id": fault.call_id, "approval_id": fault.approval_id}
    return _problem(status, fault.reason, fault.detail, members, {"retry-after": _RETRY} if again else {})


def unauthorised(fault: Refused, audience: str | None, error: str | None) -> Answer:
    """401 with the challenge. error None: no token was sent."""
    return _problem(401, fault.reason, fault.detail, {}, {"www-authenticate": challenge(audience, error)})


def challenge(audience: str | None, error: str | None, scope: str | None = None) -> str:
    """The `WWW-Authenticate` value. audience: of the host, once it is known."""
    parts = []
    if error is not None:
        parts.append(f'error="{error}"')
    if scope is not None:
        parts.append(f'scope="{scope}"')
    url = None if audience is None else metadata_url(audience)
    if url is not None:
        parts.append(f'resource_metadata="{url}"')
    return "Bearer " + ", ".join(parts) if parts else "Bearer"


def metadata_url(audience: str) -> str | None:
    """Where the metadata of a resource stands: the well-known part goes between host and path (RFC 9728 §3.1)."""
    parts = urlsplit(audience)
    if parts.scheme not in ("http", "https"):
        return None
    path = "" if parts.path == "/" else parts.path
    return urlunsplit((parts.scheme, parts.netloc, _WELL_KNOWN + path, "", ""))


def metadata(issuer: str, audience: str, tools: frozenset[str]) -> bytes:
    """The metadata document (RFC 9728 §2)."""
    document = {
        "resource": audience,
        "authorization_servers": [issuer],
        "scopes_supported": sorted(tools),
        "bearer_methods_supported": ["header"],
        "authorization_details_types_supported": ["urn:carnet:tool:v1"],
    }
    return json.dumps({name: value for name, value in document.items() if value}).encode()


def _problem(
    status: int, reason: Reason, detail: str, members: dict[str, str | None], headers: dict[str, str]
) -> Answer:
    entry = CATALOGUE[reason]
    hidden = entry.seen is Seen.AUDIT  # a prober must not learn which part of a forged token was wrong
    code = "invalid_token" if hidden else reason.value
    title = "The token was not accepted." if hidden else entry.sentence
    body = {
        "type": f"urn:carnet:reason:{code}",
        "title": title,
        "status": status,
        "detail": title if hidden else detail,
        "reason": code,
        **{name: value for name, value in members.items() if value is not None},
    }
    sent = {"content-type": "application/problem+json", "cache-control": "no-store", **headers}
    return status, sent, json.dumps(body).encode()
