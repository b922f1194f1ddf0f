"""A prediction with its interval."""

import math
from dataclasses import dataclass

from kernelcast.records.errors import KernelcastError


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A prediction with its interval, in seconds.

    Parameters
    ----------
    seconds, low, high : float
        ``0 < low <= seconds <= high``.
    coverage : float
        Share of cases in which the true time is meant to lie inside, between 0 and 1.

    Raises
    ------
    KernelcastError
        If the numbers are not finite, not positive or not in order.
    """

    seconds: float
    low: float
    high: float
    coverage: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.seconds <= self.high < math.inf:  # NaN fails it too
            msg = f"interval {self.low} <= {self.seconds} <= {self.high}: not finite and ordered"
            raise KernelcastError(msg)
