"""What each launch of a sample run pays once: the intercept of the line through them.

Start, cold caches, waking threads. Neither free, as in the paper's line through two points, nor
fixed: a prior lets launches that agree about it speak, and those that disagree be averaged.
"""

import math
from statistics import median

import numpy as np

from kernelcast.models.launch_arrays import FloatArray, LaunchArrays
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, find_intercepts

# Prior scale of the intercept, in units of a shorter launch's time.
_SCALE = 0.25
# Largest share of a shorter launch's time that the intercept may be.
_LARGEST_SHARE = 0.9
# The same where the shortest launch may be of the pilot, which begins with next to no work.
_LARGEST_OF_PILOT = 0.9
# Launches worth timing are made to last about five times what they pay once.
_LIKELY_SHARE = 0.2
# Relative noise of a launch while there are too few to tell.
_NOISE = 0.1
# A median's standard error over a mean's, for normal noise.
_MEDIAN_FACTOR = 1.25
_MAD_TO_DEVIATION = 1.4826


def fit_intercept(launches: LaunchArrays, run: SampleRun) -> tuple[float, float]:
    """Fit the intercept to launches of windows."""
    short_s = float(median(launches.times[launches.is_short]))
    # The pilot's smallest launches pay it as well: PoCL's thread that waits no longer sleeps pays
    # half of what an empty launch took.
    shortest_s = min(one.duration_s for one in run.launches)
    overhead_s = min(run.launch_overhead_s, _LARGEST_SHARE * short_s, shortest_s)
    if not launches.has_two_sizes:
        return overhead_s, 0.0
    if run.is_even:
        found, error = _fit_by_medians(launches)
    else:
        by_window = find_intercepts([one for one in run.launches if one.window != PILOT_WINDOW])
        if not by_window:
            return overhead_s, 0.0
        found, error = _middle(np.array(by_window))
    scale = _SCALE * short_s
    weight = scale**2 / (scale**2 + error**2)
    intercept = overhead_s + weight * (found - overhead_s)
    return float(np.clip(intercept, 0.0, _LARGEST_SHARE * short_s)), math.sqrt(weight) * error


def fit_intercept_of_few(launches: LaunchArrays, overhead_s: float) -> tuple[float, float]:
    """Fit the intercept to a handful of launches of any sizes, the pilot's among them.

    By least squares of relative errors, with the prior as one more observation. Two launches at
    two places differ by their work as well: taken at its word, their difference is an intercept
    of anything between nothing and the launch itself.
    """
    shortest_s = float(launches.times.min())
    expected = min(overhead_s, _LIKELY_SHARE * shortest_s)
    # Of seconds in units of the shortest launch, so that sums neither overflow nor vanish.
    times = launches.times / shortest_s
    weights = (_NOISE * times) ** -2
    columns = np.column_stack([np.ones_like(times), launches.counts / launches.counts.mean()])
    precision = columns.T @ (weights[:, None] * columns)
    told = columns.T @ (weights * times)
    precision[0, 0] += _SCALE**-2
    told[0] += _SCALE**-2 * expected / shortest_s
    covariance = np.linalg.inv(precision)
    found = float((covariance @ told)[0])
    error = shortest_s * math.sqrt(covariance[0, 0])
    return shortest_s * float(np.clip(found, 0.0, _LARGEST_OF_PILOT)), error


def _fit_by_medians(launches: LaunchArrays) -> tuple[float, float]:
    """Draw the line through the medians of the shorter and of the longer launches."""
    short = launches.is_short
    long = launches.is_long
    n1, n2 = median(launches.counts[short]), median(launches.counts[long])
    rate1, error1 = _middle(launches.times[short] / launches.counts[short])
    rate2, error2 = _middle(launches.times[long] / launches.counts[long])
    reach = n1 * n2 / (n2 - n1)
    return float(reach * (rate1 - rate2)), float(reach * math.hypot(error1, error2))


def _middle(values: FloatArray) -> tuple[float, float]:
    """Give the median and its standard error."""
    middle = float(median(values))
    deviation = _MAD_TO_DEVIATION * float(median(np.abs(values - middle)))
    if len(values) < 3:  # too few to tell: the whole spread, at least a tenth
        deviation = max(float(np.ptp(values)), 0.1 * abs(middle))
    return middle, _MEDIAN_FACTOR * deviation / math.sqrt(len(values))
