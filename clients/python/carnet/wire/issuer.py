"""The broker's own name, which client assertions are addressed to (RFC 8414)."""

from collections.abc import Mapping
from typing import Any

from carnet.errors import ConfigError

__all__ = ["METADATA", "issuer_of"]

METADATA = "/.well-known/oauth-authorization-server"


def issuer_of(metadata: Mapping[str, Any]) -> str:
    """The issuer of a metadata document (RFC 8414 §3.2). ConfigError if it names none."""
    issuer = metadata.get("issuer")
    if isinstance(issuer, str) and issuer:
        return issuer
    raise ConfigError("CARNET_URL is no Carnet broker: its metadata names no issuer")
