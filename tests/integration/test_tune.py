"""Tuning on real devices; nothing is asserted of times."""

from pathlib import Path

import pytest

from kernelcast.launches.machine_file import read_machine
from kernelcast.sampling.session import DeviceSession
from kernelcast.tuning.api import tune_on_device
from kernelcast.tuning.settings import TuneModels, TuneSettings
from kernelcast.tuning.space import read_space

pytestmark = pytest.mark.device

ROOT = Path(__file__).parents[2]
MACHINE = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"
PROBLEM = """
code: |
  kernel void add(global float *a, local float *part) {
      part[get_local_id(0)] = a[get_global_id(0)];
      barrier(CLK_LOCAL_MEM_FENCE);
  #if BROKEN
      this does not compile
  #endif
      a[get_global_id(0)] = part[get_local_id(0)] + 1.0f;
  }
kernel: add
build_options: ["-DBROKEN={BROKEN}"]
global_size: [65536]
local_size: ["{LX}"]
parameters: {LX: [16, 64], BROKEN: [0, 1]}
args: [{buffer: float32, count: 65536, init: uniform}, {local: "4 * {LX}"}]
"""


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    """Give four configurations, two of which no compiler takes."""
    path = tmp_path / "add.yaml"
    path.write_text(PROBLEM)
    return path


def test_samples_the_best(session: DeviceSession, problem_file: Path) -> None:
    """A few work-groups run of configurations that can be built."""
    settings = TuneSettings(models=TuneModels.HYBRID, sampled=4)
    report = tune_on_device(
        read_space(problem_file, parameters={"BROKEN": 0}),
        session.description,
        machine=read_machine(MACHINE),
        settings=settings,
    )
    assert all((one.sampled_s or 0) > 0 for one in report.configurations)
