"""Homes and caches that cannot be written."""

import json
import os
import subprocess
import sys

import pytest

from kernelcast.sampling.discovery import find_devices

pytestmark = pytest.mark.device


def test_devices_are_there_without_home_and_cache() -> None:
    """All of them build and run a kernel; what is not kept is said once."""
    environment = {
        **{name: one for name, one in os.environ.items() if not name.startswith("KERNELCAST_")},
        "HOME": "/proc/nonexistent",
        "XDG_CACHE_HOME": "/dev/null/x",
        "XDG_DATA_HOME": "/dev/null/y",
    }
    found = subprocess.run(
        [sys.executable, "-m", "kernelcast", "devices", "--json"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert [one["id"] for one in json.loads(found.stdout)] == [one.id for one, _ in find_devices()]
    assert found.stderr.count("caches are not kept") == 1
    assert "/dev/null/x: Not a directory" in found.stderr
