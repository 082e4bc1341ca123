"""The broker process of the tests, in a thread: real HTTP, real SQLite, keys of this process, known credentials."""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from carnet_broker.composition import Broker
    from carnet_broker.core.registry import Registry

__all__ = ["OPERATOR", "Server"]

R = TypeVar("R")
OPERATOR = "carnet-testing"


class Server:
    """config: carnet.yaml. Every client of it gets a secret of the test, and one operator is added who may approve."""

    def __init__(self, config: Path, folder: Path, now: Callable[[], int]) -> None:
        from carnet_broker.config.load import load_registries
        from carnet_broker.runner import BrokerServer

        self._folder, self._now = folder, now
        self._stores = 0
        self._retired: Any = None
        self.passphrase = secrets.token_urlsafe(16)
        self.secrets: dict[str, str] = {}
        self.registries = {tenant: self._opened(registry) for tenant, registry in load_registries(config).items()}
        self._server: BrokerServer = BrokerServer(self._make)
        self._server.start()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def service(self) -> Any:
        return self._server.service

    @property
    def broker(self) -> "Broker":
        return self._server.broker

    def do(self, work: Coroutine[Any, Any, R]) -> R:
        """Run something in the broker's event loop."""
        future: Future[R] = asyncio.run_coroutine_threadsafe(work, self._server.loop)
        return future.result(30)

    def renew(self, now: Callable[[], int]) -> None:
        """An empty store under another clock."""
        self._now = now
        self.do(self._renewed())

    def chores(self) -> None:
        """What is due now, at once instead of within a second."""
        for chore in self.broker.chores():
            self.do(_done(chore.round))

    def stop(self) -> None:
        if self._retired is not None:
            self.do(self._retired.close())
        self._server.stop()

    def _make(self, issuer: str) -> "Broker":
        from carnet_broker.composition import compose
        from carnet_broker.keys import KeyRing

        keys = KeyRing.ephemeral("test-", now=self._now())
        return compose(store=self._store(), keys=keys, registries=self.registries, issuer=issuer)

    def _store(self) -> Any:
        from carnet_broker.store.sqlite import SqliteStore

        self._stores += 1
        return SqliteStore.open(self._folder / f"{self._stores}.db", clock=lambda: self._now())

    async def _renewed(self) -> None:
        context = self.broker.context
        before, context.store = context.store, self._store()
        for part in fields(context):
            if part.default_factory is not MISSING:  # what the broker remembers of the store before
                setattr(context, part.name, part.default_factory())
        await self.broker.start()
        # Whoever still reads the old store is let finish: it is closed one test later.
        retired, self._retired = self._retired, before
        if retired is not None:
            await retired.close()

    def _opened(self, registry: "Registry") -> "Registry":
        from carnet_broker.config.passphrase import hash_passphrase
        from carnet_broker.core.registry import Operator, Role

        clients = {}
        for name, client in registry.clients.items():
            secret = self.secrets[name] = secrets.token_urlsafe(32)
            digest = hashlib.sha256(secret.encode()).hexdigest()
            clients[name] = replace(client, jwks=(), secret_sha256=digest)
        stored = hash_passphrase(self.passphrase, secrets.token_bytes(16))
        groups = registry.policy.approvals.approvers
        person = Operator(name=OPERATOR, role=Role.ADMIN, groups=groups, passphrase=stored)
        return replace(registry, clients=clients, operators={**registry.operators, OPERATOR: person})


async def _done(round: Callable[[], Any]) -> None:
    await round()
