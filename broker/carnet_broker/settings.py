"""Facts of a deployment, from the environment. What a tenant registers stands in carnet.yaml, not here."""

from collections.abc import Mapping
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from carnet_broker.http.sockets import address

__all__ = ["Settings", "SettingsError", "ignored_names", "load_settings"]

_PREFIX = "CARNET_"
# What the SDK and the guard read; a broker's environment may hold them too.
_SDK = frozenset(
    _PREFIX + name
    for name in (
        "URL",
        "CLIENT_ID",
        "CLIENT_KEY",
        "CLIENT_SECRET_FILE",
        "WORKLOAD_TOKEN_FILE",
        "HOST",
        "JOURNAL",
        "CHILD",
    )
)


class SettingsError(ValueError):
    """The environment cannot be used: one sentence with the fix, and no value of it."""


class Settings(BaseSettings):
    """config, keys: paths. issuer: the public https URL. store: an address that may hold a password."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    config: Path = Path("carnet.yaml")
    issuer: str = ""
    store: SecretStr = SecretStr("sqlite:///carnet.db")
    keys: Path = Path("keys")
    listen: str = "127.0.0.1:8420"
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    log: Literal["debug", "info", "warning", "error"] = Field(default="info")

    @field_validator("listen")
    @classmethod
    def _listen(cls, value: str) -> str:
        address(value)
        return value

    @field_validator("issuer")
    @classmethod
    def _issuer(cls, value: str) -> str:
        parts = urlsplit(value)
        bad = parts.query or parts.fragment or parts.username is not None or "?" in value or "#" in value
        if value and (bad or parts.scheme not in ("http", "https") or not parts.hostname or not value.isascii()):
            raise ValueError("give the public URL without user, query and fragment, like https://carnet.example.com")
        return value

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _proxies(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        listed = tuple(part.strip() for part in value.split(",") if part.strip())
        for part in listed:
            ip_network(part)  # ValueError names the part; addresses of proxies are no secret
        return listed


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Settings of this environment. Raises SettingsError for an unknown CARNET_ name or a value that does not fit."""
    known = {_PREFIX + name.upper() for name in Settings.model_fields}
    for name in sorted(environ):
        if name.upper().startswith(_PREFIX) and name not in known | _SDK and not _is_service_link(name):
            near = get_close_matches(name.upper(), sorted(known | _SDK), n=1, cutoff=0.0)
            raise SettingsError(f"{name} is no setting of Carnet; did you mean {near[0]}?")
    given: dict[str, Any] = {name.removeprefix(_PREFIX).lower(): environ[name] for name in known if name in environ}
    try:
        return Settings(**given)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_context=False, include_input=False)[0]
        where = _PREFIX + str(first["loc"][0]).upper()
        raise SettingsError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None


def ignored_names(environ: Mapping[str, str]) -> list[str]:
    """Service links that Kubernetes puts into a pod whose namespace has a service named carnet."""
    return sorted(name for name in environ if _is_service_link(name))


def _is_service_link(name: str) -> bool:
    return name.startswith((f"{_PREFIX}PORT", f"{_PREFIX}SERVICE_"))
