"""Making a deployment: key directory, store and a starting configuration with its first admin.

The first admin exists only this way, by somebody who can write the key directory; never over HTTP. The key directory's
marker is written last and names the store's epoch, so that a store that was lost later cannot pass for a new one.
"""

import os
import secrets
from pathlib import Path

from carnet_broker.config.load import load_registry
from carnet_broker.config.passphrase import MIN_SALT, hash_passphrase
from carnet_broker.keys import KeyRing
from carnet_broker.main import StartRefused
from carnet_broker.settings import Settings
from carnet_broker.starting import policy_text, registry_text
from carnet_broker.store.open import open_store

__all__ = ["check_unused", "initialise", "new_passphrase", "recover", "write_new"]

POLICY_NAME = "tools.policy.yaml"


def check_unused(settings: Settings) -> None:
    """Raises StartRefused when something is there that `initialise` would have to overwrite."""
    for path in (settings.config, settings.config.parent / POLICY_NAME):
        if path.exists():
            raise StartRefused(f"{path} exists already; carnet init overwrites nothing: move it away or name another")
    if settings.keys.exists() and any(settings.keys.iterdir()):
        raise StartRefused(f"the key directory {settings.keys} is not empty; set CARNET_KEYS to a new one")


async def initialise(settings: Settings, *, tenant: str, operator: str, passphrase: str) -> None:
    """Write everything, the key directory last. Raises StartRefused, and what store, keys and configuration raise."""
    check_unused(settings)
    hashed = hash_passphrase(passphrase, secrets.token_bytes(MIN_SALT))
    settings.config.parent.mkdir(parents=True, exist_ok=True)
    write_new(settings.config.parent / POLICY_NAME, policy_text())
    write_new(settings.config, registry_text(tenant, operator, hashed, POLICY_NAME))
    load_registry(settings.config)
    store = open_store(settings.store.get_secret_value())
    try:
        health = await store.health()
        KeyRing.create(settings.keys, health.now, epoch=health.epoch)
    finally:
        await store.close()


async def recover(settings: Settings) -> str:
    """Begin a new epoch of the store and write it beside the keys. Answers the epoch. The loss of what the old store
    knew is accepted: tokens that it had revoked live until they expire, unless the keys are rotated and retired."""
    keys = KeyRing.open(settings.keys)
    store = open_store(settings.store.get_secret_value())
    try:
        epoch = await store.new_epoch()
        keys.record_epoch(epoch, await store.now())
        return epoch
    finally:
        await store.close()


def new_passphrase() -> str:
    return secrets.token_urlsafe(24)


def write_new(path: Path, text: str, mode: int = 0o600) -> None:
    """A file that did not exist, readable by its owner. Raises StartRefused."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
            file.write(text)
    except OSError as fault:
        raise StartRefused(f"cannot write {path}: {fault.strerror}") from None
