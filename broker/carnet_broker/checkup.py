"""What `carnet doctor` looks at on the server's side: each fact with its problem and the fix, nothing changed."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from carnet.errors import ConfigError
from carnet_broker.config.doubts import doubts
from carnet_broker.config.load import check_issuer, load_registries
from carnet_broker.core.registry import Registry
from carnet_broker.http.sockets import address, listen
from carnet_broker.keys import KeyRing, KeysError
from carnet_broker.main import StartRefused, check_keys, check_public_issuer
from carnet_broker.settings import Settings
from carnet_broker.store.base import Unavailable
from carnet_broker.store.look import Missing, look
from carnet_broker.store.open import store_path

__all__ = ["Finding", "examine"]

_FORGETS = (
    "`carnet recover --accept-loss` begins an empty one, which forgets every revocation (what was revoked lives until "
    "it expires), every run and approval, what history rules counted, and the audit record"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """problem None: well. warning: no reason for `carnet serve` to refuse, and yet worth a look."""

    what: str
    fact: str
    problem: str | None = None
    warning: str | None = None


def examine(settings: Settings) -> list[Finding]:
    """All findings, in the order in which `carnet serve` would meet them."""
    keys, key_finding = _keys(settings)
    found = [_issuer(settings), key_finding, *_config(settings)]
    found.append(_store(settings, keys))
    found.append(_listen(settings))
    return found


def _issuer(settings: Settings) -> Finding:
    try:
        check_public_issuer(settings.issuer)
    except StartRefused as fault:
        return Finding("issuer", settings.issuer or "not set", str(fault))
    return Finding("issuer", settings.issuer)


def _keys(settings: Settings) -> tuple[KeyRing | None, Finding]:
    try:
        keys = KeyRing.open(settings.keys)
        check_keys(keys)
    except (KeysError, StartRefused) as fault:
        return None, Finding("keys", str(settings.keys), str(fault))
    return keys, Finding("keys", f"{settings.keys}, active {keys.active.kid}")


def _config(settings: Settings) -> list[Finding]:
    try:
        registries = load_registries(settings.config)
        if settings.issuer:
            check_issuer(registries, settings.issuer)
    except ConfigError as fault:
        return [Finding("configuration", str(settings.config), str(fault))]
    found = [_tenant(registries, tenant) for tenant in sorted(registries)]
    for tenant in sorted(registries):
        found += [Finding("configuration", tenant, warning=doubt) for doubt in doubts(registries[tenant])]
    return found


def _tenant(registries: Mapping[str, Registry], tenant: str) -> Finding:
    registry = registries[tenant]
    fact = f"{tenant}: {len(registry.agents)} agents, {len(registry.hosts)} hosts, {len(registry.clients)} clients"
    if not registry.operators:
        return Finding("configuration", fact, f"the tenant {tenant} has no operator, so nobody can approve or revoke")
    return Finding("configuration", fact)


def _store(settings: Settings, keys: KeyRing | None) -> Finding:
    try:
        health = look(store_path(settings.store.get_secret_value()))
    except Missing as fault:
        if keys is None:
            return Finding(
                "store", "missing", f"{fault}; restore it, or make it with `carnet init` if there never was one"
            )
        restore = "`carnet serve` refuses until it is restored from a backup"
        return Finding("store", "missing", f"{fault}; {restore}. Without a backup {_FORGETS}")
    except Unavailable as fault:
        return Finding("store", "in use", f"{fault} (a running broker is well: ask its /readyz)")
    except ConfigError as fault:
        return Finding("store", "unusable", str(fault))
    fact = ", ".join(f"{name} {value}" for name, value in health.facts.items())
    if health.problems:
        return Finding("store", fact, health.problems[0])
    if keys is not None and health.epoch != keys.epoch_marker:
        problem = "it is not the store of these keys: `carnet serve` refuses until that is restored from a backup"
        return Finding("store", fact, f"{problem}. Without a backup {_FORGETS}")
    return Finding("store", fact)


def _listen(settings: Settings) -> Finding:
    try:
        with listen(address(settings.listen)):
            return Finding("listen", settings.listen)
    except (OSError, socket.gaierror) as fault:
        return Finding("listen", settings.listen, f"{fault.strerror}; set CARNET_LISTEN, or stop what listens there")
