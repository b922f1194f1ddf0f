"""Errors of predictions in five numbers, the same for every table and page that shows some."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSummary:
    """Errors |predicted - measured| / measured over rows."""

    rows: int
    mean: float
    median: float
    p90: float
    worst: float
    """Arithmetic mean, as in the paper, and quantiles."""


def summarise_errors(errors: npt.NDArray[np.float64]) -> ErrorSummary | None:
    """Summarise errors; None where there are none."""
    if not errors.size:
        return None
    return ErrorSummary(
        rows=len(errors),
        mean=float(errors.mean()),
        median=float(np.median(errors)),
        p90=float(np.quantile(errors, 0.9)),
        worst=float(errors.max()),
    )
