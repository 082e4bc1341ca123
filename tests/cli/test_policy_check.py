"""`carnet policy check` and `carnet policy init`: exit codes, formats, and what they say about files."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from carnet.cli.problems import Problem
from carnet.cli.root import build
from carnet_policy import load
from carnet_policy.lint import CODES

PLAYED = sorted((Path(__file__).parents[1] / "cases/data/scenarios").glob("*.yaml"))
GOOD = "version: 1\ncatalog: {t: {effect: read}}\ntools:\n  t:\n    - {decision: allow, args: {a: {const: 1}}}\n"
WARNS = GOOD.replace("const: 1", "max: 1")
WRONG = GOOD.replace("{a: {const: 1}}", "{command: {type: string}}")
TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}]}
REGISTRY = """format: 1
tenant: acme
policies: [p.yaml]
hosts:
  shop: {audience: "https://shop.example", tools: [t, u]}
"""


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build(), ["policy", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "p.yaml": GOOD,
        "warns.yaml": WARNS,
        "wrong.yaml": WRONG,
        "tools.json": json.dumps(TOOLS),
        "carnet.yaml": REGISTRY,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("file", "code"), [("p.yaml", 0), ("warns.yaml", 0), ("wrong.yaml", 1), ("none.yaml", 1)])
def test_only_an_error_fails(folder: Path, file: str, code: int) -> None:
    done = ran("check", file)
    assert done.exit_code == code, done.output


def test_text_has_place_severity_code_and_fix_on_one_line(folder: Path) -> None:
    lines = ran("check", "warns.yaml").output.splitlines()
    assert re.fullmatch(r"warns\.yaml:5:36: warning CP201 t\[0\]: a has a max and no min, .*; add min", lines[0])
    assert lines[-1] == "0 errors, 1 warning, 0 notes"


def test_json_has_the_findings_and_a_summary(folder: Path) -> None:
    told = json.loads(ran("check", "--format", "json", "warns.yaml").output)
    assert told["summary"] == {"error": 0, "warning": 1, "note": 0}
    (found,) = told["findings"]
    assert found.pop("message").startswith("t[0]: a has a max")
    place = {"file": "warns.yaml", "line": 5, "column": 36}
    assert found == {"code": "CP201", "name": "one_sided_bound", "severity": "warning", "rule": "t[0]", **place}


def test_sarif_names_every_rule_and_places_every_result(folder: Path) -> None:
    (folder / "a b.yaml").write_text(WARNS.replace("version", "id: x\nversion"))
    told = json.loads(ran("check", "--format", "sarif", "a b.yaml").output)
    assert told["version"] == "2.1.0"
    (run,) = told["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CODES)
    (result,) = run["results"]
    assert (rules[result["ruleIndex"]]["id"], result["level"]) == (result["ruleId"], "warning")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b.yaml"}, "region": {"startLine": 6, "startColumn": 36}}


def test_github_annotations_can_not_be_forged_by_what_a_policy_says(folder: Path) -> None:
    text = 'id: x\nversion: 1\ntools: {"a%0A::error::x": [{decision: allow}], t: [{decision: "x\\n::error::y"}]}\n'
    (folder / "e,v:il.yaml").write_text(text)
    lines = ran("check", "--format", "github", "e,v:il.yaml").output.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("::error file=e%2Cv%3Ail.yaml,line=3,col=")
    assert ",title=CP002 does_not_load::" in lines[0]
    (folder / "p.yaml").write_text(GOOD.replace("  t:", '  "t%0Ax":'))
    out = ran("check", "--format", "github", "p.yaml", "--registry", "carnet.yaml").output
    assert "::warning file=p.yaml" in out
    assert "t%250Ax" in out


def test_several_files_are_one_policy(folder: Path) -> None:
    (folder / "more.yaml").write_text("tools: {v: [{decision: deny}]}\n")
    assert "more.yaml" not in ran("check", "p.yaml").output
    assert "CP403 v has no effect" in ran("check", "p.yaml", "more.yaml").output
    assert ran("check", "more.yaml", "p.yaml").exit_code == 1


def test_every_file_that_can_not_be_read_is_told(folder: Path) -> None:
    (folder / "bad.yaml").write_bytes(b"\xff")
    (folder / "worse.yaml").write_bytes(b"#" * (1 << 20) + b"##")
    done = ran("check", "p.yaml", "bad.yaml", "none.yaml", "worse.yaml")
    assert done.exit_code == 1
    told = [line.split(":")[0] for line in done.output.splitlines()[:-1]]
    assert told == ["bad.yaml", "none.yaml", "worse.yaml"]


def test_a_misspelt_argument_fails_against_the_tools(folder: Path) -> None:
    (folder / "p.yaml").write_text(GOOD.replace("{a: ", "{aa: "))
    assert ran("check", "p.yaml").exit_code == 0
    done = ran("check", "p.yaml", "--tools", "tools.json")
    assert done.exit_code == 1
    assert "CP601 t[0]: t has no argument aa, did you mean a?" in done.output


def test_a_registry_is_compared_and_stands_for_its_policies(folder: Path) -> None:
    expected = "CP502 the registry has u"
    assert expected not in ran("check", "p.yaml").output
    assert expected in ran("check", "p.yaml", "--registry", "carnet.yaml").output
    assert expected in ran("check", "carnet.yaml").output
    (folder / "carnet.yaml").write_text(REGISTRY.replace("[t, u]", "[tt]"))
    assert "CP501 no host in the registry serves t" in ran("check", "carnet.yaml").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tools", "none.json"], "none.json can not be read"),
        (["--tools", "p.yaml"], "p.yaml:1:1: this is not JSON"),
        (["--registry", "none.yaml"], "none.yaml can not be read"),
        (["--registry", "p.yaml"], "this is no registry"),
    ],
)
def test_what_to_compare_with_must_be_usable(folder: Path, arguments: list[str], said: str) -> None:
    done = ran("check", "p.yaml", *arguments)
    assert isinstance(done.exception, Problem)
    assert said in str(done.exception)
    assert done.exception.code == 2


@pytest.mark.parametrize("path", PLAYED, ids=lambda path: path.stem)
def test_the_scenarios_policies_have_no_error(folder: Path, path: Path) -> None:
    policy: dict[str, Any] = yaml.safe_load(path.read_text())["policy"]
    (folder / f"{path.stem}.yaml").write_text(yaml.safe_dump(policy, sort_keys=False))
    done = ran("check", f"{path.stem}.yaml")
    assert done.exit_code == 0, done.output


def test_init_writes_a_new_file_that_check_finds_no_error_in(folder: Path) -> None:
    done = ran("init", "--tools", "tools.json", "--output", "new policy!.yaml")
    assert done.exit_code == 0, done.output
    assert "carnet policy check" in done.output
    assert load(folder / "new policy!.yaml").ref.id == "new-policy"
    assert ran("check", "--tools", "tools.json", "new policy!.yaml").exit_code == 0


def test_init_never_overwrites(folder: Path) -> None:
    done = ran("init", "--tools", "tools.json", "-o", "p.yaml")
    assert isinstance(done.exception, Problem)
    assert "exists already" in str(done.exception)
    assert (folder / "p.yaml").read_text() == GOOD
    assert isinstance(ran("init", "--tools", "tools.json", "-o", "no/p.yaml").exception, Problem)


def test_init_prints_when_no_file_is_named_and_takes_several_tool_files(folder: Path) -> None:
    (folder / "more.json").write_text('[{"name": "other", "input_schema": {"type": "object"}}, {"type": "web_search"}]')
    done = ran("init", "--tools", "tools.json", "--tools", "more.json")
    (folder / "out.yaml").write_text(done.stdout)
    assert set(load(folder / "out.yaml").tools) == {"t", "other"}
    assert "web_search" in done.stderr


def test_checking_needs_no_broker_and_no_server_package(folder: Path) -> None:
    script = (
        "import sys\n"
        "for name in ('fastapi', 'starlette', 'uvicorn', 'redis', 'orjson', 'jinja2'): sys.modules[name] = None\n"
        "from carnet.cli.root import build\n"
        "build()(['policy', 'check', 'warns.yaml', '--tools', 'tools.json'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "CP201" in done.stdout) == (0, True), done.stderr
