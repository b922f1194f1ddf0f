import math
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.estimation import estimate_runs
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.recordings import read_recordings, write_recordings
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.predictor.answering.tasks import EstimateOutcome, EstimateTask
from kernelcast.records.estimates import Tier
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import find_devices
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


def test_every_field_is_sane(
    session: DeviceSession, problem: Problem, outcome: EstimateOutcome
) -> None:
    """Fills every field of an estimate: an ordered interval, costs, methods and measurement."""
    estimate = outcome.estimate
    assert estimate.device_id == session.description.id
    assert estimate.device == session.description.name
    assert estimate.kernel == problem.kernel.name
    assert estimate.ndrange.global_size == problem.ndrange.global_size
    assert 0 < estimate.low <= estimate.seconds <= estimate.high < math.inf
    assert estimate.coverage == SETTINGS.coverage
    assert estimate.tier is Tier.LINEAR
    assert all(0 < seconds < math.inf for seconds in estimate.estimates_s.values())
    assert 1 <= estimate.sample_work_groups[0] <= estimate.sample_work_groups[1]
    assert estimate.sampling_seconds > 0
    assert estimate.overhead_seconds >= 0
    assert estimate.saturation.p_sat.value >= 1
    assert estimate.measurement is not None
    assert len(estimate.measurement.durations_s) == 3
    assert estimate.measurement.noise >= 0
    assert estimate.error is not None


def test_the_recording_repeats_the_estimate(outcome: EstimateOutcome, tmp_path: Path) -> None:
    """Gives the same answer from the written recording, without the device."""
    write_recordings(tmp_path / "samples.json", [outcome.recording])
    (recording,) = read_recordings(tmp_path / "samples.json")
    assert recording == outcome.recording
    again = estimate_runs(
        recording, outcome.estimate.kernel, recording.runs, outcome.estimate.coverage
    ).estimate
    assert again.interval == outcome.estimate.interval


def test_the_sampled_work_groups_are_never_repeated(outcome: EstimateOutcome) -> None:
    """Times no work-group twice on a real device."""
    boxes = [one.box for run in outcome.recording.runs for one in run.launches]
    assert boxes
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:index])


def test_ids_are_unique_and_stable(device_id: str) -> None:
    """Finds the device under the same id again, and no other device under that id."""
    ids = [description.id for description, _ in find_devices()]
    assert ids == [description.id for description, _ in find_devices()]
    assert ids.count(device_id) == 1
    assert ids == sorted(ids)


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
