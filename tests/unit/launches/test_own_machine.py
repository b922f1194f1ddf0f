import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.features.vector import combine
from kernelcast.launches.machines import find_own_machine, model_own_launch
from kernelcast.launches.problem_file import read_problem
from kernelcast.predictor.answering.measuring import add_analytic
from kernelcast.records.device import SaturationPoint
from kernelcast.records.estimates import Estimate, Interval, Tier
from kernelcast.records.problem import Problem
from kernelcast.records.traits import Trait, TraitSource

ROOT = Path(__file__).parents[3]
DEVICE = "intel-amd-epyc-c960"


@pytest.fixture
def calibrated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a data folder that holds one device's description."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    folder = tmp_path / "machines"
    folder.mkdir()
    shutil.copy(ROOT / f"benchmarks/results/calibration/{DEVICE}.yaml", folder)
    return folder


def read_example(name: str) -> Problem:
    """Read an example's problem."""
    return read_problem(ROOT / f"examples/{name}/{name}.yaml")


def make_estimate(problem: Problem, device_id: str) -> Estimate:
    """Make a sampled estimate of a problem."""
    return Estimate(
        device="a device",
        device_id=device_id,
        kernel=problem.kernel.name,
        ndrange=problem.ndrange,
        compute_units=2,
        saturation=SaturationPoint(
            p_sat=Trait(value=1, source=TraitSource.MEASURED),
            concurrency=2,
            measured=1,
        ),
        sample_work_groups=(8, 24),
        sampled_work_groups=64,
        interval=Interval(seconds=0.2, low=0.1, high=0.3, coverage=0.9),
        tier=Tier.LINEAR,
        estimates_s={"linear": 0.2},
        sampling_seconds=0.004,
        overhead_seconds=0.1,
    )


@pytest.mark.usefixtures("calibrated")
def test_stands_beside_the_sampled_estimate() -> None:
    """A calibrated device's estimate has the analytic model's answer and its limiter."""
    problem = read_example("triad")
    estimate = add_analytic(make_estimate(problem, DEVICE), problem)
    assert estimate.estimates_s["linear"] == 0.2
    assert 0.01 < estimate.estimates_s["analytic"] < 10
    assert estimate.limiter
    assert estimate.seconds == 0.2


@pytest.mark.usefixtures("calibrated")
def test_rows_have_hong_and_kims_time_too() -> None:
    """Where rivals are asked for, their time becomes a feature; the answer stays what it was."""
    problem = read_example("triad")
    plain = model_own_launch(problem, problem.ndrange, DEVICE)
    both = model_own_launch(problem, problem.ndrange, DEVICE, with_rivals=True)
    assert plain is not None
    assert both is not None
    assert both.seconds == plain.seconds
    assert combine(both).as_dict()["analytic.mwp_cwp_s"] == both.quantities["mwp_cwp_s"] > 0
    assert "analytic.mwp_cwp_s" in combine(plain).absent


@pytest.mark.usefixtures("calibrated")
def test_a_device_that_was_not_calibrated_has_none() -> None:
    """Without a description of its own nothing is added; shipped ones are of other machines."""
    problem = read_example("triad")
    estimate = make_estimate(problem, "v100")
    assert find_own_machine("v100") is None
    assert model_own_launch(problem, problem.ndrange, "v100") is None
    assert add_analytic(estimate, problem) is estimate


@pytest.mark.usefixtures("calibrated")
def test_what_has_no_answer_is_a_warning() -> None:
    """Addresses that depend on data and were not recorded cost a warning, not the estimate."""
    problem = read_example("spmv_csr")
    estimate = add_analytic(make_estimate(problem, DEVICE), problem)
    assert "analytic" not in estimate.estimates_s
    assert any("no analytic estimate" in one for one in estimate.warnings)


def test_a_damaged_description_is_a_warning(calibrated: Path) -> None:
    """An edited file that cannot be read does not cost the sampled estimate."""
    (calibrated / f"{DEVICE}.yaml").write_text("schema: [", encoding="utf-8")
    problem = replace(read_example("triad"))
    estimate = add_analytic(make_estimate(problem, DEVICE), problem)
    assert any("no analytic estimate" in one for one in estimate.warnings)
