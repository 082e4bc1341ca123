"""What the broker's answers mean: a document, a refusal, or "nobody could be asked"."""

import json
from collections.abc import Mapping
from typing import Any

from carnet.errors import CarnetError, Unavailable, refused
from carnet.reasons import Reason, Refusal

__all__ = ["LONGEST", "Body", "document", "problem", "reason_of", "token_refused"]

LONGEST = 256 * 1024 * 1024  # bytes of one answer; a snapshot of the feed may hold a million marks
_ASK_AGAIN = {
    Reason.UNAVAILABLE,
    Reason.CONTENDED,
    Reason.TOO_MANY_REQUESTS,
    Reason.NOT_READY,
    Reason.STALE,
    Reason.INTERNAL,
}
_REASONS = {reason.value: reason for reason in Reason}
_OAUTH = {"invalid_grant": Reason.TOKEN_ENDED, "unauthorized_client": Reason.FORBIDDEN}


class Body:
    """The bytes of an answer as they come: neither without end nor slower than the request may take, for a time-out of
    the transport counts from the last byte only. until: monotonic time."""

    def __init__(self, until: float) -> None:
        self._until, self._parts, self._size = until, list[bytes](), 0

    def add(self, part: bytes, mono: float) -> None:
        """Raises Unavailable."""
        self._size += len(part)
        if self._size > LONGEST:
            raise Unavailable("the broker's answer is too long")
        if mono > self._until:
            raise Unavailable("the broker's answer comes too slowly")
        self._parts.append(part)

    def whole(self) -> bytes:
        return b"".join(self._parts)


def document(status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The JSON object of a success. Raises Refused, ApprovalPending or Unavailable for anything else."""
    if not 200 <= status < 300:
        raise problem(status, headers, body)
    if not body:
        return {}
    found = _object(body)
    if found is None:
        raise Unavailable(f"the broker answered {status} with a body that is no JSON object")
    return found


def problem(status: int, headers: Mapping[str, str], body: bytes) -> CarnetError:
    """The exception for an answer that is no success (RFC 9457 or RFC 6749 §5.2)."""
    found = _object(body) or {}
    code = found.get("reason") or found.get("error")
    detail = _text(found.get("detail") or found.get("error_description"))
    reason = _OAUTH.get(code) if isinstance(code, str) and code in _OAUTH else _known(code)
    if (reason is None and (status >= 500 or status == 429)) or reason in _ASK_AGAIN:
        return Unavailable(detail or f"the broker answered {status}", retry_after=_seconds(headers.get("retry-after")))
    return refused(
        Refusal(reason or _by_status(status), detail),
        call_id=_text(found.get("call_id")) or None,
        approval_id=_text(found.get("approval_id")) or None,
    )


def reason_of(code: object) -> Reason:
    """The reason of a code on the wire; a code newer than this release reads as `forbidden`."""
    return _known(code) or Reason.FORBIDDEN


def token_refused(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a resource server says that the token itself is no good (RFC 6750 §3.1)."""
    return status == 401 and 'error="invalid_token"' in headers.get("www-authenticate", "")


def _known(code: object) -> Reason | None:
    return _REASONS.get(code) if isinstance(code, str) else None


def _by_status(status: int) -> Reason:
    return {
        400: Reason.REQUEST_INVALID,
        401: Reason.TOKEN_ENDED,
        404: Reason.NOT_FOUND,
        413: Reason.REQUEST_TOO_LARGE,
    }.get(status, Reason.FORBIDDEN)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(text: str | None) -> float | None:
    try:
        return min(max(float(text), 0.0), 60.0) if text is not None else None
    except ValueError:
        return None
