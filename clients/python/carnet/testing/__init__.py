"""A pytest plugin: the real broker in a thread of the test process, on a loopback port, with a clock that tests move.

Fixtures: `carnet_config` (override it, or set `carnet_config` in the pytest settings: the path of carnet.yaml),
`carnet_broker` (the broker, once per session; every test gets a fresh store) and `carnet_child` (a child to call as).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carnet.testing.broker import CarnetBroker

if TYPE_CHECKING:
    from carnet.client._sync import Child

__all__ = ["CarnetBroker", "carnet_broker", "carnet_child", "carnet_config", "pytest_addoption"]

_MISSING = "carnet.testing needs the broker: pip install 'carnet[server]'"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The setting that says where the registry is."""
    parser.addini("carnet_config", "path of carnet.yaml for the fixture carnet_broker", default="carnet.yaml")


@pytest.fixture(scope="session")
def carnet_config(pytestconfig: pytest.Config) -> Path:
    """The registry that tests run against: `carnet_config` of the settings, relative to the root folder."""
    return pytestconfig.rootpath / str(pytestconfig.getini("carnet_config"))


@pytest.fixture(scope="session")
def _carnet_servers(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Callable[[Path], CarnetBroker]]":
    made: dict[Path, CarnetBroker] = {}

    def of(config: Path) -> CarnetBroker:
        if config not in made:
            try:
                made[config] = CarnetBroker(config, tmp_path_factory.mktemp("carnet"))
            except ModuleNotFoundError as missing:
                raise pytest.UsageError(f"{_MISSING} ({missing.name} is missing)") from None
        return made[config]

    yield of
    for broker in made.values():
        broker.stop()


@pytest.fixture
def carnet_broker(carnet_config: Path, _carnet_servers: "Callable[[Path], CarnetBroker]") -> "Iterator[CarnetBroker]":
    """The broker with a fresh store. Guards that were bound are as before when the test ends."""
    broker = _carnet_servers(carnet_config)
    broker.renew()
    yield broker
    broker.release()


@pytest.fixture
def carnet_child(carnet_broker: CarnetBroker) -> "Callable[..., AbstractContextManager[Child]]":
    """`with carnet_child(tools=["search"], level=0) as child:` a child is current; level 2 is approved at once."""
    return carnet_broker.child
