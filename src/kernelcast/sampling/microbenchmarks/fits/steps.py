"""Rounded step functions (equation 6) and their robust linear fit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_HUBER = 1.345
_REWEIGHTINGS = 6
# Deviations below 3 % never count as signal: timings repeat no better than that.
NOISE_FLOOR = 0.03


def miss_share(
    sizes: Floats, capacity: float, steepness: float, *, is_gradual: bool = False
) -> Floats:
    """Give the share of accesses of a random walk that miss a cache.

    Equation 6 of the microbenchmarks paper has steepness 1: of an array of which a share
    ``capacity / size`` is in the cache by chance, the rest misses. That is random replacement.
    A walk in a cycle under LRU misses a whole set as soon as the set is over-full, so an n-way
    cache goes from all hits to all misses between ``capacity`` and ``capacity * (1 + 1 / n)``,
    which is a steepness of about n + 1.

    A gradual step is a logistic curve of the logarithm. Where pages fall on sets by chance, or
    others use the cache too, some sets are over-full long before the array is as large as the
    cache, and half of the accesses miss when it is.

    Parameters
    ----------
    steepness : float
        1 for equation 6, more for a sharper step; the exponent of a gradual one.
    is_gradual : bool
        Whether misses begin below the capacity.

    Examples
    --------
    >>> miss_share(np.array([4.0, 8.0, 16.0]), 8.0, 1.0).tolist()
    [0.0, 0.0, 0.5]
    >>> miss_share(np.array([4.0, 8.0, 16.0]), 8.0, 2.0, is_gradual=True).tolist()
    [0.2, 0.5, 0.8]
    """
    share: Floats
    if is_gradual:
        share = 1.0 / (1.0 + (capacity / sizes) ** steepness)
    else:
        share = np.clip(steepness * (1.0 - capacity / sizes), 0.0, 1.0)
    return share


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where a step is and how sharp."""

    capacity: float
    """Size from which on accesses miss, in bytes."""
    steepness: float
    is_gradual: bool = False

    def share(self, sizes: Floats) -> Floats:
        """Give the share of accesses that miss."""
        return miss_share(sizes, self.capacity, self.steepness, is_gradual=self.is_gradual)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFit:
    """Heights of given steps."""

    steps: tuple[Step, ...]
    """Nearest first."""
    heights: Floats
    """Base and the rise of each step, none negative."""
    residuals: Floats
    """Relative."""
    weights: Floats
    """1 for a point that is believed, less for an outlier."""

    @property
    def plateaus(self) -> Floats:
        """Value of each level: base, after the first step, and so on."""
        plateaus: Floats = np.cumsum(self.heights)
        return plateaus

    def predict(self, sizes: Floats) -> Floats:
        """Evaluate the curve."""
        values: Floats = make_columns(sizes, self.steps) @ self.heights
        return values


def make_columns(sizes: Floats, steps: tuple[Step, ...]) -> Floats:
    """Give the design matrix: a constant and the miss share of each step."""
    columns = [np.ones_like(sizes)]
    columns += [step.share(sizes) for step in steps]
    return np.column_stack(columns)


def fit_heights(sizes: Floats, values: Floats, steps: tuple[Step, ...]) -> StepFit:
    """Fit base and rises to relative errors, with Huber's weights against outliers.

    Parameters
    ----------
    values : ndarray of shape (n_points,)
        Positive: seconds per access, or per byte.
    """
    relative = make_columns(sizes, steps) / values[:, None]
    weights = np.ones_like(values)
    heights = np.zeros(len(steps) + 1)
    residuals = np.zeros_like(values)
    for _ in range(_REWEIGHTINGS):
        heights = _solve_non_negative(relative * weights[:, None], weights)
        residuals = relative @ heights - 1.0
        weights = huber_weights(residuals)
    return StepFit(steps=steps, heights=heights, residuals=residuals, weights=weights)


def huber_weights(residuals: Floats) -> Floats:
    """Give square roots of Huber's weights; the scale is the median's, not below the floor."""
    scale = max(1.4826 * float(np.median(np.abs(residuals))), NOISE_FLOOR)
    ratio = np.abs(residuals) / (_HUBER * scale)
    weights: Floats = np.sqrt(1.0 / np.maximum(ratio, 1.0))
    return weights


def _solve_non_negative(matrix: Floats, target: Floats) -> Floats:
    """Solve least squares with no negative unknown, dropping the most negative one at a time."""
    active = list(range(matrix.shape[1]))
    solution = np.zeros(matrix.shape[1])
    while active:
        found = np.linalg.lstsq(matrix[:, active], target, rcond=None)[0]
        worst = int(np.argmin(found))
        if found[worst] >= 0:
            solution[active] = found
            break
        active.pop(worst)
    return solution
