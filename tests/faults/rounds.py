"""How long the fault suites go on: TEST_ROUNDS, short unless it is set."""

import os

__all__ = ["ROUNDS"]

ROUNDS = int(os.environ.get("TEST_ROUNDS", "3"))
