"""The Python guide is played: its programs run against a broker and a tool server, its tests pass as tests."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from carnet_broker.dev.folder import deal
from tests.readme import blocks
from tests.tree import ROOT

GUIDE = {block.role: "\n".join(block.lines) + "\n" for block in blocks(ROOT / "docs/python.md")}
README = {block.role: "\n".join(block.lines) + "\n" for block in blocks(ROOT / "README.md")}
PATIENCE = 40.0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("guide")
    (made / "desk.py").write_text(README["desk.py"])
    for name in ("parent.py", "inside.py", "test_desk.py"):
        (made / name).write_text(GUIDE[name])
    return made


@pytest.fixture(scope="module")
def development(folder: Path) -> Iterator[Mapping[str, str]]:
    """The environment that knows a running `carnet dev`, without a client."""
    home = folder / "dev"
    port = _free_port()
    command = [sys.executable, "-m", "carnet.cli", "dev", "--folder", str(home), "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--audience", f"desk=http://127.0.0.1:{port}"], env=_plain()) as process:
        _wait_for(home / "dev.json", process)
        url = json.loads((home / "dev.json").read_text())["url"]
        yield _plain() | {"CARNET_URL": url, "SECRETS": str(home), "PORT": str(port)}
        process.send_signal(signal.SIGINT)


def _plain() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CARNET_")}
    return kept | {"PYTHONPATH": os.pathsep.join(sys.path)}


def _client(environ: Mapping[str, str], name: str) -> dict[str, str]:
    return {"CARNET_CLIENT_ID": name, "CARNET_CLIENT_SECRET_FILE": f"{environ['SECRETS']}/{name}.secret"}


def _run(folder: Path, environ: Mapping[str, str], *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_asynchronous_parent_spawns_a_child_that_calls(folder: Path, development: Mapping[str, str]) -> None:
    text = GUIDE["parent.py"].replace("8421", development["PORT"])
    (folder / "parent.py").write_text(text)
    serving = [sys.executable, "-m", "uvicorn", "--log-level", "warning", "--port", development["PORT"], "desk:app"]
    environ = {**development, **_client(development, "desk-server")}
    with subprocess.Popen(serving, cwd=folder, env=environ) as server:
        deadline = time.monotonic() + PATIENCE
        while not _answers(int(development["PORT"])):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        said = _run(folder, {**development, **_client(development, "support-app")}, "parent.py")
        server.send_signal(signal.SIGINT)
    assert said == "['T-17 late parcel']\n"


def test_a_guard_in_the_parents_process_needs_no_client(folder: Path, development: Mapping[str, str]) -> None:
    said = _run(folder, development, "inside.py").splitlines()
    why = "no rule of search_tickets matches, default deny: argument query does not match"
    assert said == ["['T-17 late parcel']", why, "no_match"]


def test_a_guard_with_the_parents_client_says_which_it_needs(folder: Path, development: Mapping[str, str]) -> None:
    environ = {**development, **_client(development, "support-app")}
    done = subprocess.run(
        [sys.executable, "inside.py"], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert "give the guard its host's client" in done.stderr


def test_the_tests_of_the_guide_pass(folder: Path) -> None:
    config = folder / "config"
    deal(config, audiences={"desk": "http://127.0.0.1:1", "orders": "http://127.0.0.1:2"}, approval_timeout=60)
    (folder / "pytest.ini").write_text("[pytest]\ncarnet_config = config/carnet.yaml\n")
    assert "5 passed" in _run(folder, _plain(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_desk.py")
