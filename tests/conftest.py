"""What holds for all tests: no device unless asked for, and no deadline per example."""

import os

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("kernelcast.testing.conformance")

# Shared machines stall for longer than any deadline; print_blob makes a failure repeatable.
settings.register_profile("kernelcast", deadline=None, print_blob=True)
settings.load_profile("kernelcast")

# Mesa's software device appears once it is named; a choice of the caller's stands.
os.environ.setdefault("RUSTICL_ENABLE", "llvmpipe")


def pytest_configure(config: pytest.Config) -> None:
    """Leave tests of real devices out unless `-m` says something: `-m device` runs them."""
    if not config.option.markexpr:
        config.option.markexpr = "not device"
