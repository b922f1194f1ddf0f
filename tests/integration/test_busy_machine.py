"""What estimates say while other programs are at work."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.launches.problem_file.reader import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.device import DeviceKind
from kernelcast.records.samples import join_moments
from kernelcast.sampling.launch import OpenCLLaunch
from kernelcast.sampling.session import DeviceSession

# Ends with its parent, however that ends.
COMPUTE = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "mandelbrot" / "mandelbrot.yaml"
pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(
        not Path("/proc/self/schedstat").exists(), reason="only Linux tells what threads wait"
    ),
]


@pytest.fixture
def busy() -> Iterator[None]:
    """Keep two programs computing on each processor."""
    programs = [
        subprocess.Popen([sys.executable, "-S", "-c", COMPUTE])
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    time.sleep(1.1)  # children younger than a second may be a runtime's linker
    yield
    for one in programs:
        one.kill()
        one.wait()


@pytest.mark.usefixtures("busy")
def test_beside_other_programs_an_estimate_has_two_times(session: DeviceSession) -> None:
    """Gives the time now beside the time alone, a warning, and both times of each sample."""
    if session.description.kind is not DeviceKind.CPU:
        pytest.skip("other programs take no time of this device")
    problem = read_problem(EXAMPLE)
    with prepared_launch(session, problem, OpenCLLaunch, seed=0) as launch:
        sampled = sample_launch(
            launch, problem.kernel, EstimateSettings(), arguments=problem.arguments
        )
    estimate, seen = sampled.estimate, join_moments(sampled.runs).contention
    assert seen is not None
    assert seen.others >= 1
    assert estimate.now is not None
    assert estimate.now.seconds == pytest.approx(seen.slowdown * estimate.seconds)
    assert seen.describe() in estimate.warnings
    if session.timer.cores is not None:
        assert all(one.clock_s is not None for run in sampled.runs for one in run.launches)
