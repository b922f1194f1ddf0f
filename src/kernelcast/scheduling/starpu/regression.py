"""Curves through predicted times, as StarPU's regression models have them.

Source: StarPU 1.3.10, `src/core/perfmodel/perfmodel_history.c` (alpha, beta from sums over
logarithms) and `regression.c` (a, b, c). Times are in microseconds there, sizes in bytes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

from scipy.optimize import minimize_scalar

from kernelcast.scheduling.starpu.records import Entry

MICROSECONDS = 1e6
_FEWEST_FOR_OFFSET = 3
_NEAR = 0.9
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSums:
    """Sums over measurements, x the logarithm of the size and y that of the time."""

    x: float
    xx: float
    y: float
    xy: float
    samples: int
    smallest_bytes: int
    largest_bytes: int

    def power_law(self) -> tuple[float, float] | None:
        """Give alpha and beta of ``time = alpha * size ** beta``; None where sizes hardly differ.

        StarPU trusts no regression over sizes within 10 % of each other.
        """
        spread = self.samples * self.xx - self.x**2
        if self.smallest_bytes >= _NEAR * self.largest_bytes or spread <= 0:
            return None
        beta = (self.samples * self.xy - self.x * self.y) / spread
        exponent = (self.y - beta * self.x) / self.samples
        return (math.exp(exponent), beta) if abs(exponent) < _LARGEST_EXPONENT else None


def sum_logarithms(entries: Sequence[Entry]) -> LogSums:
    """Sum over entries, each counted as often as it has samples."""
    points = [
        (one.samples, math.log(one.size_bytes), math.log(one.seconds * MICROSECONDS))
        for one in entries
    ]
    sizes = [one.size_bytes for one in entries]
    return LogSums(
        x=math.fsum(n * x for n, x, _ in points),
        xx=math.fsum(n * x * x for n, x, _ in points),
        y=math.fsum(n * y for n, _, y in points),
        xy=math.fsum(n * x * y for n, x, y in points),
        samples=sum(n for n, _, _ in points),
        smallest_bytes=min(sizes),
        largest_bytes=max(sizes),
    )


def fit_offset_power_law(entries: Sequence[Entry]) -> tuple[float, float, float] | None:
    """Fit ``time = a * size ** b + c`` in microseconds, with the least relative error.

    Returns
    -------
    tuple of float or None
        a, b and c; None with fewer than three sizes, which do not determine them, or where no
        such curve comes near the times.

    Notes
    -----
    StarPU looks for the c that makes the logarithms of ``time - c`` most nearly a line, which
    weighs the smallest sizes most. Here c minimises the error of the times themselves, b and a
    follow from the line; StarPU only evaluates the curve.
    """
    points = sorted({one.size_bytes: one.seconds * MICROSECONDS for one in entries}.items())
    if len(points) < _FEWEST_FOR_OFFSET or points[0][0] >= _NEAR * points[-1][0]:
        return None
    try:
        return _fit_curve(points)
    except (OverflowError, ValueError):  # a or a power of a size leaves the range of numbers
        return None


def _fit_curve(points: Sequence[tuple[int, float]]) -> tuple[float, float, float]:
    least = min(time for _, time in points)

    def error_of(offset: float) -> float:
        a, b = _line(points, offset)
        return sum((math.log((a * size**b + offset) / time)) ** 2 for size, time in points)

    found = minimize_scalar(
        error_of, bounds=(0.0, 0.99 * least), method="bounded", options={"xatol": 1e-12 * least}
    )
    offset = min((0.0, float(found.x)), key=error_of)
    a, b = _line(points, offset)
    return a, b, offset


def _line(points: Sequence[tuple[int, float]], offset: float) -> tuple[float, float]:
    """Give a and b for one c, by least squares over logarithms."""
    b, start = linear_regression(
        [math.log(size) for size, _ in points], [math.log(time - offset) for _, time in points]
    )
    return math.exp(start), b
