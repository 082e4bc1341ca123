"""The command itself: quick for operators, and one sentence for whatever is missing."""

import subprocess
import sys
from importlib.metadata import version

import pytest

HEAVY = ("fastapi", "uvicorn", "sqlite3", "carnet_broker.service")
SERVER = [
    ("serve",), ("dev",), ("init",), ("doctor",), ("recover", "--accept-loss"), ("config", "check"),
    ("keys", "rotate"), ("keys", "retire", "kid"),
]  # fmt: skip


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


def test_an_operators_command_does_not_load_the_server() -> None:
    code = f"import sys; from carnet.cli.root import build; build(); print([n for n in {HEAVY!r} if n in sys.modules])"
    assert python(code).stdout == "[]\n"


@pytest.mark.parametrize("words", SERVER, ids=" ".join)
def test_a_command_of_the_server_says_what_is_missing(words: tuple[str, ...]) -> None:
    without = "import sys; sys.modules |= dict.fromkeys(('fastapi', 'orjson', 'pydantic_settings'))"
    done = python(f"{without}; from carnet.cli import main; main()", *words)
    assert done.returncode == 2, done
    assert done.stderr.endswith("is missing): pip install 'carnet[server]'\n")
    assert done.stderr.count("\n") == 1


def test_the_version_is_told() -> None:
    done = python("from carnet.cli import main; main()", "--version")
    assert (done.returncode, done.stdout) == (0, f"carnet {version('carnet')}\n")
