"""The embedded store as the fixtures of the contract suite."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carnet_broker.store.limits import Limits
from carnet_broker.store.sqlite import SqliteStore
from tests.store.making import Clock

SMALL = Limits(reserve=4096)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore.open(tmp_path / "carnet.db", clock=clock, limits=SMALL)
    yield opened
    await opened.close()
