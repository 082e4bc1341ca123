"""A real broker on a loopback port: a fresh store in a folder, keys of this process, the registry of `world`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet_broker.runner import BrokerServer
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


@pytest.fixture
def keys_folder(tmp_path: Path) -> Path:
    return tmp_path / "keys"
