"""Sizes of the property tests come from the environment: TEST_EXAMPLES (default small, so that a run stays short)."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    max_examples=int(os.environ.get("TEST_EXAMPLES", "50")),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")
