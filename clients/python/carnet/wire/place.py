"""Where the broker is."""

from urllib.parse import urlsplit

from carnet.errors import ConfigError

__all__ = ["base", "is_loopback", "origin"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PORTS = {"http": 80, "https": 443}


def base(url: str) -> str:
    """The address that paths are appended to: https, or http to this machine, for whatever is sent there holds a secret
    or a token (RFC 6749 §3.2, RFC 6750 §5.3). Raises ConfigError. A development issuer may be given as the URL: its
    `/dev` is no path."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError(f"the broker's URL {url!r} is malformed") from None
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ConfigError(f"the broker's URL {url!r} must be https://host[:port] (http:// on loopback)")
    if parts.scheme != "https" and not is_loopback(url):
        raise ConfigError(
            f"the broker's URL {url!r} is not https: anybody on the way would read secrets and tokens; http:// is for "
            "loopback (127.0.0.1, ::1, localhost) only"
        )
    plain = url.rstrip("/")
    return plain.removesuffix("/dev") if is_loopback(url) and parts.path.rstrip("/") == "/dev" else plain


def is_loopback(url: str) -> bool:
    """Whether the address can only be this machine."""
    return urlsplit(url).hostname in _LOOPBACK


def origin(url: str) -> tuple[str, str, int] | None:
    """(scheme, host, port) of an http(s) URL (RFC 6454 §4), or None for what has none, such as a urn."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname.lower(), port or _PORTS[parts.scheme]
