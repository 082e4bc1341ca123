"""Connections never take the descriptors that the store needs."""

import subprocess
import sys

import pytest

CODE = """
import resource, sys
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from carnet_broker.http.descriptors import connections_that_fit
print(connections_that_fit(wanted), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "fit", "after"),
    [
        (1024, 4096, 2000, 2000, 2128),  # raised as far as is needed
        (1024, 1024, 2000, 896, 1024),  # not allowed to raise: fewer connections
        (3000, 4096, 2000, 2000, 3000),  # enough as it is
        (100, 100, 2000, 1, 100),
    ],
)
def test_the_soft_limit_is_raised_or_fewer_connections_are_held(
    soft: int, hard: int, wanted: int, fit: int, after: int
) -> None:
    command = [sys.executable, "-c", CODE, str(soft), str(hard), str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(fit), str(after)]
