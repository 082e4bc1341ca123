"""SDK tests run against a real broker in a thread."""

from pathlib import Path

import pytest

from tests.guard.desk import write_desk


@pytest.fixture(scope="session")
def carnet_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_desk(tmp_path_factory.mktemp("desk"))
