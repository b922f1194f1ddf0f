"""Where a rate stops growing: hyperbolic or roofline."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.sampling.microbenchmarks.fits.intervals import Interval, make_relative_interval
from kernelcast.sampling.microbenchmarks.fits.steps import Floats, huber_weights

_RIDGE = 0.95
_ITERATIONS = 40
_LEAST_POINTS = 3
_STARTS = 24


class SaturationShape(StrEnum):
    """How a rate approaches its peak."""

    ROOFLINE = "roofline"
    """``min(peak, slope * x)``"""
    HYPERBOLA = "hyperbola"
    """``peak * x / (x + half)``"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturation:
    """A saturating rate."""

    shape: SaturationShape
    peak: Interval
    knee: Interval
    """Roofline: x where the slope meets the peak. Hyperbola: x of half the peak."""
    ridge_x: Interval
    """x from which on the rate is within 5 % of the peak."""
    noise: float
    """Root of the mean squared relative residual."""

    def predict(self, x: Floats) -> Floats:
        """Evaluate the rate."""
        return self.peak.value * _share(self.shape, x, self.knee.value)


def fit_saturation(x: Floats, rates: Floats) -> Saturation:
    """Fit a rate over a degree of parallelism, or over a size.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    >>> fit = fit_saturation(x, np.minimum(10.0, 2.0 * x))
    >>> fit.shape.value, round(fit.peak.value, 3), round(fit.ridge_x.value, 3)
    ('roofline', 10.0, 4.75)
    """
    if len(x) != len(rates) or len(x) < _LEAST_POINTS or np.any(x <= 0) or np.any(rates <= 0):
        msg = f"{len(x)} points and {len(rates)} rates; give at least 3 of each, all positive"
        raise InputError(msg)
    fits = [_fit_shape(shape, x, rates) for shape in SaturationShape]
    return min(fits, key=lambda fit: fit.noise)


def _share(shape: SaturationShape, x: Floats, knee: float) -> Floats:
    if shape is SaturationShape.ROOFLINE:
        return np.minimum(1.0, x / knee)
    share: Floats = x / (x + knee)
    return share


def _fit_shape(shape: SaturationShape, x: Floats, rates: Floats) -> Saturation:
    """Search the knee coarsely, then by golden section; the peak follows from it."""
    knees = np.geomspace(x[0] / 4, x[-1] * 2, _STARTS * 4)
    costs = [_fit_peak(shape, x, rates, float(knee))[1] for knee in knees]
    best = int(np.argmin(costs))
    low = float(knees[max(best - 1, 0)])
    high = float(knees[min(best + 1, len(knees) - 1)])
    for _ in range(_ITERATIONS):
        third = (high / low) ** (1 / 3)
        left, right = low * third, high / third
        if _fit_peak(shape, x, rates, left)[1] <= _fit_peak(shape, x, rates, right)[1]:
            high = right
        else:
            low = left
    return _describe(shape, x, rates, (low * high) ** 0.5)


def _fit_peak(
    shape: SaturationShape, x: Floats, rates: Floats, knee: float
) -> tuple[float, float, Floats]:
    """Give peak, cost and weights for a knee; residuals are logarithms."""
    logs = np.log(rates / _share(shape, x, knee))
    center = float(np.median(logs))
    weights = huber_weights(logs - center)
    center = float(np.average(logs, weights=weights**2))
    return float(np.exp(center)), float(np.sum((weights * (logs - center)) ** 2)), weights


def _describe(shape: SaturationShape, x: Floats, rates: Floats, knee: float) -> Saturation:
    peak, cost, weights = _fit_peak(shape, x, rates, knee)
    noise = float(np.sqrt(cost / len(x)))
    slopes = (np.log(_share(shape, x, knee * 1.02)) - np.log(_share(shape, x, knee / 1.02))) / (
        2 * np.log(1.02)
    )
    jacobian = np.column_stack([np.ones_like(x), slopes]) * weights[:, None]
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * noise**2
    peak_error, knee_error = np.sqrt(np.maximum(np.diag(covariance), 0))
    factor = _RIDGE if shape is SaturationShape.ROOFLINE else _RIDGE / (1 - _RIDGE)
    return Saturation(
        shape=shape,
        peak=make_relative_interval(peak, float(peak_error)),
        knee=make_relative_interval(knee, float(knee_error)),
        ridge_x=make_relative_interval(knee * factor, float(knee_error)),
        noise=noise,
    )
