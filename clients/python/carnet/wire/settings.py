"""The environment of an SDK process, read on first use so that importing a tool module needs none of it."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from carnet.errors import ConfigError

__all__ = ["Settings", "read"]

_SDK = {"URL", "CLIENT_ID", "CLIENT_KEY", "CLIENT_SECRET_FILE", "WORKLOAD_TOKEN_FILE", "HOST", "JOURNAL", "CHILD"}
_BROKER = {"CONFIG", "ISSUER", "STORE", "KEYS", "LISTEN", "TRUSTED_PROXIES", "LOG"}
_KNOWN = {f"CARNET_{name}" for name in _SDK | _BROKER}
# Kubernetes sets these for every service of the namespace that is named "carnet".
_SERVICE_LINK = re.compile(r"CARNET_(PORT(_.*)?|SERVICE_.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    url: str | None
    client_id: str | None
    client_key: str | None  # path of a PEM file
    client_secret_file: str | None
    host: str | None
    journal: str | None


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """The `CARNET_*` variables. An unknown one is a ConfigError: a typo would otherwise weaken a set-up silently."""
    given = os.environ if environ is None else environ
    for name in given:
        if name.startswith("CARNET_") and name not in _KNOWN and not _SERVICE_LINK.fullmatch(name):
            raise ConfigError(f"{name} is no variable of Carnet; known are {', '.join(sorted(_KNOWN))}")
    return Settings(
        url=given.get("CARNET_URL") or None,
        client_id=given.get("CARNET_CLIENT_ID") or None,
        client_key=given.get("CARNET_CLIENT_KEY") or None,
        client_secret_file=given.get("CARNET_CLIENT_SECRET_FILE") or None,
        host=given.get("CARNET_HOST") or None,
        journal=given.get("CARNET_JOURNAL") or None,
    )
