"""How the bench repeats, lengthens and proves runs, and what becomes of their times."""

import math
from itertools import cycle
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from kernelcast.records.errors import MeasurementError
from kernelcast.sampling.microbenchmarks.bench import (
    FEWEST_REPEATS,
    Bench,
    Effort,
    check_result,
    summarise,
)
from support.builders import make_description


def _make_bench(
    reference_s: list[float] | None = None, *, effort: Effort = Effort.FULL, launch_s: float = 1e-6
) -> Bench:
    """Make a bench without a device, whose reference kernel takes the times that it is given."""
    times = cycle(reference_s or [1.0])
    session: Any = SimpleNamespace(
        settle=lambda: None,
        note_busy=lambda: None,
        description=make_description(),
        time_reference=lambda: next(times),
    )
    bench = Bench(session, effort)
    bench.patience_s = 0.0
    vars(bench)["launch_overhead_s"] = launch_s
    return bench


@pytest.mark.parametrize(
    ("times", "reference_s", "counts"),
    [
        ([2.0], [1.0], {1 + FEWEST_REPEATS}),
        ([1.0, 1.5, 0.7, 1.2], [1.0], {1 + 25}),
        ([2.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.5], set(range(2 + FEWEST_REPEATS, 25))),
        ([1.0, 1.5, 0.7, 1.2], [1.0, 2.0], {1 + 25, 1 + 26}),
    ],
    ids=["equal runs", "the 25 of the paper", "some beside a slow device", "all beside one"],
)
def test_runs_are_repeated_until_the_mean_is_known(
    times: list[float], reference_s: list[float], counts: set[int]
) -> None:
    """Equal runs end early, wide ones do not; those beside a slow device do not count."""
    run = MagicMock(side_effect=cycle(times))
    found = _make_bench(reference_s).measure(run)
    assert run.call_count in counts
    assert found.low <= found.median <= found.high
    assert found.median == pytest.approx(np.median(times), rel=0.2)


@pytest.mark.parametrize("step_s", [1e-8, 1e-6, 3e-5])
def test_length_reaches_the_target(step_s: float) -> None:
    """Iterations make a run last about the target, within limits, and long beside a launch."""
    bench = _make_bench(effort=Effort.QUICK)
    chosen = bench.choose_length(lambda n: 1e-6 + n * step_s, most=10**7)
    assert 0.7 * bench.run_s < chosen * step_s < 1.5 * bench.run_s
    assert bench.choose_length(lambda _: 1e-9, most=60_000) == 60_000
    slow = _make_bench(effort=Effort.QUICK, launch_s=1e-3)
    assert slow.choose_length(lambda n: n * step_s, most=10**7) * step_s > 7e-3


def test_work_is_proven_by_time_that_grows() -> None:
    """Noise does not hide work; a run too short to prove anything is lengthened, up to the largest
    count where a compiler removed the loop."""
    factors = cycle([1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 1.0])
    assert _make_bench().prove_work(lambda n: n * 1e-6 * next(factors), 4000) == 4000
    assert 8 < _make_bench().prove_work(lambda n: 1e-4 + n * 1e-7, 8) < 60_000
    removed = MagicMock(side_effect=lambda _: 1e-3 * next(factors))
    with pytest.raises(MeasurementError, match="may have been removed"):
        _make_bench().prove_work(removed, 8, most=100)
    assert max(call.args[0] for call in removed.call_args_list) == 100


def test_interval_is_that_of_the_paper() -> None:
    """3 % noise gives 1.96 deviations on either side of the mean; spikes do not move the median."""
    times = np.random.default_rng(1).normal(1.0, 0.03, 4000)
    found = summarise(times.tolist())
    assert found.low == pytest.approx(1 - 1.96 * 0.03, abs=0.005)
    assert found.high == pytest.approx(1 + 1.96 * 0.03, abs=0.005)
    times[::10] *= 5
    assert summarise(times.tolist()).median == pytest.approx(1.0, abs=0.01)
    drifting = summarise([1.0] * 10, spread=0.03)
    assert (drifting.low, drifting.high) == pytest.approx((0.97, 1.03), abs=1e-3)


@pytest.mark.parametrize("times", [[], [0.0], [1.0, -1.0], [math.nan]])
def test_times_that_are_no_times_are_refused(times: list[float]) -> None:
    """A measurement with a time that is not positive is refused with a reason."""
    with pytest.raises(MeasurementError, match="cannot resolve"):
        summarise(times)


def test_wrong_results_are_named() -> None:
    """Integers must be equal, floats nearly."""
    check_result(np.array([1.0001], np.float32), np.array([1.0], np.float32), 1e-3)
    with pytest.raises(MeasurementError, match="result 1 is 3, not 2"):
        check_result(np.array([1, 3], np.int32), np.array([1, 2], np.int32))


def test_rates_and_differences_carry_their_intervals() -> None:
    """The slowest run is the low end of a rate; a difference is less sure than its parts."""
    rate = summarise([1.0, 2.0, 4.0]).as_rate(8.0, "copy")
    assert rate.low is not None
    assert rate.high is not None
    assert rate.value == pytest.approx(4.0)
    assert rate.low < rate.value < rate.high
    noisy = summarise([2.9, 3.0, 3.1])
    difference = noisy.beyond(summarise([0.9, 1.0, 1.1]), "barrier", scale=10)
    assert difference.value == pytest.approx(20.0)
    assert difference.high is not None
    assert difference.high - difference.value > 10 * (noisy.high - noisy.median)
    with pytest.raises(MeasurementError, match="below the noise"):
        noisy.beyond(noisy, "barrier")
