"""Intervals from a few numbers: prior knowledge of noise and what repeats show of it."""

import math
from collections.abc import Sequence
from statistics import NormalDist, median

MAD_TO_DEVIATION = 1.4826
LEAST_DEVIATION = 0.01
"""Repeats on another day differ by at least so much, as a standard deviation of logarithms."""
USUAL_DEVIATION = 0.05
"""What single runs differ by where nothing is known of a launch: whole runs were found to differ by
3 to 10 %, half their 10-90 % spread, which is 1.28 deviations."""
DEVIATION_TO_NOISE = NormalDist().inv_cdf(0.9)
"""Half the 10-90 % spread of normal logarithms, in deviations."""
# So many observations' worth is the prior knowledge of the deviation.
_PRIOR_OBSERVATIONS = 3


def measure_deviation(logs: Sequence[float], noises: Sequence[float]) -> tuple[float, int]:
    """Give the deviation of single runs, and its degrees of freedom."""
    prior = USUAL_DEVIATION
    if noises:
        prior = max(median(noises) / DEVIATION_TO_NOISE, LEAST_DEVIATION)
    middle = median(logs)
    found = MAD_TO_DEVIATION * median([abs(one - middle) for one in logs])
    free = len(logs) - 1
    variance = (_PRIOR_OBSERVATIONS * prior**2 + free * found**2) / (_PRIOR_OBSERVATIONS + free)
    return max(math.sqrt(variance), LEAST_DEVIATION), _PRIOR_OBSERVATIONS + free
