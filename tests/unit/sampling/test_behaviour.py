from dataclasses import dataclass

import numpy as np
import pytest

from kernelcast.records.device import DispatchOrder
from kernelcast.sampling.behaviour import measure_behaviour, settle
from kernelcast.sampling.probes import ProbeResult

STEP_S = 2e-8
"""Seconds that a step of one work-group adds to a launch."""


@dataclass
class FakeProbe:
    """Launches of known overhead; some begin with both threads on one core."""

    overhead_s: float
    slow_runs: int = 0
    runs: int = 0

    def find_order(self) -> DispatchOrder:
        """Start rows one after the other."""
        return DispatchOrder.ROWS

    def time_nothing(self) -> float:
        """Give the overhead."""
        return self.overhead_s

    def run(self, groups: tuple[int, ...], *, steps: int) -> ProbeResult:
        """Take twice the time in the first runs."""
        self.runs += 1
        times = 2 if self.runs <= self.slow_runs else 1
        work_s = times * STEP_S * groups[0] * steps
        return ProbeResult(
            duration_s=self.overhead_s + work_s, concurrency=2, tickets=np.arange(groups[0])
        )


@pytest.mark.parametrize("overhead_s", [5e-6, 1e-4, 1e-3])
def test_waits_until_the_device_is_at_its_usual_rate(overhead_s: float) -> None:
    """Sees threads that share a core, however slow launches are, and waits until they do not."""
    probe = FakeProbe(overhead_s)
    behaviour = measure_behaviour(probe)  # type: ignore[arg-type]
    probe.runs, probe.slow_runs = 0, 6
    settle(probe, behaviour)  # type: ignore[arg-type]
    assert probe.runs > probe.slow_runs


def test_reads_overhead_and_saturation_off_the_steps() -> None:
    """Finds the overhead that launches have."""
    behaviour = measure_behaviour(FakeProbe(1e-3))  # type: ignore[arg-type]
    assert behaviour.launch_overhead_s == pytest.approx(1e-3, rel=0.01)
