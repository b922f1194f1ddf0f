from dataclasses import replace

import pytest

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.recordings import Recording
from kernelcast.launches.settings import EstimateSettings, make_settings
from kernelcast.predictor.replaying import replay
from kernelcast.records.errors import RecordingError
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.replay import RecordingLaunch
from kernelcast.testing.fakes import SyntheticLaunch

SETTINGS = make_settings(budget=0.05, coverage=0.9, measured_runs=None, seed=7)


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Give a recording of a launch that was sampled with another budget and seed than usual."""
    ndrange = NDRange(global_size=(80_000,), local_size=(8,))
    launch = RecordingLaunch(SyntheticLaunch(ndrange, lambda _: 1e-5), "triad")
    sample_launch(launch, "triad", SETTINGS)
    return replace(launch.recording(), plan=SETTINGS.plan)


def test_recordings_know_their_plan(recording: Recording) -> None:
    """Answers with the recording's own budget and seed, whatever the settings are."""
    given = [next(replay([recording], None, settings=s)) for s in (EstimateSettings(), SETTINGS)]
    first, second = (one.answer.estimate for one in given)
    assert first is not None
    assert second is not None
    assert first.interval == second.interval


def test_recordings_without_a_plan_need_it(recording: Recording) -> None:
    """Answers from a recording that does not know its plan with the caller's, or says so."""
    old = replace(recording, plan=None)
    assert next(replay([old], None, settings=SETTINGS)).answer.estimate is not None
    with pytest.raises(RecordingError, match="the plan and seed it was made with"):
        next(replay([old], None, settings=EstimateSettings()))
