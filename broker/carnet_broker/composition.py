"""A broker put together: store, keys and registries behind one service, with the upkeep that must run beside it."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from carnet.errors import ConfigError
from carnet_broker.config.doubts import doubts, unowned
from carnet_broker.config.load import check_issuer
from carnet_broker.config.reload import Watched, refresh
from carnet_broker.core.registry import Registry
from carnet_broker.keys import KeyRing, KeysError
from carnet_broker.service.context import Context
from carnet_broker.service.facade import Service
from carnet_broker.service.ids import RandomIds
from carnet_broker.store.base import Store
from carnet_broker.supervisor import Chore

__all__ = ["Broker", "compose"]

_LOG = logging.getLogger("carnet.broker")


@dataclass(eq=False)
class Broker:
    """watched: the files that the registries came from, None where they came from elsewhere."""

    context: Context
    service: Service
    watched: Watched | None = None
    problems: dict[str, str] = field(default_factory=dict)  # by source: why what is in force is not the newest

    async def start(self) -> None:
        """Put each tenant's policy in force, and the keys on record. Raises Unavailable when the store does not
        answer."""
        for tenant, registry in self.context.registries.items():
            for doubt in doubts(registry):
                _LOG.warning("doubtful configuration", extra={"fields": {"tenant": tenant, "doubt": doubt}})
            await self.service.activate_policy(tenant)
        await self.service.record_ring()

    def chores(self) -> list[Chore]:
        return [
            Chore("sweeper", 1.0, self._sweep),
            Chore("sealer", 2.0, self._seal),
            Chore("reload", 2.0, self._reload),
        ]

    def notices(self) -> list[str]:
        """What is not as it should be, without names: anybody may read this. The log has them."""
        text = "the {} on disk cannot be loaded, the last good one is in force; see the log"
        found = [text.format(source) for source in sorted(self.problems)]
        if count := sum(len(unowned(registry)) for registry in self.context.registries.values()):
            found.append(
                f"nobody is kept from approving what {count} of the agents ask: their owner is no operator and no group"
                "; `carnet config check` names them"
            )
        return found

    async def close(self) -> None:
        await self.context.store.close()

    async def _sweep(self) -> None:
        await self.service.sweep(await self.context.store.now())

    async def _seal(self) -> None:
        for tenant in tuple(self.context.registries):
            await self.service.seal(tenant)

    async def _reload(self) -> None:
        try:
            self.context.keys.reload_if_changed()
            self._note("keys", None)
        except KeysError as fault:
            self._note("keys", str(fault))
        await self.service.record_ring()
        if self.watched is None:
            return
        before = self.watched
        self.watched = self._fit(before, await asyncio.to_thread(refresh, before))
        self._note("configuration", self.watched.problem)
        if self.watched.good is not before.good:
            self.context.registries = self.watched.good.registries
            await self.start()
            _LOG.info("configuration reloaded", extra={"fields": {"tenants": sorted(self.context.registries)}})

    def _fit(self, before: Watched, after: Watched) -> Watched:
        """What was read, unless one of its hosts has the issuer as its audience: then the old one stays in force."""
        try:
            check_issuer(after.good.registries, self.context.issuer)
        except ConfigError as fault:
            return replace(after, good=before.good, problem=str(fault))
        return after

    def _note(self, source: str, problem: str | None) -> None:
        """Say a problem once, not every two seconds. The last good state stays in force meanwhile."""
        if problem is None:
            self.problems.pop(source, None)
        elif self.problems.get(source) != problem:
            self.problems[source] = problem
            _LOG.error("reload refused", extra={"fields": {"source": source, "problem": problem}})


def compose(
    *, store: Store, keys: KeyRing, registries: Mapping[str, Registry], issuer: str, watched: Watched | None = None
) -> Broker:
    """The parts as one. Raises ConfigError when a host has the issuer as its audience."""
    check_issuer(registries, issuer)
    context = Context(store=store, keys=keys, registries=registries, issuer=issuer, ids=RandomIds())
    return Broker(context, Service(context), watched)
