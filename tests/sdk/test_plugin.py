"""The pytest plugin, as a project that uses it sees it: its own run of pytest on its own carnet.yaml."""

import subprocess
import sys
from pathlib import Path

from tests.guard.desk import write_desk

TESTS = """
import pytest
from carnet import Guard, Refused

guard = Guard("desk")


@guard.tool
def search(query: str) -> str:
    return query


@guard.tool
def refund(amount: float, customer: str) -> str:
    return "paid"


def test_a_child_calls(carnet_broker, carnet_child):
    carnet_broker.bind(guard)
    with carnet_child(tools=["search"], level=0):
        assert search("a") == "a"


def test_a_second_refund_in_a_run(carnet_broker, carnet_child):
    carnet_broker.bind(guard)
    with carnet_broker.approving(), carnet_child(tools=["refund"], level=2):
        assert refund(5.0, "c1") == "paid"
        with pytest.raises(Refused, match="history_limit"):
            refund(5.0, "c2")


def test_every_test_has_a_fresh_store_and_clock(carnet_broker, carnet_child):
    assert not any(row["run"] for row in carnet_broker.records())
    began = carnet_broker.clock.now()
    carnet_broker.clock.advance(10)
    assert carnet_broker.clock.now() == began + 10


def test_a_guard_is_as_before_when_its_test_is_over():
    assert guard.setup.url is None


@pytest.mark.parametrize("level", [0, 1, 2])
def test_levels(carnet_child, level):
    tools = {0: ["search"], 1: ["tag"], 2: ["refund"]}[level]
    with carnet_child(tools=tools, level=level) as child:
        assert (child.level, child.state) == (level, "active")


def test_an_answer_and_a_revocation(carnet_broker):
    carnet_broker.bind(guard)
    from carnet import Task

    facts = Task(touches_pii=False, touches_secrets=False, reversible=False, resource_count=1, tools=("refund",))
    with carnet_broker.run() as run:
        child = run.spawn("clerk", facts, wait=0)
        carnet_broker.deny(child.approval_id)
        with pytest.raises(Refused, match="approval_denied"):
            child.wait()
        reader = run.spawn("reader", Task(touches_pii=False, touches_secrets=False, reversible=True, resource_count=1))
        carnet_broker.revoke(f"dlg:{reader.id}")
        with pytest.raises(Refused, match="revoked"):
            run.child(reader.id).wait()
"""


def test_a_project_tests_its_tools_with_it(tmp_path: Path) -> None:
    write_desk(tmp_path)
    (tmp_path / "test_tools.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-config\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def test_a_missing_server_extra_is_named(tmp_path: Path) -> None:
    write_desk(tmp_path)
    (tmp_path / "conftest.py").write_text("import sys\n\nsys.modules['carnet_broker.runner'] = None\n")
    (tmp_path / "test_tools.py").write_text("def test_it(carnet_broker): ...\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "pip install 'carnet[server]'" in done.stdout


def test_a_registry_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_tools.py").write_text("def test_it(carnet_broker): ...\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "carnet.yaml" in done.stdout
