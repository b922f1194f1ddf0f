import math
from pathlib import Path

import pytest

from kernelcast.launches.features import read_source_features
from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.machines import foretell_by, foretell_own
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import BufferArgument, ElementType
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from support.builders import make_description

ROOT = Path(__file__).parents[3]
MACHINE = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"


def read_example(name: str) -> Problem:
    """Read an example's problem."""
    return read_problem(ROOT / f"examples/{name}/{name}.yaml")


@pytest.mark.parametrize(("name", "limiter"), [("transcendental", "special"), ("triad", "DRAM")])
def test_answers_from_the_source_alone(name: str, limiter: str) -> None:
    """Gives a time, and what bounds it, without a device."""
    features = read_source_features(read_example(name))
    found = foretell_by(features.problem, features.ndrange, read_machine(MACHINE))
    assert 1e-3 < found.seconds < 10
    assert found.limiter == limiter
    assert found.doubt == 0.0


def test_doubts_loops_that_data_end() -> None:
    """Says by how much the time may be off where the source does not tell how long a loop runs."""
    kernel = Kernel(
        name="k",
        source="kernel void k(global const int* a, global int* b) {"
        "int x = get_global_id(0), n = a[x], s = 0; while (n != 1) { n = n / 2; s++; } b[x] = s; }",
    )
    buffer = BufferArgument(element=ElementType("int32"), count=4096)
    ndrange = NDRange(global_size=(4096,), local_size=(64,))
    problem = Problem(name="k", kernel=kernel, ndrange=ndrange, arguments=(buffer, buffer))
    assert foretell_by(problem, ndrange, read_machine(MACHINE)).doubt > math.log(100)


def test_has_no_answer_where_addresses_depend_on_data() -> None:
    """Leaves launches to samples whose addresses the source does not tell."""
    features = read_source_features(read_example("pointer_chase"))
    with pytest.raises(KernelcastError):
        foretell_by(features.problem, features.ndrange, read_machine(MACHINE))


def test_has_no_answer_for_devices_that_were_not_calibrated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Says nothing of a device that nothing is known of."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    problem = read_example("nbody")
    assert foretell_own(problem, problem.ndrange, make_description().id) is None
