"""Tells even work from uneven, and either from a disturbed machine."""

from collections.abc import Sequence
from statistics import median

import numpy as np
import numpy.typing as npt

from kernelcast.records.samples import TimedLaunch

EVEN_SPREAD = 0.25
"""Robust relative spread of rates below which work counts as even."""
_EVEN_RANGE = 0.75
_FEW_RATES = 5


def rates_of(launches: Sequence[TimedLaunch]) -> npt.NDArray[np.float64]:
    """Give seconds per work-group of each launch."""
    return np.array([one.duration_s / one.box.work_group_count for one in launches])


def is_even(rates: npt.NDArray[np.float64]) -> bool:
    """Tell whether work-groups of different places take about the same time.

    Examples
    --------
    >>> is_even(np.array([1.0, 1.1, 0.9, 1.0, 5.0])), is_even(np.array([1.0, 2.0, 3.0, 4.0]))
    (True, False)
    """
    middle = median(rates)
    if len(rates) < _FEW_RATES:
        return bool(np.ptp(rates) < _EVEN_RANGE * middle)
    return bool(1.4826 * median(np.abs(rates - middle)) < EVEN_SPREAD * middle)


def compare_places(survey: Sequence[TimedLaunch]) -> dict[int, float]:
    """Compare the places of a survey, each of which ran one or two launches.

    A heavy place is slow in both its launches, a disturbance hits one of them: of the two rates,
    each relative to the median of its size, the lower one counts.

    Parameters
    ----------
    survey : sequence of TimedLaunch
        Launches of at most two sizes; those of one place share their window.

    Returns
    -------
    dict of int to float
        Window to its rate relative to the middle.
    """
    sizes = sorted({one.box.work_group_count for one in survey})
    middle_size = (sizes[0] * sizes[-1]) ** 0.5
    short = [one for one in survey if one.box.work_group_count <= middle_size]
    long = [one for one in survey if one.box.work_group_count > middle_size]
    lowest: dict[int, float] = {}
    for launches in (short, long):
        rates = rates_of(launches)
        for one, rate in zip(launches, rates, strict=True):
            relative = float(rate / median(rates))
            lowest[one.window] = min(relative, lowest.get(one.window, relative))
    return lowest
