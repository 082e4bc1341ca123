"""What the token modules cost a process that only imports them."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = ("jwt", "cryptography", "jsonschema_rs", "yaml", "httpx2")
SCRIPT = """
import json, pkgutil, sys
import carnet.arguments, carnet.clock, carnet.token, carnet.trace
for module in pkgutil.iter_modules(carnet.token.__path__):
    __import__(f"carnet.token.{module.name}")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_importing_every_token_module_loads_no_cryptography_and_no_parser_library() -> None:
    path = os.pathsep.join(str(ROOT / part) for part in ("policy", "clients/python"))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={"PYTHONPATH": path, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not set(json.loads(done.stdout)) & set(HEAVY)
