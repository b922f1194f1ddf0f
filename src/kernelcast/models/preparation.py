"""From named columns to coordinates in which distances mean something.

Counts, bytes and seconds have heavy tails: all columns go through a logarithm, scaled so that one
unit is small (a nanosecond, a byte, a count). Absent values become the training's median, and
where absence differs between rows an indicator says so. Each feature group has the same share of
a distance, whatever the number of its columns. Principal components keep what the rows differ in.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import group_of
from kernelcast.records.training_table import Numbers

LARGEST_DIMENSIONS = 32
"""Principal components kept at most: a prediction's cost grows with them."""
LIMIT = 5.0
"""Standard deviations beyond which a column says no more."""
_TINY = 1e-9
_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Preparation:
    """How columns become coordinates; made by `fit_preparation`."""

    names: tuple[str, ...]
    """Columns expected, in order."""
    factors: Numbers
    """Shape (names,). What values are multiplied by before the logarithm."""
    fill: Numbers
    """Shape (names,). Logarithms that stand for absent values."""
    centre: Numbers
    scale: Numbers
    """Shape (names,). Of the logarithms."""
    indicators: npt.NDArray[np.int64]
    """Shape (indicators,). Columns whose absence is a coordinate of its own."""
    absence_rates: Numbers
    """Shape (indicators,). Share of the training's rows in which they are absent."""
    weights: Numbers
    """Shape (names + indicators,). Of the standardised columns: each group has the same variance in
    sum."""
    components: Numbers
    """Shape (names + indicators, dimensions). Principal components of the weighted columns, of
    length one."""

    def weigh(self, values: Numbers) -> Numbers:
        """Give standardised logarithms and indicators, times their weights.

        Parameters
        ----------
        values : ndarray, shape (n, names)
            NaN where one is absent.

        Returns
        -------
        ndarray, shape (n, names + indicators)
        """
        if values.shape[1:] != (len(self.names),):
            msg = f"model: {values.shape[1:]} columns given, {len(self.names)} expected"
            raise InputError(msg)
        logs = compress(values, self.factors)
        absent = ~np.isfinite(logs)
        standardised = (np.where(absent, self.fill, logs) - self.centre) / self.scale
        marks = absent[:, self.indicators] - self.absence_rates
        weighted: Numbers = np.hstack([np.clip(standardised, -LIMIT, LIMIT), marks])
        weighted *= self.weights
        return weighted

    def project(self, weighted: Numbers) -> tuple[Numbers, Numbers]:
        """Give coordinates of weighted rows, and what they leave out.

        Returns
        -------
        coordinates : ndarray, shape (n, dimensions)
            Along the components.
        remainder : ndarray, shape (n,)
            Squared distance to the space of the components: large where a column changes that
            never changed in the training.
        """
        coordinates: Numbers = weighted @ self.components
        remainder = square_rows(weighted) - square_rows(coordinates)
        return coordinates, np.maximum(remainder, 0.0)


def compress(values: Numbers, factors: Numbers) -> Numbers:
    """Take logarithms that keep sign and zero: ``sign(x) log(1 + |factor x|)``."""
    with np.errstate(over="ignore"):  # what is endless then counts as absent
        scaled = values * factors
    found: Numbers = np.copysign(np.log1p(np.abs(scaled)), scaled)
    return found


def square_rows(values: Numbers) -> Numbers:
    """Give the squared length of each row."""
    found: Numbers = np.einsum("ij,ij->i", values, values)
    return found


def fit_preparation(names: tuple[str, ...], values: Numbers) -> Preparation:
    """Learn scales and components from the training's rows; targets are not looked at.

    Parameters
    ----------
    names : tuple of str
        Of the columns.
    values : ndarray, shape (n, names)
        Of the training; NaN where one is absent.
    """
    if not values.size:
        msg = f"model: {values.shape} rows and columns to learn from; give some of each"
        raise InputError(msg)
    factors = np.array([_NANOSECONDS if name.endswith("_s") else 1.0 for name in names])
    logs = compress(values, factors)
    absent = ~np.isfinite(logs)
    known = np.where(absent.all(axis=0), 0.0, logs)
    fill = np.nanmedian(known, axis=0)
    filled = np.where(absent, fill, logs)
    low, high = np.quantile(filled, [0.01, 0.99], axis=0)
    clipped = np.clip(filled, low, high)
    deviation = clipped.std(axis=0)
    indicators = _find_indicators(absent)
    scaling: dict[str, Any] = {
        "names": names,
        "factors": factors,
        "fill": fill,
        "centre": clipped.mean(axis=0),
        "scale": np.where(deviation > _TINY, deviation, 1.0),
        "indicators": indicators,
        "absence_rates": absent[:, indicators].mean(axis=0),
    }
    alike = np.ones(len(names) + len(indicators))
    rough = Preparation(**scaling, weights=alike, components=np.empty(0))
    standardised = rough.weigh(values)
    weights = _weigh_groups(names, indicators, standardised.std(axis=0))
    components = _find_components(standardised * weights)
    return Preparation(**scaling, weights=weights, components=components)


def _find_indicators(absent: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Give the first column of each pattern of absence that differs between rows."""
    _, first = np.unique(absent, axis=1, return_index=True)
    rates = absent.mean(axis=0)
    return np.sort(first[(rates[first] > 0) & (rates[first] < 1)]).astype(np.int64)


def _weigh_groups(
    names: tuple[str, ...], indicators: npt.NDArray[np.int64], deviation: Numbers
) -> Numbers:
    """Give weights with which every group has the same variance in sum."""
    groups = [group_of(name) for name in (*names, *(names[place] for place in indicators))]
    telling = Counter(group for group, one in zip(groups, deviation, strict=True) if one > _TINY)
    return np.array([1 / np.sqrt(max(telling[group], 1)) for group in groups])


def _find_components(weighted: Numbers) -> Numbers:
    """Give the principal directions, shape (columns, dimensions), signs fixed."""
    covariance = weighted.T @ weighted / len(weighted)
    values, vectors = np.linalg.eigh(covariance)
    kept = np.argsort(values)[::-1][:LARGEST_DIMENSIONS]
    kept = kept[values[kept] > _TINY * max(float(values.max()), _TINY)]
    directions: Numbers = vectors[:, kept]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return directions * signs if directions.shape[1] else np.zeros((weighted.shape[1], 1))
