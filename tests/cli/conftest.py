"""One `carnet dev` process for all tests of this folder, and an operator's home that is logged in at it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from carnet import Broker, Credential
from carnet.cli.broker import Operator
from carnet.cli.root import build
from carnet.cli.session import Session, save


@dataclass(frozen=True, slots=True)
class Development:
    """What `carnet dev` wrote for its developer."""

    facts: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.facts["url"])

    def parent(self) -> Broker:
        return Broker(self.url, credential=Credential.secret(self.facts["client_id"], self.facts["secret"]))


@pytest.fixture(scope="module")
def development(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Development]:
    folder = tmp_path_factory.mktemp("dev")
    command = [sys.executable, "-m", "carnet.cli", "dev", "--folder", str(folder), "--listen", "127.0.0.1:0"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CARNET_")}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 30
    while not (folder / "dev.json").exists():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the broker did not get ready"
        time.sleep(0.02)
    yield Development(json.loads((folder / "dev.json").read_text()))
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=20)[0]
    assert process.returncode == 0, said
    assert b"Stopped" in said


@pytest.fixture
def carnet(
    development: Development, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, BaseException | None]]:
    """Run one command as the operator `dev`: exit code, output, and the problem that ended it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("CARNET_URL", raising=False)
    door = Operator(development.url)
    facts = development.facts
    answer = door.post("/v1/sessions", {"operator": facts["operator"], "passphrase": facts["passphrase"]})
    door.close()
    save(Session(url=development.url, operator="dev", tenant="demo", token=answer["access_token"]), os.environ)

    def run(*words: str, typed: str | None = None) -> tuple[int, str, BaseException | None]:
        done = CliRunner().invoke(build(), list(words), input=typed)
        problem = None if isinstance(done.exception, SystemExit) else done.exception
        return done.exit_code, done.output, problem

    return run
