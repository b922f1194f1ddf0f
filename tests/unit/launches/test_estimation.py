import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from kernelcast.launches import estimation, weighing
from kernelcast.launches.estimation import MOMENTS_APART_S, estimate_runs, measure, sample_launch
from kernelcast.launches.settings import EstimateSettings
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Tier
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.samples import SampleRun
from kernelcast.sampling.contention_meter import Waiting
from kernelcast.sampling.plan import SamplingPlan
from support.fakes import Disturbance, SyntheticLaunch

LARGE = NDRange(global_size=(64 * 100_000,), local_size=(64,))


def no_wait(_: float) -> None:
    """Let no time pass between moments."""


def make_launch(noise: float = 0.0) -> SyntheticLaunch:
    """Make a launch of 0.5 s with even work."""
    return SyntheticLaunch(LARGE, lambda at: 5e-6, disturbance=Disturbance(noise=noise, seed=3))


def test_estimates_are_complete() -> None:
    """Fills every field of an estimate with what launch and samples say."""
    launch = make_launch(noise=0.01)
    stages: list[str] = []
    estimate = sample_launch(
        launch, "triad", EstimateSettings(), report=stages.append, wait=no_wait
    ).estimate
    assert (estimate.kernel, estimate.device_id) == ("triad", launch.device.id)
    assert (estimate.ndrange, estimate.saturation) == (LARGE, launch.saturation)
    assert estimate.compute_units == launch.device.compute_units
    assert 0 < estimate.low <= estimate.seconds <= estimate.high
    assert estimate.tier is Tier.LINEAR
    assert estimate.estimates_s["linear"] == estimate.seconds
    assert all(0 < seconds < math.inf for seconds in estimate.estimates_s.values())
    assert 1 <= estimate.sample_work_groups[0] <= estimate.sample_work_groups[1]
    assert 0 < estimate.sampling_seconds < 0.08 * estimate.seconds
    assert estimate.overhead_seconds >= 0
    assert estimate.in_domain
    assert estimate.measurement is None
    assert estimate.error is None
    assert stages == ["sampling"]


def test_measured_runs_are_as_many_as_asked_for() -> None:
    """Measures as many whole runs as asked for, after one to warm up, and reports each."""
    stages: list[str] = []
    settings = EstimateSettings(measure=True, measured_runs=3)
    estimate = sample_launch(
        make_launch(), "triad", settings, report=stages.append, wait=no_wait
    ).estimate
    assert estimate.measurement is not None
    assert len(estimate.measurement.durations_s) == 3
    assert estimate.error == pytest.approx(0.0, abs=1e-3)
    assert len(stages) == 5
    assert len(measure(make_launch(), 4).durations_s) == 4


def test_small_launches_are_out_of_domain() -> None:
    """Warns of a launch of few and short work-groups, and says that it is out of domain."""
    small = NDRange(global_size=(16 * 8,), local_size=(8,))
    estimate = sample_launch(
        SyntheticLaunch(small, lambda at: 1e-5), "k", EstimateSettings(), wait=no_wait
    ).estimate
    assert not estimate.in_domain
    assert any("small" in warning for warning in estimate.warnings)


def test_moments_lie_apart() -> None:
    """Waits between moments."""
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        time.sleep(min(seconds, 0.02))

    settings = EstimateSettings(plan=SamplingPlan(moments=2))
    sampled = sample_launch(make_launch(), "triad", settings, wait=wait)
    assert len(sampled.runs) == 2
    assert len(waits) == 1
    assert 0 < waits[0] <= 0.1  # less what stages have taken: a busy machine is slow


def test_samples_are_weighed_between_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for the next moment no longer than since the last sample, whatever weighing takes."""
    source = "kernel void triad(global float *a) { if (a[0] > 0) a[1] = sqrt(a[2]); }"
    waits: list[float] = []

    def weigh_slowly(run: SampleRun, *_: object) -> SampleRun:
        time.sleep(MOMENTS_APART_S)
        return run

    monkeypatch.setattr(weighing, "weigh_run", weigh_slowly)
    kernel = Kernel(name="triad", source=source)
    settings = EstimateSettings(plan=SamplingPlan(moments=2))
    sample_launch(make_launch(), kernel, settings, wait=waits.append)
    assert waits == [0.0]


class _SlowLaunch(SyntheticLaunch):
    """A launch whose whole runs let time pass."""

    def time_whole(self) -> float:
        """Let a fiftieth of a second pass."""
        time.sleep(0.02)
        return 0.02


@pytest.mark.parametrize(
    ("left_s", "runs"), [(math.inf, 4), (10.0, 4), (0.07, 1), (0.025, 1), (0.02, 0), (-1.0, 0)]
)
def test_whole_runs_end_in_time(left_s: float, runs: int) -> None:
    """One that does not fit is not begun; the first counts where no other fits."""
    launch = _SlowLaunch(NDRange(global_size=(64,), local_size=(8,)), lambda _: 1e-5)
    ends_s = time.monotonic() + left_s
    found = measure(launch, 4, expected_s=0.02, ends_s=ends_s)
    if not runs:
        assert found is None
        return
    assert found is not None
    assert runs <= len(found.durations_s) <= (4 if runs == 4 else 2)
    assert found.slowdown == 1.0  # threads that slept say nothing


def test_whole_runs_say_what_they_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that waited twice as long as they worked made the runs three times as long."""
    readings = [{"1": Waiting(0.01 * n, 0.02 * n)} for n in range(9)]
    monkeypatch.setattr(estimation, "read_waiting", lambda: readings.pop(0))
    launch = SyntheticLaunch(NDRange(global_size=(64,), local_size=(8,)), lambda _: 1e-3)
    found = measure(launch, 2)
    assert found is not None
    assert found.slowdown == pytest.approx(3.0)
    assert found.error_of(found.seconds / 3) == pytest.approx(0.0)


def test_samples_of_a_recording_repeat_the_estimate() -> None:
    """Gives from what was sampled exactly the estimate that was made of it."""
    launch = make_launch(noise=0.02)
    first = sample_launch(launch, "triad", EstimateSettings(), wait=no_wait)
    again = estimate_runs(launch, "triad", first.runs, first.estimate.coverage).estimate
    assert replace(again, overhead_seconds=first.estimate.overhead_seconds) == first.estimate


def test_wider_coverage_is_never_narrower() -> None:
    """Gives an interval that holds those of all smaller coverages."""
    intervals = [
        sample_launch(
            make_launch(noise=0.05), "k", EstimateSettings(coverage=coverage), wait=no_wait
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
