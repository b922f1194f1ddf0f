import math
from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.collection import kernel_task
from kernelcast.collection.settings import CollectionSettings
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.measuring import run_estimate
from kernelcast.predictor.answering.processes import EstimateOutcome, EstimateTask
from kernelcast.records.feature_vector import FeatureGroup, FeatureVector, group_of
from kernelcast.records.problem import Problem, identify_launch
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

EXAMPLE = Path(__file__).parents[2] / "examples" / "mandelbrot" / "mandelbrot.yaml"


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Give a small example: some milliseconds of uneven work in 2-D, in small work-groups."""
    problem = read_problem(EXAMPLE, parameters={"SIDE": 512, "LIMIT": 300})
    return replace(problem, ndrange=replace(problem.ndrange, local_size=(8, 4)))


def list_unsampled(vector: FeatureVector) -> list[str]:
    """Name the features but those of samples, which a busy machine may lack."""
    return [name for name in vector.values if group_of(name) is not FeatureGroup.SAMPLED]


def _make_task(session: DeviceSession, problem: Problem) -> EstimateTask:
    return EstimateTask(
        problem=problem,
        device_id=session.description.id,
        settings=EstimateSettings(),
        wants_row=True,
    )


def test_features_are_those_of_a_collection(session: DeviceSession, problem: Problem) -> None:
    """An estimate gives models the features that a collection would have stored."""
    outcome = run_estimate(session, _make_task(session, problem))
    assert outcome.row is not None, outcome.row_failure
    identity = identify_launch(problem, session.description, seed=0)
    settings = CollectionSettings(runs=1, multiples=1, window_sets=0)
    collected = kernel_task.observe_launch(session, problem, identity, settings).features
    assert collected is not None
    ours, theirs = outcome.row.vector, collected
    assert ours.schema == theirs.schema
    # What only validations compare is no part of an estimate.
    wanted = [name for name in list_unsampled(theirs) if name != "analytic.mwp_cwp_s"]
    assert list_unsampled(ours) == wanted
    ours_by_name, theirs_by_name = ours.as_dict(), theirs.as_dict()
    for name in wanted:
        assert math.isclose(ours_by_name[name], theirs_by_name[name], rel_tol=1e-9), name
    assert outcome.row.columns["linear_s"] == outcome.estimate.seconds
    assert outcome.row.columns["linear_error"] > 0


def test_a_collection_keeps_times_alone(
    session: DeviceSession, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole runs beside other programs are kept as they would be alone, with the factor."""
    monkeypatch.setattr(kernel_task, "time_whole", lambda _: (0.3, 2.0))
    identity = identify_launch(problem, session.description, seed=0)
    settings = CollectionSettings(runs=3, window_sets=0, counts=False)
    found = kernel_task.observe_launch(session, problem, identity, settings)
    assert found.seconds == pytest.approx(0.15)
    assert found.machine_state.slowdown == 2.0


def test_what_is_known_is_not_taken_again(session: DeviceSession, problem: Problem) -> None:
    """Facts of an earlier sampling serve, and what is built once is built once.

    Work-groups that warm up a kernel the first time count as samples.
    """
    session.whole_kernel(problem.kernel).warmed.clear()
    kept: list[EstimateOutcome] = []
    task = _make_task(session, problem)
    first = run_estimate(session, task, keep=kept.append)
    assert [one.row for one in kept] == [None]
    assert first.recording.facts is not None
    again = run_estimate(session, replace(task, facts=first.recording.facts))
    assert again.row is not None
    assert first.row is not None
    assert list_unsampled(again.row.vector) == list_unsampled(first.row.vector)
    assert again.recording.facts == first.recording.facts
    for outcome, is_first in ((first, True), (again, False)):
        samples_s = sum(one.sampling_s for one in outcome.recording.runs)
        estimate = outcome.estimate
        assert is_first or not estimate.build_seconds
        assert (estimate.sampling_seconds > samples_s) is is_first
        assert estimate.overhead_seconds >= estimate.build_seconds
