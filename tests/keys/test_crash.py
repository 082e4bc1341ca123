"""A process that dies anywhere in a rotation leaves a directory that opens, with the old ring or with the new one."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carnet_broker.keys import KeyRing, KeysError, State
from tests.token.making import NOW, child, minted

# Dies at the n-th of the calls that change something on disk; the real code runs, in a process of its own.
SCRIPT = """
import os, sys
from pathlib import Path
from carnet_broker.keys import KeyRing

left = int(sys.argv[2])

def dying(real):
    def call(*args, **kwargs):
        global left
        if left == 0:
            os._exit(9)
        left -= 1
        return real(*args, **kwargs)
    return call

work = sys.argv[3]
ring = KeyRing.open(sys.argv[1]) if work == "rotate" else None
os.fsync, Path.replace, Path.unlink, Path.chmod = map(dying, (os.fsync, Path.replace, Path.unlink, Path.chmod))
if ring is not None:
    ring.rotate(1800000100)
else:
    KeyRing.create(sys.argv[1], 1800000100)
"""
ROOT = Path(__file__).parents[2]
PYTHONPATH = os.pathsep.join(str(ROOT / part) for part in ("broker", "policy", "clients/python"))


def run(path: Path, steps: int, work: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), str(steps), work],
        env={"PYTHONPATH": PYTHONPATH, "PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, 9), done.stderr.decode()
    return done.returncode


def test_a_rotation_killed_at_any_step_leaves_a_usable_directory(tmp_path: Path) -> None:
    outcomes = set()
    for steps in range(40):
        path = tmp_path / f"keys-{steps}"
        before = KeyRing.create(path, NOW)
        prepared = next(key.kid for key in before.states if key.state is State.PREPARED)
        code = run(path, steps, "rotate")
        after = KeyRing.open(path)
        assert after.active.kid in {before.active.kid, prepared}
        outcomes.add(after.active.kid == prepared)
        assert minted(child(), after.active)
        assert before.keyset().find(after.active.kid) is not None, "verifiers know the key that signs"
        after.rotate(NOW + 200)
        assert len(list(path.glob("*.pem"))) == 2, "what the crash left is tidied away"
        assert not list(path.glob("*.partial"))
        if code == 0:
            break
    else:
        pytest.fail("the rotation never came to its end")
    assert outcomes == {False, True}


def test_an_init_killed_at_any_step_is_refused_or_whole(tmp_path: Path) -> None:
    for steps in range(40):
        path = tmp_path / f"keys-{steps}"
        code = run(path, steps, "create")
        if code == 0:
            assert KeyRing.open(path).active.kid
            return
        if (path / "marker.json").exists():
            assert KeyRing.open(path).active.kid
        else:
            with pytest.raises(KeysError, match="carnet init"):
                KeyRing.open(path)
    pytest.fail("the creation never came to its end")


def test_rotations_at_once_come_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    KeyRing.create(path, NOW)
    rings = [KeyRing.open(path) for _ in range(4)]

    def turn(ring: KeyRing) -> str:
        try:
            ring.rotate(NOW)
        except KeysError as fault:
            return str(fault)
        return ""

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(turn, rings))
    assert all("another process" in fault for fault in said if fault)
    turned = said.count("")
    after = KeyRing.open(path)
    assert turned >= 1
    assert len(after.states) == 2 + turned
