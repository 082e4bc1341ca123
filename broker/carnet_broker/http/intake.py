"""What a request brings, read once and strictly: body, JSON object, form, bearer token, query."""

from collections.abc import Collection
from typing import Any

from starlette.requests import ClientDisconnect, Request

from carnet.reasons import Reason, Refusal
from carnet.token.strict import DuplicateMember, NotStrict, TooDeep, loads
from carnet_broker.http.forms import parse_form

__all__ = ["bearer", "form", "json_object", "query", "raw_body", "single"]

_DEPTH = 32
_MEMBERS = 10_000
_MAX_TOKEN = 4096
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")


async def raw_body(request: Request, cap: int) -> bytes | Refusal:
    """The body, at most `cap` bytes. A compressed body is refused: what is small here could be large there."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        return Refusal(Reason.REQUEST_INVALID, "send the body uncompressed")
    declared = request.headers.get("content-length")
    if declared is not None and declared.isdigit() and int(declared) > cap:
        return Refusal(Reason.REQUEST_TOO_LARGE, f"the body exceeds {cap} bytes")
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > cap:
                return Refusal(Reason.REQUEST_TOO_LARGE, f"the body exceeds {cap} bytes")
    except ClientDisconnect:
        return Refusal(Reason.REQUEST_INVALID, "the request ended before its body")
    return bytes(body)


async def json_object(request: Request, cap: int) -> dict[str, Any] | Refusal:
    """The strict JSON object of the body; an absent body is an empty object."""
    body = await raw_body(request, cap)
    if isinstance(body, Refusal):
        return body
    if not body:
        return {}
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        return Refusal(Reason.REQUEST_INVALID, "send the body as application/json")
    try:
        value = loads(body, max_depth=_DEPTH, max_members=_MEMBERS)
    except DuplicateMember:
        return Refusal(Reason.REQUEST_INVALID, "the body names a member twice")
    except TooDeep:
        return Refusal(Reason.REQUEST_INVALID, f"the body has more than {_DEPTH} levels or {_MEMBERS} members")
    except NotStrict as fault:
        return Refusal(Reason.REQUEST_INVALID, f"the body is not strict JSON: {fault}")
    return value if isinstance(value, dict) else Refusal(Reason.REQUEST_INVALID, "the body must be a JSON object")


async def form(request: Request, cap: int) -> dict[str, str] | Refusal:
    """The form parameters. Parameters in the query are refused: they would end up in logs."""
    if request.url.query:
        return Refusal(Reason.REQUEST_INVALID, "send the parameters in the body, not in the query")
    body = await raw_body(request, cap)
    return body if isinstance(body, Refusal) else parse_form(request.headers.get("content-type", ""), body)


def single(request: Request, name: str) -> str | Refusal | None:
    """A header that may be sent at most once."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        return Refusal(Reason.REQUEST_INVALID, f"the header {name} is repeated")
    return values[0] if values else None


def bearer(request: Request) -> str | Refusal:
    """The bearer token of the one Authorization header (RFC 6750 §2.1)."""
    value = single(request, "authorization")
    if isinstance(value, Refusal):
        return value
    if value is None:
        return Refusal(Reason.TOKEN_MISSING)
    scheme, _, token = value.partition(" ")
    token = token.strip(" ")
    if scheme.lower() != "bearer" or not token:
        return Refusal(Reason.TOKEN_MISSING, "send the token as Authorization: Bearer")
    if len(token) > _MAX_TOKEN:
        return Refusal(Reason.TOKEN_SIZE)
    return token if _SAFE.issuperset(token) else Refusal(Reason.TOKEN_MALFORMED)


def query(request: Request, known: Collection[str]) -> dict[str, str] | Refusal:
    """Query parameters, each known and sent once."""
    values: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            return Refusal(Reason.REQUEST_INVALID, "the query has an unknown parameter")
        if name in values:
            return Refusal(Reason.REQUEST_INVALID, f"the parameter {name} is repeated")
        values[name] = value
    return values
