import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from kernelcast.launches.estimation import measure, sample_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Tier
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.replay import RecordingLaunch, ReplayLaunch
from kernelcast.testing.fakes import Disturbance, SyntheticLaunch

LARGE = NDRange(global_size=(64 * 100_000,), local_size=(64,))


def make_launch(noise: float = 0.0) -> SyntheticLaunch:
    """Make a launch of 0.5 s with even work."""
    return SyntheticLaunch(LARGE, lambda at: 5e-6, disturbance=Disturbance(noise=noise, seed=3))


def test_estimates_are_complete() -> None:
    """Fills every field of an estimate with what launch and samples say."""
    launch = make_launch(noise=0.01)
    stages: list[str] = []
    estimate = sample_launch(launch, "triad", EstimateSettings(), report=stages.append).estimate
    assert (estimate.kernel, estimate.device_id) == ("triad", launch.device.id)
    assert (estimate.ndrange, estimate.saturation) == (LARGE, launch.saturation)
    assert estimate.compute_units == launch.device.compute_units
    assert 0 < estimate.low <= estimate.seconds <= estimate.high
    assert estimate.tier is Tier.LINEAR
    assert estimate.estimates_s["linear"] == estimate.seconds
    assert all(0 < seconds < math.inf for seconds in estimate.estimates_s.values())
    assert 1 <= estimate.sample_work_groups[0] <= estimate.sample_work_groups[1]
    assert 0 < estimate.sampling_seconds < 0.05 * estimate.seconds
    assert estimate.overhead_seconds >= 0
    assert estimate.in_domain
    assert estimate.measurement is None
    assert estimate.error is None
    assert stages == ["sampling"]


def test_measured_runs_are_as_many_as_asked_for() -> None:
    """Measures as many whole runs as asked for, after one to warm up, and reports each."""
    stages: list[str] = []
    settings = EstimateSettings(measure=True, measured_runs=3)
    estimate = sample_launch(make_launch(), "triad", settings, report=stages.append).estimate
    assert estimate.measurement is not None
    assert len(estimate.measurement.durations_s) == 3
    assert estimate.error == pytest.approx(0.0, abs=1e-3)
    assert len(stages) == 5
    assert len(measure(make_launch(), 4).durations_s) == 4


def test_small_launches_are_out_of_domain() -> None:
    """Warns of a launch of few and short work-groups, and says that it is out of domain."""
    small = NDRange(global_size=(16 * 8,), local_size=(8,))
    estimate = sample_launch(
        SyntheticLaunch(small, lambda at: 1e-5), "k", EstimateSettings()
    ).estimate
    assert not estimate.in_domain
    assert any("small" in warning for warning in estimate.warnings)


@pytest.mark.parametrize("seed", range(3))
def test_recordings_repeat_the_estimate(seed: int) -> None:
    """Gives from a recording exactly the estimate that was made while it was recorded."""
    settings = EstimateSettings(plan=SamplingPlan(seed=seed), measure=True, measured_runs=2)
    recorder = RecordingLaunch(make_launch(noise=0.02), "triad")
    first = sample_launch(recorder, "triad", settings).estimate
    again = sample_launch(ReplayLaunch(recorder.recording()), "triad", settings).estimate
    assert again.interval == first.interval
    assert again.estimates_s == first.estimates_s
    assert again.sampling_seconds == first.sampling_seconds
    assert again.sample_work_groups == first.sample_work_groups


def test_wider_coverage_is_never_narrower() -> None:
    """Gives an interval that holds those of all smaller coverages."""
    intervals = [
        sample_launch(
            make_launch(noise=0.05), "k", EstimateSettings(coverage=coverage)
        ).estimate.interval
        for coverage in (0.1, 0.5, 0.8, 0.9, 0.99)
    ]
    for narrow, wide in pairwise(intervals):
        assert wide.low < narrow.low
        assert narrow.high < wide.high


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: EstimateSettings(coverage=0.0), "coverage"),
        (lambda: EstimateSettings(coverage=1.0), "coverage"),
        (lambda: EstimateSettings(coverage=math.nan), "coverage"),
        (lambda: EstimateSettings(measured_runs=0), "measured runs"),
        (lambda: SamplingPlan(budget=0.0), "budget"),
        (lambda: SamplingPlan(budget=1.5), "budget"),
        (lambda: SamplingPlan(budget=math.nan), "budget"),
    ],
)
def test_refuses_settings_out_of_range(make: Callable[[], Any], name: str) -> None:
    """Refuses a setting out of its range, naming it."""
    with pytest.raises(InputError, match=f"^{name} "):
        make()
