"""A real broker on loopback whose clock, store and answers the runner holds in its hand."""

import asyncio
import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from carnet.clock import ManualClock
from carnet_broker.composition import Broker, compose
from carnet_broker.config.reload import watch
from carnet_broker.http.sockets import Address
from carnet_broker.keys import KeyRing
from carnet_broker.runner import BrokerServer
from carnet_broker.store.base import Store, Unavailable
from carnet_broker.store.sqlite import SqliteStore
from tests.cases.forging import encoded
from tests.cases.registering import PASSPHRASE, Setup

__all__ = ["CaseBroker"]


def _quickly_checked(passphrase: str) -> str:
    """The stored form with the least work that the broker takes: the runner answers hundreds of questions."""
    n, salt = 2**14, b"salt-of-the-case-runner"
    digest = hashlib.scrypt(passphrase.encode(), salt=salt, n=n, r=8, p=1, maxmem=2**26, dklen=32)
    return f"scrypt${n}$8$1${encoded(salt)}${encoded(digest)}"


STORED_PASSPHRASE = _quickly_checked(PASSPHRASE)


class _BreakableStore:
    """The real store, or, while `down` is set, one that answers nothing."""

    def __init__(self, inner: Store, down: threading.Event) -> None:
        self._inner, self._down = inner, down

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in ("close", "close_now") or not asyncio.iscoroutinefunction(found):
            return found

        async def asked(*args: Any, **kwargs: Any) -> Any:
            if self._down.is_set():
                raise Unavailable("The store did not answer.")
            return await found(*args, **kwargs)

        return asked


class CaseBroker:
    """folder: where configuration, keys and the store's file lie; they survive a restart."""

    def __init__(self, folder: Path, setup: Setup, clock: ManualClock) -> None:
        self.folder, self.setup, self.clock = folder, setup, clock
        self.down = threading.Event()
        self._write(setup.document(STORED_PASSPHRASE), setup.policy)
        KeyRing.create(folder / "keys", clock.now())
        self.server = BrokerServer(self._make).start()

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def keys(self) -> KeyRing:
        return self.server.broker.context.keys

    def _make(self, issuer: str) -> Broker:
        watched = watch(self.folder / "carnet.yaml")
        store = SqliteStore.open(self.folder / "carnet.db", clock=self.clock.now)
        return compose(
            store=cast(Store, _BreakableStore(store, self.down)),
            keys=KeyRing.open(self.folder / "keys"),
            registries=watched.good.registries,
            issuer=issuer,
            watched=watched,
        )

    def _write(self, registry: Mapping[str, Any], policy: Mapping[str, Any]) -> None:
        (self.folder / "carnet.yaml").write_text(json.dumps(registry))
        (self.folder / "case.policy.yaml").write_text(json.dumps(policy))

    def change_policy(self, policy: Mapping[str, Any]) -> str | None:
        """Another policy file, in force when this returns, or the problem that kept it from that."""
        (self.folder / "case.policy.yaml").write_text(json.dumps(policy))
        return self._reload()

    def change_registry(self, registry: Mapping[str, Any]) -> str | None:
        """Another carnet.yaml; the problem that kept it from coming into force."""
        (self.folder / "carnet.yaml").write_text(json.dumps(registry))
        return self._reload()

    def _reload(self) -> str | None:
        self.upkeep("reload")
        return next(iter(self.server.broker.problems.values()), None)

    def upkeep(self, *names: str) -> None:
        """Run these rounds of background work now instead of at their next turn."""
        for chore in self.server.broker.chores():
            if chore.name in names and not self.down.is_set():

                async def run(work: Any = chore.round) -> None:
                    await work()

                asyncio.run_coroutine_threadsafe(run(), self.server.loop).result(timeout=10)

    def restart(self) -> None:
        """Stop in order and come up again on the same port, with the same files."""
        host, _, port = self.url.rpartition("//")[2].rpartition(":")
        self.server.stop()
        where: Address = (host, int(port))
        self.server = BrokerServer(self._make, where=where).start()

    def close(self) -> None:
        self.server.stop()

    @contextmanager
    def without_store(self) -> Iterator[None]:
        self.down.set()
        try:
            yield
        finally:
            self.down.clear()
