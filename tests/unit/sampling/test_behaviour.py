import time
from dataclasses import dataclass, replace

import pytest

from kernelcast.sampling.behaviour import (
    WAKING_STEP_S,
    find_saturated,
    measure_behaviour,
    settle,
)
from kernelcast.sampling.probes import ProbeResult

STEP_S = 2e-8
"""Seconds that a step of one work-group adds to a launch."""


@dataclass
class FakeProbe:
    """Launches of known overhead; some begin with both threads on one core."""

    overhead_s: float
    slow_runs: int = 0
    runs: int = 0

    def run(self, groups: tuple[int, ...], *, steps: int) -> ProbeResult:
        """Take twice the time in the first runs."""
        self.runs += 1
        times = 2 if self.runs <= self.slow_runs else 1
        work_s = times * STEP_S * groups[0] * steps
        return ProbeResult(duration_s=self.overhead_s + work_s, concurrency=2)


@pytest.mark.parametrize("overhead_s", [5e-6, 1e-4, 1e-3])
def test_waits_until_the_device_is_at_its_usual_rate(overhead_s: float) -> None:
    """Sees threads that share a core, however slow launches are, and waits until they do not."""
    probe = FakeProbe(overhead_s)
    behaviour = measure_behaviour(probe, overhead_s)  # type: ignore[arg-type]
    probe.runs, probe.slow_runs = 0, 6
    steps = behaviour.settle_steps
    settle(lambda: probe.run((32,), steps=steps).duration_s, behaviour.settled_s)
    assert probe.runs > probe.slow_runs


@dataclass
class FakeGpu(FakeProbe):
    """Launches of a GPU that takes as long for one work-group as for all that it holds."""

    held: int = 132 * 8

    def run(self, groups: tuple[int, ...], *, steps: int) -> ProbeResult:
        """Take a wave's time until the device is full, and in proportion from there on."""
        self.runs += 1
        waves = max(1.0, groups[0] / self.held)
        return ProbeResult(
            duration_s=self.overhead_s + waves * 32 * STEP_S * steps,
            concurrency=min(groups[0], self.held),
        )


@pytest.mark.parametrize("held", [16, 132 * 8, 304 * 16])
def test_a_gpu_is_filled_before_its_steps_are_read(held: int) -> None:
    """Does not take the time of a wave for what a launch costs beside its work-groups."""
    behaviour = measure_behaviour(FakeGpu(4e-6, held=held), 4e-6)  # type: ignore[arg-type]
    assert held / 2 < behaviour.saturated_from <= 2 * held


def test_noise_that_hides_the_step_leaves_the_largest_launch() -> None:
    """Takes the largest launch that was tried where a larger one was not slower."""
    assert find_saturated({16: 2.0, 32: 1.9}) == 32


@dataclass
class WakingGpu(FakeGpu):
    """A GPU whose clock rises in steps while it is kept busy; each launch takes a millisecond."""

    now_s: float = 0.0

    def run(self, groups: tuple[int, ...], *, steps: int) -> ProbeResult:
        """Take three times as long at first, then twice as long."""
        found = super().run(groups, steps=steps)
        self.now_s += 1e-3
        return replace(found, duration_s=found.duration_s * (3 - min(2, int(self.now_s / 0.05))))


def test_a_clock_that_rises_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds the time at the highest clock, though it comes later than a probe usually settles."""
    gpu = WakingGpu(4e-6)
    monkeypatch.setattr(time, "perf_counter", lambda: gpu.now_s)
    behaviour = measure_behaviour(gpu, 4e-6, longest_s=WAKING_STEP_S)  # type: ignore[arg-type]
    expected = 4e-6 + 32 * STEP_S * behaviour.settle_steps
    assert behaviour.settled_s == pytest.approx(expected)
