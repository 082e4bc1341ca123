"""What a process has to read before it can decide, after a restart as well as in the middle of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet_broker.service.ledgers import Ledgers
from carnet_broker.store.base import LedgerDelta
from carnet_broker.store.limits import Limits as StoreLimits
from carnet_broker.store.sqlite import SqliteStore
from tests.service.world import World, on

pytestmark = pytest.mark.anyio
TWICE_A_MINUTE = "history: [{match: {tool: search}, max: 2, over: client, window: 60, decision: deny}]\n"


class Weighed(SqliteStore):
    """Counts the rows that ledgers were told, by scope."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.rows: dict[str, int] = {}

    async def ledger(self, tenant: str, have: Mapping[str, int], since: int | None = None) -> LedgerDelta:
        delta = await super().ledger(tenant, have, since)
        for scope, rows in delta.rows.items():
            self.rows[scope] = self.rows.get(scope, 0) + len(rows)
        return delta


async def weighed(path: Path, clock: ManualClock, more: str) -> tuple[World, Weighed]:
    store = Weighed.open(path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    return await on(store, clock, more), store


async def searched(world: World, token: str) -> str:
    return (await world.called(token, "search", {"query": "a"})).decision


async def test_after_a_restart_a_clients_past_is_read_as_far_back_as_a_rule_looks(
    tmp_path: Path, clock: ManualClock
) -> None:
    world, store = await weighed(tmp_path, clock, TWICE_A_MINUTE)
    for _ in range(3):
        token = (await world.child(await world.root())).tokens["desk"].access_token
        assert [await searched(world, token) for _ in range(3)] == ["allow", "allow", "deny"]
        clock.advance(100)
    token = (await world.child(await world.root())).tokens["desk"].access_token
    assert await searched(world, token) == "allow"
    world.context.ledgers = Ledgers()  # what a new process begins with
    store.rows.clear()
    assert [await searched(world, token) for _ in range(2)] == ["allow", "deny"]
    assert store.rows["client:support-app"] == 2  # the call in the window, and the one that was just made
    await store.close()


async def test_calls_that_were_denied_do_not_fill_a_ledger(tmp_path: Path, clock: ManualClock) -> None:
    world, store = await weighed(tmp_path, clock, TWICE_A_MINUTE)
    root = await world.root()
    token = (await world.child(root)).tokens["desk"].access_token
    for _ in range(10):
        await searched(world, token)
    world.context.ledgers = Ledgers()
    store.rows.clear()
    assert await searched(world, token) == "deny"
    assert store.rows["client:support-app"] == 2
    assert store.rows[f"run:{root.txn}"] == 4  # two calls, the child and its approval
    await store.close()
