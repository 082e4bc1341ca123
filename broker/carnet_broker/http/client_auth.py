"""How a client shows who it is at the OAuth endpoints: one credential, by exactly one means.

private_key_jwt (RFC 7523 §2.2), client_secret_basic and client_secret_post (RFC 6749 §2.3.1). Reading is here; judging
is the service's. Every failure is one and the same `invalid_client`.
"""

from base64 import b64decode
from collections.abc import Mapping
from urllib.parse import unquote_plus

from starlette.requests import Request

from carnet.reasons import Reason, Refusal
from carnet_broker.http.intake import single
from carnet_broker.service.facade import Service
from carnet_broker.service.principals import Principal

__all__ = ["ASSERTION_TYPE", "authenticate"]

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_FAILED = Refusal(Reason.CLIENT_AUTH)
_TWO = Refusal(Reason.REQUEST_INVALID, "more than one client credential was sent")


async def authenticate(service: Service, request: Request, fields: Mapping[str, str]) -> Principal | Refusal:
    """The client that sent the request."""
    header = single(request, "authorization")
    if isinstance(header, Refusal):
        return header
    means = (header is not None, "client_secret" in fields, "client_assertion" in fields)
    if sum(means) > 1:
        return _TWO
    if header is not None:
        return await _by_basic(service, header, fields)
    if "client_assertion" in fields or "client_assertion_type" in fields:
        return await _by_assertion(service, fields)
    if "client_secret" in fields and "client_id" in fields:
        return await service.client_by_secret(fields["client_id"], fields["client_secret"])
    return _FAILED


async def _by_basic(service: Service, header: str, fields: Mapping[str, str]) -> Principal | Refusal:
    pair = _basic_pair(header)
    if pair is None or fields.get("client_id", pair[0]) != pair[0]:
        return _FAILED
    return await service.client_by_secret(*pair)


async def _by_assertion(service: Service, fields: Mapping[str, str]) -> Principal | Refusal:
    if fields.get("client_assertion_type") != ASSERTION_TYPE:
        return Refusal(Reason.REQUEST_INVALID, f"client_assertion_type must be {ASSERTION_TYPE}")
    assertion = fields.get("client_assertion", "")
    if not assertion or len(assertion) > 4096:
        return _FAILED
    who = await service.client_by_assertion(assertion)
    if isinstance(who, Principal) and fields.get("client_id", who.client) != who.client:
        return _FAILED
    return who


def _basic_pair(header: str) -> tuple[str, str] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic" or len(encoded) > 1024:
        return None
    try:
        text = b64decode(encoded.strip(" "), validate=True).decode()
    except ValueError:
        return None
    client, colon, secret = text.partition(":")
    if not colon or not client or not secret:
        return None
    return unquote_plus(client), unquote_plus(secret)
