"""Executed operations against an independent reference: Oclgrind's instruction counts."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelcast.records.device import DeviceDescription

pytestmark = pytest.mark.device

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "oclgrind_counts.py"
# Loops with two conditions, early returns behind guards, local memory with barriers and atomics.
EXAMPLES = ("mandelbrot", "stencil3d", "histogram")


@pytest.mark.skipif(shutil.which("oclgrind") is None, reason="oclgrind is not installed")
def test_executed_operations_equal_those_of_oclgrind(
    tmp_path: Path, first_device: DeviceDescription
) -> None:
    """Loads, stores, atomics and barriers are exact, arithmetic within 5 %.

    Blocks that only jump are none in compiled code: branches are at most Oclgrind's.
    """
    found = tmp_path / "found.json"
    only = [word for name in EXAMPLES for word in ("--only", name)]
    command = [sys.executable, str(SCRIPT), "--device", first_device.id, *only]
    subprocess.run([*command, "--json", str(found)], check=True)
    rows = json.loads(found.read_text(encoding="utf-8"))["rows"]
    assert sorted(row["problem"] for row in rows) == sorted(EXAMPLES)
    for row in rows:
        own, theirs = row["own"]["exact"], row["oclgrind"]["exact"]
        assert 0 < own.pop("branches") <= theirs.pop("branches")
        assert own == theirs
        assert abs(row["arithmetic_ratio"] - 1) <= 0.05
