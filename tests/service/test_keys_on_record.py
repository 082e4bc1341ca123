"""Which keys sign is on record in every tenant, however the ring was turned."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carnet.clock import ManualClock
from carnet_broker.composition import Broker, compose
from carnet_broker.core.registry import Registry
from carnet_broker.keys import KeyRing
from carnet_broker.service.views import KeysView
from carnet_broker.store.limits import Limits as StoreLimits
from carnet_broker.store.sqlite import SqliteStore
from tests.service.world import ISSUER, ROOT, TRACE, World, good, registry

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[SqliteStore]:
    made = SqliteStore.open(tmp_path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    yield made
    await made.close()


@pytest.fixture
def keys(tmp_path: Path, clock: ManualClock) -> Path:
    KeyRing.create(tmp_path / "keys", clock.now())
    return tmp_path / "keys"


async def started(store: SqliteStore, keys: Path, *more: Registry) -> Broker:
    """A new process on the same store and keys."""
    registries = {each.tenant: each for each in (registry(), *more)}
    broker = compose(store=store, keys=KeyRing.open(keys), registries=registries, issuer=ISSUER)
    await broker.start()
    return broker


async def reload(broker: Broker) -> None:
    await next(chore for chore in broker.chores() if chore.name == "reload").round()


async def rings(broker: Broker, clock: ManualClock) -> list[tuple[str, object, object]]:
    lines = await World(broker.context, broker.service, clock).audit("key_rotated")
    return [(line.actor, line.facts.get("active"), line.facts.get("retiring")) for line in lines]


async def test_a_ring_that_was_turned_in_its_files_is_recorded_when_it_is_picked_up(
    store: SqliteStore, keys: Path, clock: ManualClock
) -> None:
    broker = await started(store, keys)
    first = broker.context.keys.active.kid
    assert await rings(broker, clock) == [("broker", [first], [])]
    second = KeyRing.open(keys).rotate(clock.now())
    await reload(broker)
    await reload(broker)
    assert (await rings(broker, clock))[1:] == [("broker", [second], [first])]
    KeyRing.open(keys).retire(first)
    await reload(broker)
    assert (await rings(broker, clock))[2:] == [("broker", [second], [])]


async def test_what_was_turned_while_no_broker_ran_is_recorded_at_the_start_and_only_once(
    store: SqliteStore, keys: Path, clock: ManualClock
) -> None:
    first = (await started(store, keys)).context.keys.active.kid
    second = KeyRing.open(keys).rotate(clock.now())
    for _ in range(2):
        broker = await started(store, keys)
        await reload(broker)
        assert (await rings(broker, clock))[1:] == [("broker", [second], [first])]


async def test_a_rotation_over_http_names_the_person_and_then_the_ring(
    store: SqliteStore, keys: Path, clock: ManualClock
) -> None:
    broker = await started(store, keys)
    first = broker.context.keys.active.kid
    second = good(await broker.service.rotate_keys(ROOT, TRACE), KeysView).active
    await reload(broker)
    assert (await rings(broker, clock))[1:] == [("operator:root", None, None), ("broker", [second], [first])]
