"""The sampling-based linear model: t(N) = t(P1) + (t(P2) - t(P1)) / (P2 - P1) * (N - P1).

Source: sampling-svr, section 5.1. The paper takes one time at each of two points, the line
through them has an intercept: what a launch costs beside its work-groups (start, cold caches,
waking threads). Here each point is a set of launches spread through the index space, and the
intercept is estimated with a prior instead of being free. With a flat prior the result is the
paper's formula; with none at all it is the pooled rate, which is precise but blind to what every
launch pays once. The prior lets the data decide: launches that agree about the intercept give the
slope, launches that disagree give the rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import NormalDist, median

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Interval
from kernelcast.records.samples import (
    PILOT_WINDOW,
    TWO_SIZES,
    SampleRun,
    TimedLaunch,
    find_intercepts,
    pool_moments,
)

FloatArray = npt.NDArray[np.float64]
# Prior scale of the intercept, in units of a shorter launch's time.
_SCALE = 0.25
# Largest share of a shorter launch's time that the intercept may be.
_LARGEST_SHARE = 0.9
# What noise of whole runs and the line's own error add to the samples' spread: the least with which
# 90 % intervals hold 90 % of the shipped rows of each device, those of today's sampler
# (measured with version 0.2, also on devices that it was not set on).
BEYOND_SPREAD = 0.14


class LaunchArrays:
    """Timed launches as arrays of shape (n_launches,)."""

    def __init__(self, timed: Sequence[TimedLaunch]) -> None:
        # Work of each, in work-groups of the mean work.
        self.counts: FloatArray = np.array([one.mean_work_groups for one in timed])
        self.times: FloatArray = np.array([one.duration_s for one in timed])
        self.windows = np.array([one.window for one in timed])
        # Which launches belong to the second sampling point: those near the largest size.
        self.is_long = self.counts * TWO_SIZES > self.counts.max()
        # A window of four rows of work-groups in three parts: two rows, one, and one.
        if (self.windows == self.windows[0]).all() and self.counts.max() <= 2.0 * self.counts.min():
            self.is_long = np.ones(len(self.counts), dtype=np.bool_)
        # Which belong to the first: those near the next largest size, or all if there is one.
        largest = self.counts[~self.is_long].max(initial=0.0)
        is_near = ~self.is_long & (self.counts * TWO_SIZES > largest)
        self.is_short = is_near if largest else self.is_long

    @property
    def has_two_sizes(self) -> bool:
        return not self.is_long.all()

    def net_of(self, intercept_s: float) -> FloatArray:
        """Return what launches took beside what each paid once, in seconds; always positive."""
        return np.maximum(self.times - intercept_s, 0.05 * self.times)


def _middle(values: FloatArray) -> tuple[float, float]:
    middle = float(median(values))
    deviation = 1.4826 * float(median(np.abs(values - middle)))
    if len(values) < 3:  # too few to tell: the whole spread, at least a tenth
        deviation = max(float(np.ptp(values)), 0.1 * abs(middle))
    # A median's standard error over a mean's, for normal noise.
    return middle, 1.25 * deviation / math.sqrt(len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFit:
    seconds: float
    standard_error_s: float
    degrees_of_freedom: int
    """Launches behind the standard error, less one."""
    intercept_s: float
    """What each launch costs beside its work-groups, in seconds."""
    rate_s: float
    """Seconds per work-group, mean over the index space."""
    p1: int
    p2: int
    """Work-groups of a shorter and of a longer launch; where all launches are of one size, of one
    launch and of all together."""
    two_point_s: float | None
    """The paper's formula on the means of both; None without two sizes."""
    pooled_s: float
    lifted_s: float = 0.0
    """Part of `seconds` that the line does not give: beyond the samples a launch is no faster than
    DRAM takes what it moves."""


def two_point(t1_s: float, t2_s: float, p1: float, p2: float, n: float) -> float:
    """Extrapolate from two sampling points, as the paper does."""
    return t1_s + (t2_s - t1_s) / (p2 - p1) * (n - p1)


@lru_cache(maxsize=32)  # the estimate and the piece of evidence want the same line
def fit_linear(run: SampleRun) -> LinearFit:
    timed = run.launches
    if not timed:
        raise InputError("the sample run holds no launches; sample at least one window")
    # The launches of windows; the pilot's last one where there are none.
    windows = LaunchArrays([one for one in timed if one.window != PILOT_WINDOW] or timed[-1:])
    pilot = sum(one.mean_work_groups for one in timed if one.window == PILOT_WINDOW)
    if len(windows.counts) < 3 and pilot > 0 and 2 * pilot > windows.counts.sum():
        # The pilot has seen more than the few windows there are: pool every launch.
        launches = LaunchArrays(timed)
        intercept_s, intercept_error, rate_s, rate_error, degrees = _fit_few(launches, run)
    else:
        launches = windows
        intercept_s, intercept_error = _fit_intercept(launches, run)
        net = launches.net_of(intercept_s)
        rate_s, rate_error, degrees = _fit_rate(net, launches, is_even=run.is_even)
    total = run.ndrange.work_group_count
    # The paper's points, shorter and longer launches or two parts, and what follows from them.
    counts, times, two_point_s = windows.counts, windows.times, 0.0
    (p1, p2), (t1, t2) = (float(counts[0]), float(counts.sum())), (0.0, 0.0)
    if windows.has_two_sizes:
        # Means per launch, so that both points hold one intercept.
        sizes = (windows.is_short, windows.is_long)
        (p1, p2), (t1, t2) = ([float(of[one].mean()) for one in sizes] for of in (counts, times))
    elif len(counts) > 1 and (windows.windows == windows.windows[0]).all():
        (p1, p2), (t1, t2) = (np.cumsum(of[:2]).tolist() for of in (counts, times))
    if t1:
        two_point_s = two_point(t1, t2, p1, p2, total)
    smaller, larger = max(1, round(p1)), max(1, round(p2))
    # What the intercept is wrong by, every launch's rate is wrong by at once.
    shift = intercept_error * len(launches.counts) / launches.counts.sum()
    lifted_s = max(run.least_rate_s - rate_s, 0.0) * max(total - larger, 0)
    # The whole launch wakes threads that samples, one behind the other, find awake.
    paid_once_s = max(intercept_s, run.launch_overhead_s)
    return LinearFit(
        seconds=paid_once_s + run.imbalance * rate_s * total + lifted_s,
        standard_error_s=run.imbalance * total * math.hypot(rate_error, shift),
        degrees_of_freedom=degrees,
        intercept_s=intercept_s,
        rate_s=rate_s,
        p1=smaller,
        p2=larger,
        two_point_s=two_point_s if two_point_s > 0 else None,
        pooled_s=total * float(launches.times.sum() / launches.counts.sum()),
        lifted_s=lifted_s,
    )


def _fit_few(launches: LaunchArrays, run: SampleRun) -> tuple[float, float, float, float, int]:
    shortest_s = float(launches.times.min())
    # Launches worth timing are made to last about five times what they pay once.
    expected = min(run.launch_overhead_s, 0.2 * shortest_s)
    # Of seconds in units of the shortest launch, so that sums neither overflow nor vanish.
    times = launches.times / shortest_s
    # Relative noise of a launch while there are too few to tell.
    weights = (0.1 * times) ** -2
    columns = np.column_stack([np.ones_like(times), launches.counts / launches.counts.mean()])
    precision = columns.T @ (weights[:, None] * columns)
    told = columns.T @ (weights * times)
    precision[0, 0] += _SCALE**-2
    told[0] += _SCALE**-2 * expected / shortest_s
    covariance = np.linalg.inv(precision)
    # The shortest launch may be of the pilot, which begins with next to no work.
    intercept_s = shortest_s * float(np.clip((covariance @ told)[0], 0.0, 0.9))
    net = launches.net_of(intercept_s)
    rate_s = float(net.sum() / launches.counts.sum())
    rate_error = _spread(net / launches.counts, launches.counts, rate_s, 0.3 * rate_s)
    error = shortest_s * math.sqrt(covariance[0, 0])
    return intercept_s, error, rate_s, rate_error, max(len(launches.counts) - 1, 1)


def _fit_intercept(launches: LaunchArrays, run: SampleRun) -> tuple[float, float]:
    short_s = float(median(launches.times[launches.is_short]))
    # The pilot's smallest launches pay it as well: PoCL's thread that waits no longer sleeps pays
    # half of what an empty launch took.
    shortest_s = min(one.duration_s for one in run.launches)
    overhead_s = min(run.launch_overhead_s, _LARGEST_SHARE * short_s, shortest_s)
    if not launches.has_two_sizes:
        return overhead_s, 0.0
    if run.is_even:
        short, long = launches.is_short, launches.is_long
        n1, n2 = median(launches.counts[short]), median(launches.counts[long])
        rate1, error1 = _middle(launches.times[short] / launches.counts[short])
        rate2, error2 = _middle(launches.times[long] / launches.counts[long])
        reach = n1 * n2 / (n2 - n1)
        found, error = float(reach * (rate1 - rate2)), float(reach * math.hypot(error1, error2))
    else:
        by_window = find_intercepts([one for one in run.launches if one.window != PILOT_WINDOW])
        if not by_window:
            return overhead_s, 0.0
        found, error = _middle(np.array(by_window))
    scale = _SCALE * short_s
    weight = scale**2 / (scale**2 + error**2)
    intercept = overhead_s + weight * (found - overhead_s)
    return float(np.clip(intercept, 0.0, _LARGEST_SHARE * short_s)), math.sqrt(weight) * error


def fit_moments(runs: Sequence[SampleRun]) -> LinearFit:
    """Put the lines of several moments together: the geometric mean of their times."""
    fits = [fit_linear(one) for one in pool_moments(runs)]
    if len(fits) == 1:
        return fits[0]
    told = np.log([one.seconds for one in fits])
    seconds = float(np.exp(told.mean()))
    within = float(np.mean([(one.standard_error_s / one.seconds) ** 2 for one in fits]))
    error = math.sqrt((within + float(told.var(ddof=1))) / len(fits))
    return replace(
        fits[-1],
        seconds=seconds,
        standard_error_s=seconds * error,
        degrees_of_freedom=sum(one.degrees_of_freedom for one in fits),
        pooled_s=float(np.exp(np.mean(np.log([one.pooled_s for one in fits])))),
    )


def _fit_rate(
    net: FloatArray, launches: LaunchArrays, *, is_even: bool
) -> tuple[float, float, int]:
    if not is_even:
        # Average over windows: each stands for a stratum of the same size.
        places = np.unique(launches.windows, return_inverse=True)[1]
        rates = np.bincount(places, net) / np.bincount(places, launches.counts)
        rate = float(rates.mean())
        if len(rates) < 2:
            return rate, 0.3 * rate, 1
        # Neighbours' differences leave a trend out, which strata sum without error.
        variance = float(np.mean(np.diff(rates) ** 2)) / 2
        return rate, math.sqrt(variance / len(rates)), len(rates) - 1
    # Pool all launches but those that were disturbed; long ones weigh more. Launches of even work
    # this much above the lower quartile of the longer ones were disturbed: the machine only ever
    # lengthens a launch.
    rates = net / launches.counts
    calm = rates <= 1.1 * np.quantile(rates[launches.is_long], 0.25)
    rate = float(np.average(rates[calm], weights=launches.counts[calm]))
    # Beyond this, in units of the middle rate, a disturbance tells nothing of the others' spread.
    order = np.argsort(rates)
    cumulated = np.cumsum(launches.counts[order])
    near = rates <= 1.5 * float(rates[order][np.searchsorted(cumulated, 0.5 * cumulated[-1])])
    error = _spread(rates[near], launches.counts[near], rate, 0.1 * rate)
    return rate, error, max(int(near.sum()) - 1, 1)


def _spread(rates: FloatArray, counts: FloatArray, rate: float, of_one: float) -> float:
    """Return the standard error of a pooled rate, the one that is given for a single launch."""
    if len(rates) < 2:
        return of_one
    shares = counts / counts.sum()
    effective = 1 / float((shares**2).sum())
    variance = float((shares * (rates - rate) ** 2).sum())
    return math.sqrt(variance / max(effective - 1, 1))


def make_interval(fit: LinearFit, *, coverage: float) -> Interval:
    """Turn a fit into an interval: the samples' spread and the noise of whole runs together."""
    relative = math.hypot(fit.standard_error_s / fit.seconds, BEYOND_SPREAD)
    factor = math.exp(min(student_quantile(coverage, fit.degrees_of_freedom) * relative, 5.0))
    return Interval.within(factor, fit.seconds, coverage)


def student_quantile(coverage: float, degrees: int) -> float:
    """Return the two-sided quantile of Student's t (Cornish-Fisher expansion of the normal one)."""
    z = NormalDist().inv_cdf((1 + coverage) / 2)
    degrees = max(degrees, 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2
