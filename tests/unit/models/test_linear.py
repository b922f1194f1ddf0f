import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.linear import fit_linear, fit_moments, make_interval
from kernelcast.records.samples import PILOT_WINDOW, SampleRun
from support.builders import make_sample_run

WORK_GROUPS = 100_000
RATES = st.floats(1e-8, 1e-3)
DURATIONS = st.floats(1e-6, 1.0)
SAMPLES = st.tuples(st.integers(0, 5), st.integers(1, 100), DURATIONS)


def line_run(
    cost_s: float, rate_s: float, *, is_even: bool = True, factors: tuple[float, ...] = ()
) -> SampleRun:
    """Make a run of four short and four long launches on the line t = c + r * n, disturbed."""
    sizes = [(window, count) for window in range(4) for count in (60, 240)]
    scale = (*factors, *(1.0 for _ in range(len(sizes) - len(factors))))
    return make_sample_run(
        [
            (window, count, (cost_s + rate_s * count) * factor)
            for (window, count), factor in zip(sizes, scale, strict=True)
        ],
        work_groups=WORK_GROUPS,
        launch_overhead_s=cost_s / 2,
        is_even=is_even,
    )


@pytest.mark.parametrize("is_even", [True, False])
@given(rate_s=RATES, share=st.floats(0.0, 0.5))
def test_exact_on_a_line(rate_s: float, share: float, is_even: bool) -> None:
    """Predicts t(N) exactly where launches lie on a line, whatever its intercept."""
    cost_s = share * 60 * rate_s
    fit = fit_linear(line_run(cost_s, rate_s, is_even=is_even))
    assert fit.seconds == pytest.approx(cost_s + rate_s * WORK_GROUPS, rel=1e-6)
    assert fit.two_point_s == pytest.approx(cost_s + rate_s * WORK_GROUPS, rel=1e-6)
    assert fit.rate_s == pytest.approx(rate_s, rel=1e-6)


def test_uneven_work_averages_over_the_strata() -> None:
    """Gives each window the same weight where work is uneven: each stands for a stratum."""
    run = make_sample_run(
        [(w, count, count * rate_s) for w, rate_s in enumerate((1e-6, 3e-6, 5e-6, 7e-6))
         for count in (10, 30)],
        work_groups=1000, launch_overhead_s=1e-9, is_even=False,
    )  # fmt: skip
    assert fit_linear(run).seconds == pytest.approx(1000 * 4e-6, rel=1e-3)


@pytest.mark.parametrize("hit", range(8))
def test_a_spike_hardly_moves_even_work(hit: int) -> None:
    """Stays within 3 % where one launch of even work took five times as long."""
    factors = (1.0,) * hit + (5.0,)
    fit = fit_linear(line_run(1e-5, 1e-6, factors=factors))
    assert fit.seconds == pytest.approx(1e-5 + 1e-6 * WORK_GROUPS, rel=0.03)


def test_a_single_launch_is_enough() -> None:
    """Answers from one launch, with a wider interval than from many."""
    one = fit_linear(make_sample_run([(PILOT_WINDOW, 10, 1e-3)], work_groups=1000))
    assert one.seconds == pytest.approx(0.1, rel=0.02)
    many = fit_linear(line_run(0.0, 1e-4))
    narrow, wide = (make_interval(fit, coverage=0.9) for fit in (many, one))
    assert wide.high / wide.low > narrow.high / narrow.low


@given(
    samples=st.lists(SAMPLES, min_size=1, max_size=12),
    is_even=st.booleans(),
    overhead_s=st.floats(1e-7, 1e-2),
    coverages=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)),
)  # fmt: skip
def test_intervals_are_sane_for_any_samples(
    samples: list[tuple[int, int, float]],
    is_even: bool,
    overhead_s: float,
    coverages: tuple[float, float],
) -> None:
    """Gives positive, ordered, finite intervals, and never a narrower one for wider coverage."""
    run = make_sample_run(samples, work_groups=5000, launch_overhead_s=overhead_s, is_even=is_even)
    fit = fit_linear(run)
    narrow, wide = (make_interval(fit, coverage=coverage) for coverage in sorted(coverages))
    assert wide.low <= narrow.low <= narrow.seconds <= narrow.high <= wide.high
    assert narrow.seconds == wide.seconds == fit.seconds
    assert fit.two_point_s is None or fit.two_point_s > 0


@pytest.mark.parametrize(("coverage", "normal"), [(0.5, 0.6745), (0.9, 1.6449), (0.95, 1.96)])
def test_intervals_hold_at_least_the_noise_floor(coverage: float, normal: float) -> None:
    """Is never narrower than what whole runs differ by, 13 % at one standard deviation."""
    interval = make_interval(fit_linear(line_run(1e-5, 1e-6)), coverage=coverage)
    assert math.log(interval.high / interval.seconds) >= normal * 0.13
    assert interval.coverage == coverage


@pytest.mark.parametrize("factor", [1.3, 3.0])
@given(rate_s=RATES)
def test_what_was_disturbed_lengthens_nothing(factor: float, rate_s: float) -> None:
    """A long launch that the machine slowed down does not count; it widens the error."""
    calm = fit_linear(line_run(0.0, rate_s))
    fit = fit_linear(line_run(0.0, rate_s, factors=(1.0, factor)))
    assert fit.seconds == pytest.approx(calm.seconds, rel=0.02)
    if factor < 1.5:
        assert fit.standard_error_s > calm.standard_error_s + 0.01 * calm.seconds


def test_few_windows_are_joined_by_the_pilot() -> None:
    """Pools what the pilot saw where one or two windows would stand for the whole."""
    pilot = [(PILOT_WINDOW, 100, 1e-3), (PILOT_WINDOW, 200, 10e-3)]
    windows = [(0, 100, 1e-3), (1, 100, 1e-3), (2, 100, 1e-3)]
    make = partial(make_sample_run, work_groups=WORK_GROUPS, launch_overhead_s=0.0, is_even=False)
    few, enough = (fit_linear(make([*pilot, *windows[:count]])) for count in (2, 3))
    assert few.rate_s == pytest.approx(13e-3 / 500)
    assert few.standard_error_s > enough.standard_error_s
    assert enough.rate_s == pytest.approx(1e-5)


@given(told=st.floats(0.0, 5.0))
def test_a_handful_on_a_line_is_believed(told: float) -> None:
    """Finds what each launch pays once from a few, whatever the pilot took it for."""
    sizes = [(PILOT_WINDOW, 10), (PILOT_WINDOW, 40), (0, 60)]
    run = make_sample_run(
        [(window, count, 1e-3 + 1e-4 * count) for window, count in sizes],
        work_groups=WORK_GROUPS, launch_overhead_s=told * 1e-3,
    )  # fmt: skip
    assert fit_linear(run).seconds == pytest.approx(1e-3 + 1e-4 * WORK_GROUPS, rel=0.08)


@pytest.mark.parametrize("is_even", [True, False])
def test_no_launch_pays_more_once_than_the_shortest_took(is_even: bool) -> None:
    """Leaves to work-groups what is beyond the shortest launch; the whole pays for its start."""
    samples = [(PILOT_WINDOW, 1, 6e-6), *((window, 96, 16e-6) for window in range(4))]
    run = make_sample_run(samples, work_groups=960, launch_overhead_s=12e-6, is_even=is_even)
    assert fit_linear(run).seconds == pytest.approx(12e-6 + 960 * 10e-6 / 96, rel=1e-6)


@pytest.mark.parametrize(
    ("is_even", "places", "mean"), [(False, 1, 5.0), (False, 4, 3.0), (True, 1, 3.0)]
)
def test_few_places_of_uneven_work_are_one_sample(is_even: bool, places: int, mean: float) -> None:
    """Moments that met other work add up; those of many places, or of even work, do not."""
    moments = [
        make_sample_run(
            [(places * number + place, 10, 10 * rate_s) for place in range(places)],
            work_groups=1000, launch_overhead_s=0.0, is_even=is_even,
        )
        for number, rate_s in enumerate((1e-6, 9e-6))
    ]  # fmt: skip
    assert fit_moments(moments).seconds == pytest.approx(1000 * mean * 1e-6)
