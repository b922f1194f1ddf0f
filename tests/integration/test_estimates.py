from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.records.problem import Problem
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

EXAMPLE = Path(__file__).parents[2] / "examples" / "mandelbrot" / "mandelbrot.yaml"
SETTINGS = EstimateSettings(measure=True, measured_runs=3)


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Give a small example: some milliseconds of uneven work in 2-D, in small work-groups."""
    problem = read_problem(EXAMPLE, parameters={"SIDE": 512, "LIMIT": 300})
    return replace(problem, ndrange=replace(problem.ndrange, local_size=(8, 4)))


@pytest.fixture
def outcome(session: DeviceSession, problem: Problem) -> EstimateOutcome:
    """Estimate and measure the example."""
    task = EstimateTask(problem=problem, device_id=session.description.id, settings=SETTINGS)
    return run_estimate(session, task)


def test_the_sampled_work_groups_are_never_repeated(outcome: EstimateOutcome) -> None:
    """Times no work-group twice on a real device."""
    boxes = [one.box for run in outcome.recording.runs for one in run.launches]
    assert boxes
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:index])


def test_what_first_launches_take_is_counted(session: DeviceSession, problem: Problem) -> None:
    """Work-groups that warm up count as samples, and what is built once is built once."""
    session.whole_kernel(problem.kernel).warmed.clear()
    task = EstimateTask(
        problem=problem, device_id=session.description.id, settings=EstimateSettings()
    )
    first, again = run_estimate(session, task), run_estimate(session, task)
    for outcome, is_first in ((first, True), (again, False)):
        samples_s = sum(one.sampling_s for one in outcome.recording.runs)
        estimate = outcome.estimate
        assert is_first or not estimate.build_seconds
        assert (estimate.sampling_seconds > samples_s) is is_first
        assert estimate.overhead_seconds >= estimate.build_seconds
