from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kernelcast.launches.estimation import sample_launch
from kernelcast.launches.recordings import Recording
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.answering.measuring import record
from kernelcast.predictor.estimates import replay
from kernelcast.records.contention import Contention
from kernelcast.records.estimates import Estimate
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.plan import SamplingPlan
from support.fakes import Disturbance, SyntheticLaunch

SETTINGS = EstimateSettings(plan=SamplingPlan(budget=0.05, seed=7), seed=7)


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Give a recording of a launch that was sampled with another budget and seed than usual."""
    ndrange = NDRange(global_size=(80_000,), local_size=(8,))
    launch = SyntheticLaunch(ndrange, lambda _: 1e-5, disturbance=Disturbance(noise=0.05, seed=3))
    _, runs = sample_launch(launch, "triad", SETTINGS, wait=lambda _: None)
    return record(launch, Kernel(name="triad", source="triad"), runs)


def test_recorded_runs_are_judged_by_what_other_programs_did_then(recording: Recording) -> None:
    """Today's clock and programs change nothing; older files tell it by their samples."""
    when = datetime(2020, 1, 1, tzinfo=UTC)
    seen = Contention(worked_s=0.1, waited_s=0.2, others=2, measured_at=when)
    busy = tuple(replace(one, contention=seen) for one in recording.runs)
    settings = replace(SETTINGS, measure=True)

    def ask(**parts: object) -> Estimate:
        held = replace(recording, whole_s=(0.3,), **parts)
        found = next(replay([held], None, settings=settings))[0].estimate
        assert found is not None
        return found

    alone = ask(slowdown=1.0)
    assert alone.now is None
    both = ask(runs=busy, slowdown=4.0)
    assert both.expected.seconds == pytest.approx(3 * alone.seconds)
    assert both.error == pytest.approx(4 * alone.seconds / 0.3 - 1)
    assert ask(runs=busy).error == pytest.approx(3 * alone.seconds / 0.3 - 1)
    assert ask().error == alone.error
    # It answers with what was sampled, whatever budget and seed the settings have.
    other = next(replay([recording], None, settings=EstimateSettings()))[0].estimate
    assert other is not None
    assert other.interval == alone.interval
