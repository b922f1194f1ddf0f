"""The sampling-based linear model: t(N) = t(P1) + (t(P2) - t(P1)) / (P2 - P1) * (N - P1).

Source: sampling-svr, section 5.1. The paper takes one time at each of two points. Here each
point is the sum over windows spread through the index space, and the line's intercept (what a
launch costs beside its work-groups: start, cold caches, waking threads) is estimated with a prior
instead of being free. With a flat prior the result is the paper's formula; with none at all it is
the pooled rate, which is precise but blind to what every launch pays once. The prior lets the
data decide: windows that agree about the intercept get the slope, windows that disagree get the
rate.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Interval
from kernelcast.records.samples import SampleRun, TimedLaunch

FloatArray = npt.NDArray[np.float64]

# Prior scale of the intercept in units of a shorter launch's time.
_INTERCEPT_SCALE = 0.25
# Repeated whole runs differ by a few percent on every machine we know (DESIGN 3).
_NOISE_FLOOR = 0.03
_SUSPICIOUS_RATIO = 1.25
_SUSPICIOUS_DEVIATIONS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFit:
    """The line through the samples.

    Parameters
    ----------
    seconds : float
        Predicted time of the whole launch.
    standard_error_s : float
        Its standard error from the windows' spread, in seconds.
    intercept_s : float
        What each launch costs beside its work-groups, in seconds.
    rate_s : float
        Seconds per work-group, mean over the strata.
    p1, p2 : int
        Work-groups in all shorter and in all longer launches.
    two_point_s : float or None
        The paper's formula on the sums over all windows; None without two points.
    pooled_s : float
        Time by the pooled rate alone.
    """

    seconds: float
    standard_error_s: float
    intercept_s: float
    rate_s: float
    p1: int
    p2: int
    two_point_s: float | None
    pooled_s: float


def two_point(t1_s: float, t2_s: float, p1: float, p2: float, n: float) -> float:
    """Extrapolate from two sampling points, as the paper does.

    Parameters
    ----------
    t1_s, t2_s : float
        Times at the sampling points, in seconds.
    p1, p2 : float
        Work-groups at the sampling points, ``p1 < p2``.
    n : float
        Work-groups to predict for.

    Returns
    -------
    float, in seconds

    Examples
    --------
    >>> two_point(0.2, 0.3, 2, 3, 100)
    10.0
    """
    return t1_s + (t2_s - t1_s) / (p2 - p1) * (n - p1)


def fit_linear(run: SampleRun) -> LinearFit:
    """Fit the line to a sample run.

    Parameters
    ----------
    run : SampleRun
        Launches in windows; those of the pilot are left out where windows exist.

    Returns
    -------
    LinearFit

    Raises
    ------
    InputError
        If the run has no launches.
    """
    windows = _group(run.launches)
    if not windows:
        msg = "the sample run holds no launches; sample at least one window"
        raise InputError(msg)
    total = run.ndrange.work_group_count
    intercept, spread = _fit_intercept(windows, run.launch_overhead_s)
    counts = np.array([sum(n for n, _ in window) for window in windows], dtype=float)
    times = np.array([sum(t for _, t in window) for window in windows])
    launches = np.array([len(window) for window in windows], dtype=float)
    rates = (times - intercept * launches) / counts
    rate = float(rates.mean())
    intercept_error = spread * float((launches / counts).mean())
    error = total * math.hypot(_standard_error(rates), intercept_error)
    pooled = float((times / counts).mean()) * total
    p1, p2, two = _paper_points(windows, total)
    return LinearFit(
        seconds=intercept + rate * total,
        standard_error_s=error,
        intercept_s=intercept,
        rate_s=rate,
        p1=p1,
        p2=p2,
        two_point_s=two,
        pooled_s=pooled,
    )


def _group(launches: Sequence[TimedLaunch]) -> list[list[tuple[int, float]]]:
    """Group launches by window, shorter first; the pilot stands in where it is alone."""
    groups: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for launch in launches:
        groups[launch.window].append((launch.box.work_group_count, launch.duration_s))
    pilot = groups.pop(-1, [])
    if not groups and pilot:
        return [[max(pilot)]]
    return [sorted(group) for _, group in sorted(groups.items())]


def _fit_intercept(
    windows: Sequence[Sequence[tuple[int, float]]], overhead_s: float
) -> tuple[float, float]:
    """Give the launches' intercept and its uncertainty, both in seconds."""
    pairs = [(w[0], w[-1]) for w in windows if w[-1][0] > w[0][0]]
    shortest = float(np.median([w[0][1] for w in windows]))
    scale = _INTERCEPT_SCALE * shortest
    if len(pairs) < 2:
        return min(overhead_s, 0.5 * shortest), 0.0
    found = np.array([(t1 * n2 - t2 * n1) / (n2 - n1) for (n1, t1), (n2, t2) in pairs])
    middle = float(np.median(found))
    # 1.25: a median's standard error over a mean's, for normal noise
    error = 1.25 * 1.4826 * float(np.median(np.abs(found - middle))) / math.sqrt(len(found))
    weight = scale**2 / (scale**2 + error**2)
    intercept = overhead_s + weight * (middle - overhead_s)
    return float(np.clip(intercept, 0.0, 0.9 * shortest)), math.sqrt(weight) * error


def _standard_error(rates: FloatArray) -> float:
    """Standard error of the mean of one sample per stratum, from neighbours' differences.

    Differences of neighbours leave a trend over the index space out: strata sum it exactly.
    """
    if len(rates) < 2:
        return 0.1 * float(rates[0])
    variance = float(np.mean(np.diff(rates) ** 2)) / 2
    return math.sqrt(variance / len(rates))


def _paper_points(
    windows: Sequence[Sequence[tuple[int, float]]], total: int
) -> tuple[int, int, float | None]:
    """Give P1, P2 and the paper's prediction from the sums of shorter and longer launches."""
    shorter, longer = zip(*((w[0], w[-1]) for w in windows), strict=True)
    p1, p2 = sum(n for n, _ in shorter), sum(n for n, _ in longer)
    if p2 <= p1:
        half = max(1, len(windows) * 2 // 5)
        return sum(n for n, _ in shorter[:half]), sum(n for n, _ in shorter[half:]), None
    t1, t2 = sum(t for _, t in shorter), sum(t for _, t in longer)
    # Each sum holds one intercept per window; the slope does not see them.
    return p1, p2, two_point(t1, t2, p1, p2, total)


def make_interval(fit: LinearFit, *, windows: int, coverage: float) -> Interval:
    """Turn a fit into an interval: the windows' spread and the noise of whole runs together."""
    relative = math.hypot(fit.standard_error_s / fit.seconds, _NOISE_FLOOR)
    factor = math.exp(_quantile(coverage, max(windows - 1, 1)) * relative)
    return Interval(
        seconds=fit.seconds,
        low=fit.seconds / factor,
        high=fit.seconds * factor,
        coverage=coverage,
    )


def _quantile(coverage: float, degrees: int) -> float:
    """Two-sided quantile of Student's t (Cornish-Fisher expansion of the normal quantile)."""
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + coverage) / 2)
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + g1 / degrees + g2 / degrees**2
