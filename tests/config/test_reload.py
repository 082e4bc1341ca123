"""The configuration is read again as a whole or not at all; the last good one stays in force."""

from pathlib import Path

import pytest

from carnet.errors import ConfigError
from carnet_broker.config.reload import Step, decide, refresh, watch
from tests.config.files import GOOD, POLICY, of, write


def test_nothing_changed_keeps_the_very_same_state(tmp_path: Path) -> None:
    state = watch(write(tmp_path))
    assert refresh(state) is state
    path = tmp_path / "carnet.yaml"
    path.write_text(path.read_text())  # another time of change, the same content
    assert refresh(state) is state


@pytest.mark.parametrize(
    "name", ["carnet.yaml", "tools.policy.yaml", "more.policy.yaml", "schemas/refund.json", "keys/support.jwks.json"]
)
def test_every_file_that_was_read_is_watched(tmp_path: Path, name: str) -> None:
    state = watch(write(tmp_path))
    (tmp_path / name).write_text((tmp_path / name).read_text() + "\n")
    after = refresh(state)
    assert after is not state
    assert after.problem is None
    assert refresh(after) is after


def test_a_changed_policy_comes_into_force(tmp_path: Path) -> None:
    state = watch(write(tmp_path))
    (tmp_path / "tools.policy.yaml").write_text(POLICY.replace("version: 3", "version: 4"))
    assert refresh(state).good.registries["acme"].policy.ref.version == 4
    assert state.good.registries["acme"].policy.ref.version == 3


def test_a_bad_file_leaves_the_last_good_state_and_is_tried_once(tmp_path: Path) -> None:
    state = watch(write(tmp_path))
    (tmp_path / "tools.policy.yaml").write_text("version: {")
    broken = refresh(state)
    assert broken.good is state.good
    assert broken.problem is not None
    assert "tools.policy.yaml" in broken.problem
    assert refresh(broken) is broken
    (tmp_path / "tools.policy.yaml").write_text(POLICY)
    mended = refresh(broken)
    assert mended.problem is None
    assert mended.good.registries["acme"].policy.ref == state.good.registries["acme"].policy.ref


def test_a_file_that_goes_away_changes_nothing_in_force(tmp_path: Path) -> None:
    state = watch(write(tmp_path))
    (tmp_path / "keys/support.jwks.json").unlink()
    gone = refresh(state)
    assert gone.good is state.good
    assert gone.problem is not None
    write(tmp_path)
    assert refresh(gone).problem is None


def test_a_file_that_is_named_first_and_comes_later_mends_the_configuration(tmp_path: Path) -> None:
    state = watch(write(tmp_path))
    (tmp_path / "carnet.yaml").write_text(GOOD.replace("more.policy.yaml", "new.policy.yaml"))
    missing = refresh(state)
    assert missing.problem is not None
    assert refresh(missing) is missing
    (tmp_path / "new.policy.yaml").write_text("tools: {}\n")
    mended = refresh(missing)
    assert mended.problem is None
    assert [name for name, _ in mended.good.registries["acme"].policy.texts] == ["tools.policy.yaml", "new.policy.yaml"]


def test_one_bad_tenant_holds_back_all_of_a_change(tmp_path: Path) -> None:
    write(tmp_path / "a")
    state = watch(tmp_path)
    write(tmp_path / "b", GOOD.replace("tenant: acme", "tenant: other"))  # its clients are the other tenant's
    refused = refresh(state)
    assert refused.good is state.good
    assert refused.problem is not None
    write(tmp_path / "b", of("other"))
    assert set(refresh(refused).good.registries) == {"acme", "other"}


def test_a_tenant_whose_file_is_removed_goes(tmp_path: Path) -> None:
    write(tmp_path / "a")
    path = write(tmp_path / "b", of("other"))
    state = watch(tmp_path)
    path.unlink()
    assert set(refresh(state).good.registries) == {"acme"}


def test_the_first_load_has_nothing_to_fall_back_on(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        watch(write(tmp_path, "format: 1"))


def test_the_decision_compares_contents_only() -> None:
    one = {Path("a"): "1", Path("b"): "2"}
    assert decide(one, dict(reversed(one.items()))) is Step.KEEP
    assert decide(one, {**one, Path("c"): "3"}) is Step.LOAD
    assert decide(one, {**one, Path("a"): "9"}) is Step.LOAD
    assert decide(one, {Path("a"): "1"}) is Step.LOAD
