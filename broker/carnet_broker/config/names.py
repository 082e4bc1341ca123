"""The grammars of names. All are ASCII and match whole values, so that a mark, a log line or a URL can hold them."""

import re
from urllib.parse import urlsplit

from carnet_policy.reading import Part, shown

__all__ = ["audience", "client", "name", "sha256_hex", "tenant"]

_TENANT = re.compile(r"[a-z0-9-]{1,63}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PRINTABLE = re.compile(r"[\x21-\x7e]{1,256}")
_TAKEN = frozenset({"journal", "self", "broker", "policy", "operator"})
_WITH_HOST = ("http", "https", "ws", "wss")


def tenant(part: Part) -> str:
    return _match(part, _TENANT, "a tenant's name has 1 to 63 of a to z, 0 to 9 and -")


def name(part: Part) -> str:
    """Name of an agent, host, client, operator or owner."""
    return _match(part, _NAME, "a name has 1 to 128 letters, digits and . _ @ + -, a letter or digit first")


def client(part: Part) -> str:
    """Id of a client. Audit records and counters name others than clients too, by words that no client may have."""
    found = name(part)
    if found.lower() in _TAKEN:
        raise part.error(
            f"{shown(found)} cannot stand for {part.name}: Carnet itself goes by that name in its records; give the "
            f"client another id, like {found}-app"
        )
    return found


def sha256_hex(part: Part) -> str:
    return _match(part, _SHA256, "write the SHA-256 of the secret as 64 hex digits in lower case")


def audience(part: Part) -> str:
    """An absolute URI without fragment (RFC 8707 section 2): what tokens for the host carry as `aud`."""
    text = _match(part, _PRINTABLE, "an audience is an absolute URI of at most 256 ASCII characters")
    try:
        uri = urlsplit(text)
        absolute = bool(uri.scheme and ":" in text and (uri.netloc or uri.path))
        absolute = absolute and (uri.scheme not in _WITH_HOST or (bool(uri.hostname) and uri.port != 0))
    except ValueError:
        absolute = False
        uri = urlsplit("")
    if not absolute or "#" in text or "@" in uri.netloc:
        raise part.error(
            f"{shown(text)} is no audience: write an absolute URI like https://crm.example/mcp, without # and user name"
        )
    return text


def _match(part: Part, pattern: re.Pattern[str], rule: str) -> str:
    if type(part.value) is not str or pattern.fullmatch(part.value) is None:
        raise part.error(f"{shown(part.value)} cannot stand for {part.name}: {rule}")
    return part.value
