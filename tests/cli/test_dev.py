"""`carnet dev` says mistakes in one sentence and leaves the user's own folder as it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carnet.cli.session import Session, load, save

DEV = [sys.executable, "-m", "carnet.cli", "dev"]
BEFORE = Session(url="https://carnet.example", operator="ada", tenant="acme", token="before")


@contextmanager
def running(notes: Path, *words: str) -> Iterator[list[str]]:
    """What it said until it was ready."""
    environ = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(notes), "TMPDIR": str(notes)}
    command = [*DEV, "--listen", "127.0.0.1:0", *words]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if "Ctrl-C" in line:
            break
    yield said
    process.send_signal(signal.SIGINT)
    said += process.communicate(timeout=20)[0].splitlines(keepends=True)
    assert process.returncode == 0, said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--listen", "nonsense"), "carnet: --listen: 'nonsense' is not host:port"),
        (("--listen", "127.0.0.1:99999"), "carnet: --listen: '127.0.0.1:99999' is not host:port"),
        (("--listen", "0.0.0.0:8420"), "carnet: `carnet dev` listens on loopback only"),
        (("--audience", "desk"), "carnet: --audience desk: give desk=URL"),
        (("--audience", "desk=nonsense"), "'nonsense' is no audience"),
        (("--folder", "/dev/null"), "carnet: Cannot write to /dev/null"),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run([*DEV, *words], env=environ, capture_output=True, text=True, check=False, timeout=30)
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.returncode in (1, 2)


def test_its_notes_go_with_it_and_the_login_before_comes_back(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    notes = save(BEFORE, environ).parent
    with running(tmp_path):
        assert load(environ).operator == "dev"
        assert json.loads((notes / "dev.json").read_text())["url"] == load(environ).url
        assert (notes / "dev.env").exists()
    assert [path.name for path in notes.iterdir()] == ["session.json"]
    assert load(environ) == BEFORE


def test_a_login_made_meanwhile_is_kept(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    with running(tmp_path):
        save(BEFORE, environ)
    assert load(environ) == BEFORE


def test_with_a_folder_of_its_own_it_touches_no_other(tmp_path: Path) -> None:
    home = tmp_path / "kept"
    with running(tmp_path, "--folder", str(home)) as said:
        shown = "".join(said)
        assert f". {home}/dev.env" in shown
        assert "logged in" not in shown
        assert (home / "dev.env").exists()
    assert not (tmp_path / "carnet").exists()
    assert time.time() - (home / "carnet.yaml").stat().st_mtime < 60
