"""Settings to a broker. Whatever would make it unsafe or useless is refused here, with the one line that fixes it."""

from urllib.parse import urlsplit

from carnet.errors import ConfigError
from carnet_broker.composition import Broker, compose
from carnet_broker.config.load import check_issuer
from carnet_broker.config.reload import watch
from carnet_broker.keys import KeyRing, KeysError
from carnet_broker.settings import Settings
from carnet_broker.store.base import Unavailable
from carnet_broker.store.open import open_store

__all__ = ["StartRefused", "check_keys", "check_public_issuer", "open_broker"]


class StartRefused(Exception):
    """The broker does not start: one sentence with the fix."""


async def open_broker(settings: Settings) -> Broker:
    """Everything opened and checked, nothing served yet. Raises StartRefused."""
    try:
        check_public_issuer(settings.issuer)
        keys = KeyRing.open(settings.keys)
        check_keys(keys)
        watched = watch(settings.config)
        check_issuer(watched.good.registries, settings.issuer)  # before the store is touched
        store = open_store(settings.store.get_secret_value())
    except (ConfigError, KeysError, Unavailable) as fault:
        raise StartRefused(str(fault)) from None
    registries = watched.good.registries
    broker = compose(store=store, keys=keys, registries=registries, issuer=settings.issuer, watched=watched)
    try:
        await _check_epoch(broker, settings)
    except BaseException:
        await broker.close()
        raise
    return broker


def check_public_issuer(issuer: str) -> None:
    """Tokens name the issuer; over plain http anybody on the way could stand in for it."""
    if not issuer:
        raise StartRefused("no issuer is set; set CARNET_ISSUER to the public https URL of this broker")
    if urlsplit(issuer).scheme != "https":
        raise StartRefused("the issuer is not https; set CARNET_ISSUER to the https URL (for one machine: carnet dev)")


def check_keys(keys: KeyRing) -> None:
    if keys.is_ephemeral or keys.epoch_marker.startswith("dev-"):
        raise StartRefused("the keys are a developer's; make a key directory with `carnet init` and set CARNET_KEYS")


async def _check_epoch(broker: Broker, settings: Settings) -> None:
    """A store that is not the one these keys were made for has forgotten revocations: it must not look well."""
    try:
        health = await broker.context.store.health()
    except Unavailable as fault:
        raise StartRefused(str(fault)) from None
    if health.epoch != broker.context.keys.epoch_marker:
        raise StartRefused(
            f"the store is empty or another one than {settings.keys} was initialised with, so revocations may be lost; "
            "restore the store from its backup, or accept the loss with `carnet recover`"
        )
