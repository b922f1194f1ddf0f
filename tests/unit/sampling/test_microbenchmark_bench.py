from itertools import count, cycle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelcast.records.errors import MeasurementError
from kernelcast.sampling.microbenchmarks.effort import FEWEST_REPEATS, Effort
from kernelcast.sampling.microbenchmarks.harness import Bench


class _Reference:
    """A reference kernel that takes the times it is given."""

    usual_s = 1.0
    spread = 0.0

    def __init__(self, times: list[float]) -> None:
        self._times = cycle(times)

    def time(self) -> float:
        return next(self._times)

    def is_slow(self, seconds: float) -> bool:
        return seconds > 1.1

    def wait_until_usual(self) -> None:
        """Do not wait."""


def _make_bench(
    reference_s: list[float] | None = None, *, effort: Effort = Effort.FULL, launch_s: float = 1e-6
) -> Bench:
    """Make a bench without a device."""
    session: Any = SimpleNamespace(
        settle=lambda: None, note_busy=lambda: None, description=None, uses_event_timer=True
    )
    bench = Bench(session, effort)
    vars(bench)["reference"] = _Reference(reference_s or [1.0])
    vars(bench)["launch_overhead_s"] = launch_s
    return bench


def test_narrow_interval_ends_a_measurement_early() -> None:
    """Equal runs are repeated five times, not 25."""
    found = _make_bench().measure(lambda: 2.0)
    assert found.count == FEWEST_REPEATS
    assert found.median == 2.0
    assert found.drift == 1.0


def test_wide_interval_takes_the_25_runs_of_the_paper() -> None:
    """Runs that differ by half are repeated 25 times, and their median is reported."""
    rng = np.random.default_rng(4)
    found = _make_bench().measure(lambda: float(rng.lognormal(0.0, 0.3)))
    assert found.count == 25
    assert found.median == pytest.approx(1.0, abs=0.3)


def test_runs_beside_a_slow_reference_are_repeated() -> None:
    """Runs next to a reference that is 50 % slower than usual do not count."""
    reference = [1.0, 1.0, 1.0, 1.5]
    found = _make_bench([*reference]).measure(lambda: 2.0)
    assert found.count == FEWEST_REPEATS
    assert found.repeated > 0


def test_a_reference_that_is_always_slow_does_not_keep_a_measurement_going() -> None:
    """On a machine that is busy throughout, runs are counted all the same, and the drift told."""
    ticks = count()
    bench = _make_bench([2.0], effort=Effort.QUICK)
    found = bench.measure(lambda: 1.0 + 0.001 * next(ticks))
    assert found.count == Effort.QUICK.repeats
    assert found.repeated == 0
    assert found.drift == 2.0


@pytest.mark.parametrize("step_s", [1e-8, 1e-6, 3e-5])
def test_length_reaches_the_target(step_s: float) -> None:
    """Iterations are chosen so that a run lasts about the target, whatever one takes."""
    bench = _make_bench(effort=Effort.QUICK)
    chosen = bench.calibrate_length(lambda n: 1e-6 + n * step_s, most=10**7)
    assert 0.7 * Effort.QUICK.run_s < chosen * step_s < 1.5 * Effort.QUICK.run_s


def test_length_stays_below_what_devices_compute_rightly() -> None:
    """Iterations never exceed the limit, however short they are."""
    assert _make_bench().calibrate_length(lambda _: 1e-9, most=60_000) == 60_000


def test_runs_are_long_beside_launches() -> None:
    """Where launches are slow, runs are ten times as long as them."""
    bench = _make_bench(effort=Effort.QUICK, launch_s=1e-3)
    assert bench.calibrate_length(lambda n: n * 1e-6) * 1e-6 > 7e-3


def test_noise_does_not_hide_that_work_happened() -> None:
    """Times that double every other run still prove work by the shortest of a few."""
    factors = cycle([1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 1.0])
    _make_bench().prove_work(lambda n: n * 1e-6 * next(factors), 4000)


def test_time_that_does_not_depend_on_the_iterations_is_found_out() -> None:
    """A loop that a compiler removed is reported, whatever the noise."""
    factors = cycle([1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 1.0])
    with pytest.raises(MeasurementError, match="may have been removed"):
        _make_bench().prove_work(lambda _: 1e-3 * next(factors), 4000)


def test_a_run_too_short_to_prove_anything_is_lengthened() -> None:
    """Where a launch hides the work, longer runs are tried, and the length that proves it given."""
    proven = _make_bench().prove_work(lambda n: 1e-4 + n * 1e-7, 8)
    assert 8 < proven < 60_000


def test_runs_are_lengthened_only_as_far_as_they_may() -> None:
    """The largest count is tried once, and none beyond it."""
    asked: list[int] = []

    def run(count: int) -> float:
        asked.append(count)
        return 1e-4

    with pytest.raises(MeasurementError, match="may have been removed"):
        _make_bench().prove_work(run, 8, most=100)
    assert max(asked) == 100
