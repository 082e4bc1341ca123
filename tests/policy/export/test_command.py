"""`carnet policy export`: a file or nothing."""

from pathlib import Path

from typer.testing import CliRunner, Result

from carnet.cli.problems import Problem
from carnet.cli.root import build

GOOD = "version: 1\ntools:\n  t:\n    - {decision: allow, args: {a: {const: 1}}}\n"
WRONG = GOOD.replace("const: 1", "pattern: a.c")


def ran(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build(), ["policy", "export", *map(str, arguments)])


def test_a_policy_is_written_to_the_output_or_a_file(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(GOOD)
    shown = ran(policy, "--to", "rego")
    assert shown.exit_code == 0
    assert "package carnet.policy" in shown.stdout
    written = tmp_path / "p.cedar"
    assert ran(policy, "--to", "cedar", "-o", written).exit_code == 0
    assert 'resource == Tool::"t"' in written.read_text()


def test_what_does_not_map_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    policy, written = tmp_path / "p.yaml", tmp_path / "p.rego"
    policy.write_text(WRONG)
    refused = ran(policy, "--to", "rego", "-o", written)
    assert isinstance(refused.exception, Problem)
    assert "1 part(s)" in str(refused.exception)
    assert f"{policy}:4:36: t[0]: a: a . in its pattern" in refused.stderr
    assert not written.exists()


def test_a_missing_policy_and_an_unwritable_output_are_wrong_usage(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    assert isinstance(ran(policy, "--to", "rego").exception, Problem)
    policy.write_text(GOOD)
    assert "can not be written" in str(ran(policy, "--to", "rego", "-o", tmp_path).exception)
