"""The lock files hold hashes and no addresses, name everything pyproject.toml asks for, and never our own name."""

import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tree import ROOT

LOCKS = {
    "requirements.lock": ("cli", "server", "fastapi"),
    "requirements-dev.lock": ("cli", "server", "fastapi", "dev"),
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(name: str) -> dict[str, list[str]]:
    """Package -> versions. A universal lock may name a package more than once, with markers."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / name).read_text().splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^ ;\\]+)", line):
            found.setdefault(canonicalize_name(match[1]), []).append(match[2])
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_no_address_and_no_path_of_a_machine(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert str(ROOT.parent) not in text
    assert not re.search(r"^\s*-(?!-hash)", text, re.MULTILINE), "a lock sets no option of the installer"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_does_not_take_our_own_name_from_a_registry(name: str) -> None:
    assert canonicalize_name(PROJECT["project"]["name"]) not in locked(name)


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_hashes(name: str) -> None:
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / name).read_text().strip())
    without = [block.split("\n")[0] for block in blocks if "--hash=sha256:" not in block]
    assert not without


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_satisfies_what_the_project_asks_for(name: str) -> None:
    extras = PROJECT["project"]["optional-dependencies"] | PROJECT["dependency-groups"]
    wanted = list(PROJECT["project"]["dependencies"]) + [line for part in LOCKS[name] for line in extras[part]]
    have = locked(name)
    for line in wanted:
        requirement = Requirement(line)
        versions = have.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement.name} is not in {name}: make lock"
        assert all(requirement.specifier.contains(version, prereleases=True) for version in versions), line


def test_no_lock_that_carries_addresses_is_committed() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git checkout: which files are committed is not known here")
    assert not {"uv.lock", "pylock.toml"} & set(tracked.stdout.split())
