import pytest

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.settings import EstimateSettings, make_settings
from kernelcast.predictor.answering.measuring import record
from kernelcast.predictor.replaying import replay
from kernelcast.records.ndrange import NDRange
from kernelcast.records.recording import Recording
from support.fakes import Disturbance, SyntheticLaunch

SETTINGS = make_settings(budget=0.05, coverage=0.9, measured_runs=None, seed=7)


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Give a recording of a launch that was sampled with another budget and seed than usual."""
    ndrange = NDRange(global_size=(80_000,), local_size=(8,))
    launch = SyntheticLaunch(ndrange, lambda _: 1e-5, disturbance=Disturbance(noise=0.05, seed=3))
    sampled = sample_launch(launch, "triad", SETTINGS, wait=lambda _: None)
    return record(launch, "triad", sampled.runs)


def test_recordings_need_no_plan(recording: Recording) -> None:
    """Answers with what was sampled, whatever budget and seed the settings have."""
    given = [next(replay([recording], None, settings=s)) for s in (EstimateSettings(), SETTINGS)]
    first, second = (one.answer.estimate for one in given)
    assert first is not None
    assert second is not None
    assert first.interval == second.interval
