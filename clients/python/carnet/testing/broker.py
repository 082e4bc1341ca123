"""What a test holds: the broker, its people, its clock."""

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from carnet.client._async import AsyncBroker
from carnet.client._sync import Broker, Child, Run
from carnet.errors import ConfigError, Refused, refused
from carnet.guard.guard import Guard
from carnet.guard.setup import Setup
from carnet.reasons import Reason, Refusal
from carnet.task import Task
from carnet.testing.clock import GuardClock, TestClock
from carnet.testing.server import OPERATOR, Server
from carnet.wire.credential import Credential

__all__ = ["CarnetBroker"]

_TRACE = "0" * 31 + "1"
_FELT = 5.0  # seconds of real time within which guards must have heard of a step of the clock
_GLANCE = 0.02


class CarnetBroker:
    """config: carnet.yaml; its first tenant is the one that tests act in. `clock.advance(seconds)` moves the time."""

    def __init__(self, config: Path, folder: Path) -> None:
        self.clock = TestClock(self._moved)
        self._folder = folder
        self._server = Server(config, folder, self.clock.now)
        self.tenant = next(iter(self._server.registries))
        self._bound: list[tuple[Guard, Setup]] = []
        self._brokers: list[Broker] = []
        self._journals = 0

    @property
    def url(self) -> str:
        """The broker's address."""
        return self._server.url

    @property
    def service(self) -> Any:
        """The broker's use cases, for what a test must look at from inside."""
        return self._server.service

    def do(self, work: Any) -> Any:
        """Run a coroutine of the broker in its event loop."""
        return self._server.do(work)

    def credential(self, client: str) -> Credential:
        """A client of the registry, with the secret that it has in tests."""
        return Credential.secret(client, self._server.secrets[client])

    def bind(self, guard: Guard, *, journal: bool = True) -> Guard:
        """Give a guard this broker, the client of its host and the test's clock, until the test ends."""
        folder = None
        if journal:
            self._journals += 1
            folder = self._folder / f"journal-{self._journals}"
        host = guard.setup.host or self._only_host()
        setup = replace(
            guard.setup,
            url=self.url,
            credential=self.credential(self._client(host=host)),
            clock=GuardClock(self.clock.now),
            journal=folder,
        )
        self._bound.append((guard, guard.placed(setup)))
        return guard

    def run(self, *, agent: str | None = None) -> Run:
        """A run of the registry's first client that is an agent's, or of this agent's."""
        return self.broker(agent=agent).run()

    def broker(self, *, agent: str | None = None) -> Broker:
        """The SDK's broker, as that client; closed when the test ends."""
        made = Broker(self.url, credential=self.credential(self._client(agent=agent)))
        self._brokers.append(made)
        return made

    def abroker(self, *, agent: str | None = None) -> AsyncBroker:
        """The same, asynchronous; to be closed by the test (`async with`)."""
        return AsyncBroker(self.url, credential=self.credential(self._client(agent=agent)))

    @contextmanager
    def child(self, *, tools: Collection[str] | None = None, level: int | None = None) -> Iterator[Child]:
        """A current child with these tools, at this level. ConfigError when the registry can't give that."""
        target = self._target(tools)
        irreversible = level == 2
        task = Task(
            touches_pii=False,
            touches_secrets=False,
            reversible=not irreversible,
            resource_count=11 if level == 1 else 10,
            tools=None if tools is None else tuple(tools),
        )
        with self.run() as run:
            child = run.spawn(target, task, wait=0)
            if level is not None and child.level != level:
                raise ConfigError(f"a child with {sorted(tools or ())} has level {child.level}, not {level}")
            if child.state == "pending" and child.approval_id is not None:
                self._approve_once(child.approval_id)
            with child.wait():
                yield child

    @contextmanager
    def approving(self) -> Iterator[None]:
        """Every question is approved as soon as it is asked."""
        over = threading.Event()
        faults: list[BaseException] = []

        def watch() -> None:
            try:
                while not over.wait(_GLANCE):
                    for approval in self.pending():
                        self._approve_once(approval)
            except BaseException as fault:  # noqa: BLE001 - raised in the test's own thread below
                faults.append(fault)

        thread = threading.Thread(target=watch, name="carnet-approving", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if faults:
            raise faults[0]

    def pending(self) -> list[str]:
        """The ids of the questions that wait for an answer, oldest first."""
        listing = _or_raise(self.do(self.service.approvals(self._person(), "pending", None, 100)))
        return [view.id for view in listing.rows]

    def approve(self, id: str) -> None:
        """Answer yes. Raises Refused."""
        self._answer(id, "approve", self._server.passphrase)

    def deny(self, id: str) -> None:
        """Answer no. Raises Refused."""
        self._answer(id, "deny", None)

    def withdraw(self, id: str) -> None:
        """Take a yes back. Raises Refused."""
        self._answer(id, "withdraw", None)

    def revoke(self, mark: str) -> None:
        """Revoke `kind:id`. Raises Refused."""
        _or_raise(self.do(self.service.revoke(self._person(), mark, None, "revoked by a test", False, _TRACE)))

    def records(self, **filters: str) -> list[dict[str, Any]]:
        """The audit records so far, oldest first; guards' journals are shipped before."""
        for guard, _ in self._bound:
            guard.ship()
        found: list[dict[str, Any]] = []
        after: str | None = None
        while True:
            listing = _or_raise(self.do(self.service.audit(self._person(), filters, after, 200)))
            found += [dict(row) for row in listing.rows]
            after = listing.next
            if after is None:
                return found

    def renew(self) -> None:
        """A fresh store and a fresh clock."""
        self.clock = TestClock(self._moved)
        self._server.renew(self.clock.now)

    def release(self) -> None:
        """Give the bound guards their own set-up back, close connections."""
        while self._brokers:
            self._brokers.pop().close()
        while self._bound:
            guard, before = self._bound.pop()
            guard.placed(before)

    def stop(self) -> None:
        self.release()
        self._server.stop()

    def _moved(self) -> None:
        self._server.chores()
        until = time.monotonic() + _FELT
        for guard, _ in self._bound:
            while guard.hears() and guard.time() < self.clock.now() and time.monotonic() < until:
                time.sleep(_GLANCE)

    def _approve_once(self, id: str) -> None:
        try:
            self.approve(id)
        except Refused as refused:  # somebody else did, inside `approving()`
            if refused.reason is not Reason.ALREADY_ANSWERED:
                raise

    def _answer(self, id: str, verdict: str, passphrase: str | None) -> None:
        from carnet_broker.service.requests import Verdict

        _or_raise(self.do(self.service.answer(self._person(), id, Verdict(verdict), "", passphrase, _TRACE)))

    def _person(self) -> Any:
        from carnet_broker.core.registry import Role
        from carnet_broker.service.principals import Kind, Principal

        return Principal(kind=Kind.OPERATOR, tenant=self.tenant, name=OPERATOR, role=Role.ADMIN)

    def _client(self, *, agent: str | None = None, host: str | None = None) -> str:
        for name, client in self._server.registries[self.tenant].clients.items():
            fits = (
                client.host == host if host is not None else client.agent is not None and agent in (None, client.agent)
            )
            if fits:
                return name
        raise ConfigError(f"carnet.yaml has no client for {host or agent or 'any agent'}")

    def _only_host(self) -> str:
        hosts = list(self._server.registries[self.tenant].hosts)
        if len(hosts) == 1:
            return hosts[0]
        raise ConfigError(f"the guard names no host and carnet.yaml has {len(hosts)}: Guard('{hosts[0]}')")

    def _target(self, tools: Collection[str] | None) -> str:
        registry = self._server.registries[self.tenant]
        parent = registry.agents[str(registry.clients[self._client()].agent)]
        for name in sorted(parent.callable_agents):
            if set(tools or ()) <= registry.agents[name].tools:
                return name
        raise ConfigError(f"no agent that {parent.name} may call has all of {sorted(tools or ())}")


def _or_raise(found: Any) -> Any:
    if isinstance(found, Refusal):
        raise refused(found)
    return found
