"""A broker that stored a part of a journal and forgot how far it was: the rest still arrives, once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.from_thread
import anyio.to_thread
import pytest

from carnet.clock import ManualClock
from carnet.guard.journal import Journal
from carnet.guard.shipper import Shipper
from carnet_broker.service.requests import RecordBatch
from carnet_broker.store.base import Unavailable
from carnet_broker.store.limits import Limits
from carnet_broker.store.sqlite import SqliteStore
from tests.service.world import GUARD, World, on

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Forgetful(SqliteStore):
    """Loses sight of what it committed, as a broker that dies between the commit and the counter."""

    forgets = False

    async def seen(self, tenant: str, guard: str, seq: int) -> None:
        if self.forgets:
            raise Unavailable("the process died")
        await super().seen(tenant, guard, seq)


async def shipped(world: World, journal: Journal) -> None:
    def send(id: str, first: int, lines: list[Mapping[str, Any]]) -> int:
        batch = RecordBatch(journal=id, first=first, lines=tuple(lines))
        upcoming = anyio.from_thread.run(world.service.records, GUARD, batch)
        assert isinstance(upcoming, int), upcoming
        return upcoming

    await anyio.to_thread.run_sync(Shipper(journal, send).run)


async def test_lines_behind_a_part_that_was_stored_before_are_not_lost(tmp_path: Path) -> None:
    clock = ManualClock()
    store = Forgetful.open(tmp_path / "carnet.db", clock=clock.now, limits=Limits(reserve=4096))
    world, journal = await on(store, clock), Journal(tmp_path / "journal")
    for number in range(1, 6):
        journal.write({"kind": "call_intent", "at": 1, "tool": "search", "call": f"call_{number}"})
        if number == 3:
            store.forgets = True
            with pytest.raises(Unavailable):
                await shipped(world, journal)
            store.forgets = False
    await shipped(world, journal)
    await shipped(world, journal)
    assert [row.facts["n"] for row in await world.audit("call_intent")] == [1, 2, 3, 4, 5]
    assert await world.audit("journal_gap") == []
    journal.close()
    await store.close()


def test_a_broker_that_takes_nothing_is_not_asked_for_ever(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write({"n": 1})
    asked: list[int] = []

    def send(_id: str, first: int, _lines: list[Mapping[str, Any]]) -> int:
        asked.append(first)
        return first

    for _ in range(2):
        Shipper(journal, send).run()
    assert asked == [1, 1]
    journal.close()
