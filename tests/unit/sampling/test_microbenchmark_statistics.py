import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import MeasurementError
from kernelcast.sampling.microbenchmarks.reference import read_spread
from kernelcast.sampling.microbenchmarks.statistics import (
    as_rate,
    check_result,
    difference_trait,
    fit_line,
    is_narrow,
    proves_work,
    summarise,
)

_TIMES = st.lists(st.floats(1e-7, 1e3), min_size=1, max_size=40)


@given(_TIMES)
def test_interval_holds_median_and_is_positive(times: list[float]) -> None:
    """The interval of any positive times is positive and holds their median."""
    found = summarise(times)
    assert 0 < found.low <= found.median <= found.high
    assert found.minimum <= found.median


def test_interval_of_planted_noise_is_that_of_the_paper() -> None:
    """3 % noise gives an interval of 1.96 standard deviations on either side of the mean."""
    times = np.random.default_rng(1).normal(1.0, 0.03, 4000)
    found = summarise(list(times))
    assert found.low == pytest.approx(1 - 1.96 * 0.03, abs=0.005)
    assert found.high == pytest.approx(1 + 1.96 * 0.03, abs=0.005)


def test_median_stands_where_a_tenth_of_the_runs_were_disturbed() -> None:
    """Spikes in a tenth of the runs move the median by less than the noise."""
    rng = np.random.default_rng(2)
    times = rng.normal(1.0, 0.01, 25)
    times[:3] *= 5
    assert summarise(list(times)).median == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("times", [[], [0.0], [1.0, -1.0], [math.nan]])
def test_times_that_are_no_times_are_refused(times: list[float]) -> None:
    """A measurement with a time that is not positive is refused with a reason."""
    with pytest.raises(MeasurementError, match="cannot resolve"):
        summarise(times)


def test_narrow_after_enough_runs_only() -> None:
    """3 % noise is within 1 % of the mean after 100 runs, not after 5."""
    times = list(np.random.default_rng(3).normal(1.0, 0.03, 100))
    assert is_narrow(times, 0.01)
    assert not is_narrow(times[:5], 0.01)
    assert not is_narrow(times[:1], 0.01)


def test_rate_inverts_its_interval() -> None:
    """The slowest run gives the low end of a rate."""
    rate = as_rate(summarise([1.0, 2.0, 4.0]), 8.0, "copy")
    assert rate.value == pytest.approx(4.0)
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < rate.value < rate.high
    assert rate.origin == "copy"


def test_difference_adds_the_deviations_of_both() -> None:
    """The interval of a difference is wider than that of either part."""
    noisy = summarise([2.9, 3.0, 3.1])
    found = difference_trait(noisy, summarise([0.9, 1.0, 1.1]), "barrier", scale=10)
    assert found.value == pytest.approx(20.0)
    assert found.high is not None
    assert found.high - found.value > 10 * (noisy.high - noisy.median)


def test_difference_below_the_noise_is_refused() -> None:
    """What takes no longer with it than without has no cost to report."""
    with pytest.raises(MeasurementError, match="below the noise"):
        difference_trait(summarise([1.0]), summarise([1.0]), "barrier")


@given(st.floats(0, 0.1), st.floats(1e-9, 1.0))
def test_line_is_recovered(overhead: float, slope: float) -> None:
    """A line through exact points is found again."""
    counts = [100, 200, 400]
    intercept, found = fit_line(counts, [overhead * slope * 100 + slope * n for n in counts])
    assert found == pytest.approx(slope, rel=1e-6)
    assert intercept == pytest.approx(overhead * slope * 100, abs=slope * 1e-3)


@given(st.floats(-0.1, 0.1), st.floats(-0.1, 0.1), st.floats(-0.1, 0.1))
def test_linear_times_prove_work_under_noise(a: float, b: float, c: float) -> None:
    """Work whose time grows with it is believed at 10 % noise."""
    proves_work({100: 1 + a, 200: 2 * (1 + b), 400: 4 * (1 + c)})


@pytest.mark.parametrize(
    "times", [{100: 1.0, 200: 1.0, 400: 1.1}, {100: 1.0, 200: 1.4, 400: 2.0}, {100: 1.0}]
)
def test_removed_work_is_found_out(times: dict[int, float]) -> None:
    """Times that hardly depend on the iterations prove nothing."""
    with pytest.raises(MeasurementError):
        proves_work(times)


def test_wrong_results_are_named() -> None:
    """A wrong result is named with its place; integers must be equal, floats nearly."""
    check_result(np.array([1.0001], np.float32), np.array([1.0], np.float32))
    with pytest.raises(MeasurementError, match="result 1 is 3, not 2"):
        check_result(np.array([1, 3], np.int32), np.array([1, 2], np.int32))


def test_drift_widens_the_interval() -> None:
    """What drifts from minute to minute is part of the interval, even where runs agree."""
    found = summarise([1.0] * 10, spread=0.03)
    assert found.low == pytest.approx(0.97, abs=1e-3)
    assert found.high == pytest.approx(1.03, abs=1e-3)


def test_spread_of_planted_drift() -> None:
    """A speed that drifts by 1.5 % beneath noise of 0.5 % gives a spread of twice that."""
    rng = np.random.default_rng(5)
    speeds = np.repeat(rng.normal(1.0, 0.015, 60), 20)
    spread = read_spread(list(speeds * rng.normal(1.0, 0.005, len(speeds))))
    assert spread == pytest.approx(1.96 * 0.015, rel=0.25)
