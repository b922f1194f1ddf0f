"""Intervals of a mean over rows that come in clusters.

Rows of a kernel resemble each other: what varies is which kernels there are. So whole kernels are
drawn with replacement, and the mean over the rows of those drawn is taken again and again. The
interval is BCa (bias-corrected and accelerated; Efron, "Better bootstrap confidence intervals",
Journal of the American Statistical Association 82, 1987): differences of errors are skewed, since
few kernels carry most of them, and plain quantiles would then miss the truth more often on one
side than on the other.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers

_NORMAL = NormalDist()
# Drawn at once: memory stays small where there are thousands of clusters.
_BLOCK = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How to resample.

    Parameters
    ----------
    resamples : int
        How often.
    confidence : float
        Share of samples of clusters whose intervals shall hold the true mean.
    seed : int
        Equal seeds draw equal clusters.

    Raises
    ------
    InputError
        If there are no resamples, or the confidence is no share.
    """

    resamples: int = 10_000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1 or not 0 < self.confidence < 1:
            msg = (
                f"bootstrap: {self.resamples} resamples and confidence {self.confidence}; give at "
                "least 1, and a share between 0 and 1 such as 0.95"
            )
            raise InputError(msg)


def find_interval(
    values: Numbers, clusters: npt.NDArray[np.intp], plan: Bootstrap
) -> tuple[float, float] | None:
    """Give the interval of the mean over rows.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Of each row.
    clusters : ndarray of int, shape (n,)
        Number of each row's cluster, from 0, none left out.
    plan : Bootstrap
        How to resample.

    Returns
    -------
    tuple of float, or None
        Its ends; None with fewer than two clusters, which tell nothing of a third.

    Examples
    --------
    >>> find_interval(np.array([0.5, 0.5, 0.5]), np.array([0, 0, 1]), Bootstrap(resamples=10))
    (0.5, 0.5)
    """
    counts = np.bincount(clusters).astype(np.float64)
    if len(counts) < 2:
        return None
    sums: Numbers = np.bincount(clusters, weights=values).astype(np.float64)
    means = _resample(sums, counts, plan)
    left_out = (sums.sum() - sums) / (counts.sum() - counts)
    places = _adjust(float(values.mean()), means, left_out, plan.confidence)
    low, high = np.quantile(means, places)
    return float(low), float(high)


def _resample(sums: Numbers, counts: Numbers, plan: Bootstrap) -> Numbers:
    rng = np.random.default_rng(plan.seed)
    means = np.empty(plan.resamples)
    for begin in range(0, plan.resamples, _BLOCK):
        block = means[begin : begin + _BLOCK]
        drawn = rng.integers(len(sums), size=(len(block), len(sums)))
        block[:] = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return means


def _adjust(
    mean: float, means: Numbers, left_out: Numbers, confidence: float
) -> tuple[float, float]:
    """Give the quantiles to take: plain ones where bias and skew cannot be told."""
    plain = (1 - confidence) / 2, (1 + confidence) / 2
    below = float((means < mean).mean() + (means <= mean).mean()) / 2
    if not 0 < below < 1:
        return plain
    bias = _NORMAL.inv_cdf(below)
    gaps = left_out.mean() - left_out
    spread = float((gaps**2).sum())
    acceleration = float((gaps**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    low, high = (_adjust_one(one, bias, acceleration) for one in plain)
    return (low, high) if low < high else plain


def _adjust_one(share: float, bias: float, acceleration: float) -> float:
    moved = bias + _NORMAL.inv_cdf(share)
    return _NORMAL.cdf(bias + moved / max(1 - acceleration * moved, 1e-6))
