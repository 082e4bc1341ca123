"""A world per test; `history` worlds bound irreversible calls of a run to one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carnet.clock import ManualClock
from tests.service.world import ONE_IRREVERSIBLE, World, build


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def world(tmp_path: Path, clock: ManualClock) -> AsyncIterator[World]:
    made = await build(tmp_path, clock)
    yield made
    await made.store.close()


@pytest.fixture
async def bounded(tmp_path: Path, clock: ManualClock) -> AsyncIterator[World]:
    made = await build(tmp_path, clock, ONE_IRREVERSIBLE)
    yield made
    await made.store.close()


@pytest.fixture
async def continuing(tmp_path: Path, clock: ManualClock) -> AsyncIterator[World]:
    made = await build(tmp_path, clock, "approvals: {timeout: 60, on_denial: continue, approvers: [leads]}\n")
    yield made
    await made.store.close()
