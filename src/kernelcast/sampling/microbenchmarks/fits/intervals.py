"""A fitted number with its 95 % interval."""

import math
from dataclasses import dataclass

NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float


def make_relative_interval(
    value: float, relative_error: float, *, at_least: float = 0.0
) -> Interval:
    """Give the interval of a positive number from its relative standard error.

    Parameters
    ----------
    relative_error : float
        Standard error of its logarithm.
    at_least : float
        Least half width of the interval, as a logarithm.

    Examples
    --------
    >>> make_relative_interval(8.0, 0.0, at_least=math.log(2))
    Interval(value=8.0, low=4.0, high=16.0)
    """
    half = max(NORMAL_95 * relative_error, at_least)
    half = min(half if math.isfinite(half) else math.log(100.0), math.log(100.0))
    return Interval(value=value, low=value * math.exp(-half), high=value * math.exp(half))
