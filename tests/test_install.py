"""What a user gets from `pip install` without extras: the SDK, the guard and the policy engine, quick to import."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.tree import ROOT

QUICK_MS = 150
SERVER_ONLY = ("fastapi", "starlette", "uvicorn", "pydantic", "redis", "typer", "rich", "jinja2", "orjson")
TIMED = "import time; t = time.perf_counter(); import carnet, carnet_policy; print((time.perf_counter() - t) * 1000)"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an empty environment into which only the wheel and what it depends on was installed."""
    home = tmp_path_factory.mktemp("empty")
    venv.create(home, with_pip=False)
    path = home / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(path), "install", "--quiet", "--no-input", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and any(
        word in done.stderr for word in ("ConnectionError", "No matching distribution", "timed out")
    ):
        pytest.skip(f"the package index cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return path


def run(python: Path, code: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([str(python), "-c", code], cwd="/", env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_wheel_holds_the_three_packages_their_types_and_the_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {
        "carnet",
        "carnet_broker",
        "carnet_policy",
    }
    assert {"carnet/py.typed", "carnet_broker/py.typed", "carnet_policy/py.typed"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_a_bare_install_brings_nothing_of_a_server(python: Path) -> None:
    found = run(python, f"import importlib.util as u; print([n for n in {SERVER_ONLY!r} if u.find_spec(n)])")
    assert found == "[]"


def test_every_public_name_works_in_a_bare_install(python: Path) -> None:
    code = "import carnet, carnet_policy\nfor m in (carnet, carnet_policy):\n    for n in m.__all__: getattr(m, n)"
    run(python, code)


def test_importing_is_quick(python: Path) -> None:
    times = sorted(float(run(python, TIMED)) for _ in range(6))
    assert times[0] <= QUICK_MS, f"{times[0]:.0f} ms at best of six"


def test_the_command_without_its_extra_says_how_to_get_it(python: Path) -> None:
    done = subprocess.run([str(python.parent / "carnet")], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "carnet[cli]" in done.stderr
    assert "Traceback" not in done.stderr
