"""The blocking client is what the script makes of the asynchronous one."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def make_sync() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sync", ROOT / "scripts/make_sync.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_twin_is_the_generated_one(make_sync: ModuleType) -> None:
    assert make_sync.TARGET.read_text("utf-8") == make_sync.sync_of(make_sync.SOURCE.read_text("utf-8"))
    assert make_sync.main(["--check"]) == 0


def test_names_strings_and_comments_are_told_apart(make_sync: ModuleType) -> None:
    source = '"""Doc."""\nasync def f(awaited):  # noqa: ASYNC109\n    x = "await AsyncBroker"\n'
    source += "    return await g(awaited)\n"
    made = make_sync.sync_of(source)
    assert made == make_sync.HEADER + '\ndef f(awaited):\n    x = "await Broker"\n    return g(awaited)\n'


def test_both_worlds_have_the_same_names() -> None:
    from carnet.client import _async, _io_async, _io_sync, _sync

    assert _io_async.__all__ == _io_sync.__all__
    for twin in ("Broker", "Run", "Child"):
        ours = {name for name in vars(getattr(_async, f"Async{twin}")) if not name.startswith("_")}
        assert ours == {name for name in vars(getattr(_sync, twin)) if not name.startswith("_")}
