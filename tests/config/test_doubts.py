"""What loads and yet does nothing is said: by `carnet config check`, by the log, and as a count by /readyz."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carnet.cli.root import build
from carnet.clock import ManualClock
from carnet_broker.composition import Broker
from carnet_broker.config.doubts import doubts, unowned
from carnet_broker.config.load import load_registry
from tests.config.files import GOOD, write
from tests.service.world import build as build_world


@pytest.mark.parametrize(("owner", "nobody"), [("ada", ()), ("support-leads", ()), ("adah", ("support",))])
def test_an_owner_is_an_operator_or_a_group_of_one(tmp_path: Path, owner: str, nobody: tuple[str, ...]) -> None:
    registry = load_registry(write(tmp_path, GOOD.replace("owner: ada", f"owner: {owner}")))
    assert unowned(registry) == nobody
    said = [doubt for doubt in doubts(registry) if "owner" in doubt]
    assert [("nobody is kept from approving what support asks" in doubt) for doubt in said] == [True] * len(nobody)


def test_config_check_says_what_loads_and_does_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("owner: ada", "owner: adah"))
    policy = tmp_path / "tools.policy.yaml"
    policy.write_text(policy.read_text().replace("{effect: read}", "{effect: read, data_class: [secrets]}"))
    done = CliRunner().invoke(build(), ["config", "check", str(path)])
    assert done.exit_code == 0
    assert "warning: acme: agents.support: the owner adah is neither an operator nor a group of one" in done.output
    assert "warning: acme: policy support-tools: search_tickets: data_class secrets is no known word" in done.output
    assert "warning" not in CliRunner().invoke(build(), ["config", "check", str(write(tmp_path))]).output


@pytest.mark.anyio
async def test_readiness_counts_owners_that_are_nobody_and_names_none(tmp_path: Path) -> None:
    world = await build_world(tmp_path, ManualClock())
    broker = Broker(world.context, world.service)
    assert broker.notices() == []
    whole = world.context.registries["acme"]
    agents = {**whole.agents, "support": replace(whole.agents["support"], owner="adah")}
    world.context.registries = {"acme": replace(whole, agents=agents)}
    (notice,) = broker.notices()
    assert "nobody is kept from approving what 1 of the agents ask" in notice
    assert "adah" not in notice
    assert "support" not in notice
    await world.store.close()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
