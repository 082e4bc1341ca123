"""The comparison with other engines compares like with like, and says what is missing."""

import importlib.util

import pytest

from bench.policy.__main__ import checked, plain, prepared
from bench.policy.install import LOCK, blocks, install
from bench.policy.peers import PEERS


def test_both_ways_of_asking_let_the_right_call_through() -> None:
    assert checked(prepared)() is True
    assert checked(plain)() is True


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_that_is_installed_decides_the_same(name: str) -> None:
    package, make = PEERS[name]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    assert checked(make)() is True


def test_each_package_is_installed_by_its_hashes() -> None:
    text = LOCK.read_text()
    found = list(blocks(text))
    assert "\n".join(found) == text.rstrip("\n")
    assert all("--hash=sha256:" in block for block in found)
    assert {"cedarpy", "pycasbin", "regopy"} <= {block.split("==")[0] for block in found}
    assert "://" not in text


def test_a_package_that_can_not_be_installed_says_why() -> None:
    assert "nvalid requirement" in install("no requirement at all")
