"""A device that does not exist, a machine that was calibrated elsewhere, and a tunable kernel."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.machines import read_machine
from kernelcast.records.machine import MachineDescription

ROOT = Path(__file__).parents[3]
PROBLEM = """
code: |
  kernel void scale(global float *a) {
      const int first = get_group_id(0) * (LX * ITEMS) + get_local_id(0);
      for (int i = 0; i < ITEMS; i++)
          a[first + i * LX] *= 2.0f;
  }
kernel: scale
build_options: ["-DLX={LX}", "-DITEMS={ITEMS}"]
global_size: ["{N} // {ITEMS}"]
local_size: ["{LX}"]
parameters: {N: 4096, LX: [8, 16, 64], ITEMS: [1, 4]}
restrictions: ["{LX} * {ITEMS} <= 64"]
args: [{buffer: float32, count: "{N}", init: uniform}]
"""


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    path = tmp_path / "scale.yaml"
    path.write_text(PROBLEM)
    return path


@pytest.fixture(scope="session")
def machine() -> MachineDescription:
    """Give a calibrated CPU whose runtime vectorises over work-items."""
    found = read_machine(ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml")
    return replace(found, curves=())
