import math
from pathlib import Path

import pytest

from kernelcast.launches.features import read_source_features
from kernelcast.launches.foretelling import foretell_by, foretell_own
from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.problem_file import read_problem
from kernelcast.models.static.describing import Workload
from kernelcast.records.errors import KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.testing.builders import make_description

ROOT = Path(__file__).parents[3]
MACHINE = ROOT / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"


def read_example(name: str) -> Problem:
    """Read an example's problem."""
    return read_problem(ROOT / f"examples/{name}/{name}.yaml")


@pytest.mark.parametrize(
    ("name", "kind"), [("transcendental", Workload.SPECIAL), ("matmul_tiled", Workload.DENSE)]
)
def test_answers_from_the_source_alone(name: str, kind: Workload) -> None:
    """Gives a time and a kind of work without a device."""
    features = read_source_features(read_example(name))
    found = foretell_by(features.problem, features.ndrange, read_machine(MACHINE)).learned
    assert found is not None
    assert 1e-3 < math.exp(found.log_seconds) < 10
    assert found.workload is kind


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
