"""A real broker with two tenants on loopback HTTP, as an attacker would meet it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet_broker.runner import BrokerServer
from tests.guard.desk import write_desk
from tests.http.world import World, limits, make_broker


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    folder = tmp_path_factory.mktemp("broker")
    with BrokerServer(lambda issuer: make_broker(folder, issuer), limits=limits()) as running:
        yield running


@pytest.fixture
def world(server: BrokerServer) -> Iterator[World]:
    with World(server.url) as made:
        yield made


@pytest.fixture(scope="session")
def carnet_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_desk(tmp_path_factory.mktemp("desk"))
