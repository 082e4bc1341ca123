"""The cases that lie here, one test each; and the runner's own promises."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases.playing import play
from tests.cases.reading import Case, Collection, collect
from tests.cases.verdict import Ending

FOLDER = Path(__file__).parent
DATA, OWN = collect(FOLDER / "data"), collect(FOLDER / "own")


@pytest.mark.parametrize("case", DATA.cases, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    for result in play(Collection((case,), DATA.policies)):
        assert result.ending is not Ending.FAILED, result.detail


@pytest.mark.parametrize("case", OWN.cases, ids=lambda case: case.id)
def test_step_or_word_that_no_other_case_uses(case: Case) -> None:
    for result in play(Collection((case,), {})):
        assert result.ending is Ending.PASSED, result.detail


def played(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.cases", str(folder), *options]
    return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)


def write(folder: Path, text: str) -> Path:
    (folder / "some.yaml").write_text(text)
    return folder


ONE = """
kind: policy
cases:
- id: X-1
  kind: policy
  title: one
  input: {policy: {version: 1, tools: {a: [{decision: allow}]}}, call: {tool: a, args: {}%s}}
  expected: {decision: %s%s}
"""


def test_a_passing_case_ends_with_the_three_numbers_and_exit_code_0(tmp_path: Path) -> None:
    done = played(write(tmp_path, ONE % ("", "allow", "")))
    assert (done.returncode, done.stdout) == (0, "1 passed, 0 failed, 0 not run\n"), done.stderr


def test_a_failing_case_has_a_line_and_exit_code_1(tmp_path: Path) -> None:
    done = played(write(tmp_path, ONE % ("", "deny", "")))
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("X-1: failed: allow")
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 not run"


@pytest.mark.parametrize(("given", "expected"), [(", colour: red", ""), ("", ", colour: red")])
def test_a_key_that_the_runner_does_not_know_fails_the_case(tmp_path: Path, given: str, expected: str) -> None:
    done = played(write(tmp_path, ONE % (given, "allow", expected)))
    assert done.returncode == 1
    assert "colour" in done.stdout


@pytest.mark.parametrize("text", ["cases: {", "cases: [{id: A, id: B}]", "[]", "kind: x\ncases: []\nmore: 1"])
def test_a_file_that_cannot_be_read_fails(tmp_path: Path, text: str) -> None:
    assert played(write(tmp_path, text)).returncode == 1


def test_an_unknown_kind_fails(tmp_path: Path) -> None:
    done = played(write(tmp_path, "kind: sorcery\ncases: [{id: S-1, input: {}, expected: {a: 1}}]"))
    assert (done.returncode, "sorcery" in done.stdout) == (1, True)


def test_a_kind_of_a_later_release_is_not_run_and_says_why(tmp_path: Path) -> None:
    done = played(write(tmp_path, "kind: handoff\ncases: [{id: H-1, input: {text: x}, expected: {result: null}}]"))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-2].startswith("not run: 1 (this kind belongs to a later release")


def test_json_has_one_object_per_case_and_a_summary(tmp_path: Path) -> None:
    done = played(write(tmp_path, ONE % ("", "allow", "")), "--json", "-k", "X-1")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [
        {"id": "X-1", "kind": "policy", "ending": "passed", "detail": ""},
        {"summary": {"passed": 1, "failed": 0, "not_run": 0}},
    ]


def test_an_empty_folder_is_no_success(tmp_path: Path) -> None:
    assert played(tmp_path).returncode == 1
