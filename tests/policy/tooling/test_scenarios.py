"""Seven policies as files, each with tests that hit every rule; the same policies are played end to end elsewhere."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from carnet.cli.root import build
from carnet_policy import Policy, from_mapping, load
from carnet_policy.tables import Hits, load_table, run_table

FOLDER = Path(__file__).parent.parent / "scenarios"
PLAYED = Path(__file__).parents[2] / "cases/data/scenarios"
NAMES = sorted(path.stem for path in PLAYED.glob("*.yaml"))


def policy_of(name: str) -> Policy:
    return load(FOLDER / f"{name}.yaml")


def test_every_scenario_has_its_files() -> None:
    assert len(NAMES) == 7
    assert sorted(path.name for path in FOLDER.glob("*.yaml")) == sorted(
        f"{name}{suffix}" for name in NAMES for suffix in (".yaml", ".test.yaml")
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_the_policy_that_is_played(name: str) -> None:
    document: dict[str, Any] = yaml.safe_load((PLAYED / f"{name}.yaml").read_text())
    assert policy_of(name).ref == from_mapping(document["policy"], name).ref


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_hit_and_every_case_holds(name: str) -> None:
    policy = policy_of(name)
    hits = Hits(policy)
    results = run_table(policy, load_table(FOLDER / f"{name}.test.yaml"), hits)
    assert [(one.case.name, one.problems) for one in results if one.problems] == []
    assert hits.coverage().missed == ()


@pytest.mark.parametrize("name", NAMES)
def test_the_command_says_the_same(name: str) -> None:
    done = CliRunner().invoke(build(), ["policy", "test", str(FOLDER / f"{name}.yaml"), "--coverage", "100"])
    assert done.exit_code == 0, done.output
