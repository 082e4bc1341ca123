"""`shadow_policies` names the files of a candidate, as strictly as `policies` names those of the policy."""

from pathlib import Path

import pytest

from carnet.errors import ConfigError
from carnet_broker.config.load import load_all, load_registry
from tests.config.files import GOOD, write

CANDIDATE = "id: candidate\nversion: 4\ntools: {refund: [{decision: deny}]}\n"
NAMED = GOOD.replace("hosts:\n", "shadow_policies: [candidate.yaml]\nhosts:\n", 1)


def test_a_candidate_is_loaded_beside_the_policy_and_watched_for_changes(tmp_path: Path) -> None:
    path = write(tmp_path, NAMED)
    (tmp_path / "candidate.yaml").write_text(CANDIDATE)
    registry = load_registry(path)
    assert registry.policy.ref.id == "support-tools"
    assert registry.shadow is not None
    assert (registry.shadow.ref.id, registry.shadow.ref.version) == ("candidate", 4)
    assert tmp_path / "candidate.yaml" in load_all(path).sources


def test_without_the_key_there_is_none(tmp_path: Path) -> None:
    assert load_registry(write(tmp_path)).shadow is None


@pytest.mark.parametrize(
    ("named", "text", "said"),
    [
        ("[]", CANDIDATE, "shadow_policies must name at least one file, and each once"),
        ("[candidate.yaml, candidate.yaml]", CANDIDATE, "shadow_policies must name at least one file, and each once"),
        ("candidate.yaml", CANDIDATE, "shadow_policies must be a list"),
        ("[gone.yaml]", CANDIDATE, "cannot be read"),
        ("[candidate.yaml]", "version: 1\ntool: {}\n", "candidate.yaml:2:1: unknown key 'tool'"),
    ],
)
def test_a_candidate_that_does_not_load_is_an_error(tmp_path: Path, named: str, text: str, said: str) -> None:
    path = write(tmp_path, NAMED.replace("[candidate.yaml]", named))
    (tmp_path / "candidate.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_registry(path)
    assert said in str(caught.value)
