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

    Of five and more, the middle half decides, since some may have been disturbed; nothing makes a
    launch of even work as short as those of next to none.

    Examples
    --------
    >>> is_even(np.array([1.0, 1.1, 0.9, 1.0, 5.0])), is_even(np.array([1.0, 2.0, 3.0, 4.0]))
    (True, False)
    >>> is_even(np.array([4.5, 4.5, 4.6, 0.2, 0.1]))
    False
    """
    middle = median(rates)
    if len(rates) < _FEW_RATES:
        return bool(np.ptp(rates) < _EVEN_RANGE * middle)
    if middle - rates.min() >= _EVEN_RANGE * middle:
        return False
    return bool(1.4826 * median(np.abs(rates - middle)) < EVEN_SPREAD * middle)
