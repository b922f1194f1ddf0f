"""Intervals of a mean over rows that come in clusters.

Rows of a kernel resemble each other: what varies is which kernels there are. So whole kernels are
drawn with replacement, and the mean over the rows of those drawn is taken again and again. The
interval is BCa (bias-corrected and accelerated; Efron, "Better bootstrap confidence intervals",
Journal of the American Statistical Association 82, 1987): differences of errors are skewed, since
few kernels carry most of them, and plain quantiles would then miss the truth more often on one
side than on the other.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Numbers

# Drawn at once: memory stays small where there are thousands of clusters.
_BLOCK = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """How to resample."""

    resamples: int = 10_000
    """How often."""
    confidence: float = 0.95
    """Share of samples of clusters whose intervals shall hold the true mean."""
    seed: int = 0
    """Equal seeds draw equal clusters."""

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

    Examples
    --------
    >>> find_interval(np.array([0.5, 0.5, 0.5]), np.array([0, 0, 1]), Bootstrap(resamples=10))
    (0.5, 0.5)
    """
    counts = np.bincount(clusters).astype(np.float64)
    if len(counts) < 2:
        return None
    sums: Numbers = np.bincount(clusters, weights=values).astype(np.float64)
    found = _bootstrap(sums, counts, plan, "BCa")
    if not np.isfinite(found).all():  # bias and skew cannot be told, as where all are alike
        found = _bootstrap(sums, counts, plan, "percentile")
    return found


def _bootstrap(sums: Numbers, counts: Numbers, plan: Bootstrap, method: str) -> tuple[float, float]:
    from scipy.stats import DegenerateDataWarning, bootstrap  # half a second to import

    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", DegenerateDataWarning)
        found = bootstrap(
            (sums, counts),
            lambda some, sizes, axis: some.sum(axis=axis) / sizes.sum(axis=axis),
            n_resamples=plan.resamples, batch=_BLOCK, vectorized=True, paired=True,
            confidence_level=plan.confidence, method=method, rng=np.random.default_rng(plan.seed),
        ).confidence_interval  # fmt: skip
    return float(found.low), float(found.high)
