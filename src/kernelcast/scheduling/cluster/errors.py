"""How wrong estimates are: a log-normal of a given mean error, or ratios that were measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError

_LARGEST_MEAN_ERROR = 100.0
_STEPS = 200
_NORMAL = NormalDist()


def mean_error_of(deviation: float) -> float:
    """Give the mean of |ratio - 1| where the ratio's logarithm is normal about 0.

    Notes
    -----
    E|exp(s Z) - 1| = exp(s^2 / 2) (2 Phi(s) - 1), Z standard normal. `deviation_of` is the inverse.
    """
    return math.exp(deviation**2 / 2) * (2 * _NORMAL.cdf(deviation) - 1)


def deviation_of(mean_error: float) -> float:
    """Give the deviation of the logarithm that leads to a mean error.

    Examples
    --------
    >>> round(mean_error_of(deviation_of(0.25)), 9)
    0.25
    """
    if not 0 <= mean_error <= _LARGEST_MEAN_ERROR:
        msg = f"mean error {mean_error}: expected a share from 0 to {_LARGEST_MEAN_ERROR:g}"
        raise InputError(msg)
    low, high = 0.0, 4.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if mean_error_of(middle) < mean_error:
            low = middle
        else:
            high = middle
    return 0.0 if mean_error == 0 else (low + high) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorModel:
    """Where ratios of estimated to true time are drawn from."""

    label: str
    """What tables and plots call it."""
    mean_error: float
    """Mean of |ratio - 1|."""
    ratios: tuple[float, ...] = ()
    """Ratios that were measured; empty for a log-normal about 1."""

    def __post_init__(self) -> None:
        deviation_of(min(self.mean_error, _LARGEST_MEAN_ERROR) if self.ratios else self.mean_error)
        if not all(0 < one < math.inf for one in self.ratios):
            msg = f"{self.label}: a ratio of estimated to measured time is not positive and finite"
            raise InputError(msg)

    def draw(self, shape: tuple[int, ...], *, seed: int) -> npt.NDArray[np.float64]:
        """Draw ratios, independent of each other.

        Log-normals of different mean errors are multiples of one draw: a curve over errors is not
        blurred by luck.
        """
        rng = np.random.default_rng([seed, 3])
        if self.ratios:
            return rng.choice(np.array(self.ratios), size=shape)
        return np.exp(deviation_of(self.mean_error) * rng.standard_normal(shape))


def lognormal_errors(mean_error: float) -> ErrorModel:
    """Make log-normal errors of a mean.

    Examples
    --------
    >>> lognormal_errors(0.05).label
    '5 %'
    """
    return ErrorModel(label=f"{mean_error * 100:g} %", mean_error=mean_error)


def measured_errors(label: str, ratios: Sequence[float]) -> ErrorModel:
    """Make errors of ratios that were measured."""
    if not ratios:
        msg = f"{label}: holds no predictions beside measured times"
        raise InputError(msg)
    mean = sum(abs(one - 1) for one in ratios) / len(ratios)
    return ErrorModel(label=label, mean_error=mean, ratios=tuple(ratios))
