"""Closing a store while others read it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROUNDS = int(os.environ.get("TEST_EXAMPLES", "200"))


def test_no_reader_has_its_connection_closed_under_it(tmp_path: Path) -> None:
    """Readers go on until they are told that the store is closed; closed under one, the process would be gone."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.store.closing", str(tmp_path), str(ROUNDS)]
    places = os.pathsep.join(str(ROOT / part) for part in ("broker", "policy", "clients/python", "."))
    environ = os.environ | {"PYTHONPATH": places}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
