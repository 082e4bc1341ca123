"""Form bodies of the OAuth endpoints (RFC 6749 §3.2): each parameter once, an empty one as if it were absent."""

from urllib.parse import unquote_to_bytes

from carnet.reasons import Reason, Refusal

__all__ = ["parse_form"]

_MAX_FIELDS = 32


def parse_form(content_type: str, body: bytes) -> dict[str, str] | Refusal:
    """Parameters by name. Refusals quote nothing of the body."""
    if content_type.partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        return Refusal(Reason.REQUEST_INVALID, "send the parameters as application/x-www-form-urlencoded")
    fields: dict[str, str] = {}
    pieces = body.split(b"&") if body else []
    if len(pieces) > _MAX_FIELDS:
        return Refusal(Reason.REQUEST_INVALID, f"more than {_MAX_FIELDS} parameters")
    seen: set[str] = set()
    for piece in pieces:
        raw_name, _, raw_value = piece.partition(b"=")
        name, value = _decode(raw_name), _decode(raw_value)
        if name is None or value is None:
            return Refusal(Reason.REQUEST_INVALID, "a parameter is not UTF-8 text")
        if name in seen:
            return Refusal(Reason.REQUEST_INVALID, "a parameter is repeated")
        seen.add(name)
        if value:
            fields[name] = value
    return fields


def _decode(raw: bytes) -> str | None:
    try:
        text = unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
