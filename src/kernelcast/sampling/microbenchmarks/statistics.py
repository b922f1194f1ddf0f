"""Repeated times put into numbers: medians, intervals, and whether time grew with the work."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import Curve
from kernelcast.records.traits import Trait, TraitSource

_NORMAL_95 = 1.96
_FEWEST_POINTS = 2
_LARGEST_INTERCEPT = 0.3
"""Share of the longest time that may not grow with the work: a launch, a loop's start."""
_LEAST_DOUBLING = 1.6
_LEAST_GROWTH = 0.5
"""Of the time that work in proportion would add, what must be seen at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What repeated runs have shown."""

    median: float
    """Of the runs; decisions and traits take it, since neighbours on a machine only ever add."""
    mean: float
    low: float
    """Begin of the 95 % interval of one run: 1.96 standard deviations on either side of the mean,
    as in the microbenchmarks paper, but of the logarithms. So it stays positive, turns into the
    interval of a rate, holds the median always, and differs from the paper's by less than 0.5 % of
    the mean where the deviation is below 5 %. The drift of the device's speed from one minute to
    another, as the reference kernel has it, is part of it."""
    high: float
    """Its end."""
    minimum: float
    count: int
    repeated: int = 0
    """Runs that were thrown away because the device was slow meanwhile."""
    drift: float = 1.0
    """Median time of the reference kernel meanwhile over its usual time; 1 is no drift."""


def summarise(
    samples: Sequence[float], *, repeated: int = 0, drift: float = 1.0, spread: float = 0.0
) -> Measured:
    """Summarise positive values.

    Parameters
    ----------
    repeated : int
        Those that were thrown away.
    drift : float
        Of the reference kernel meanwhile.
    spread : float
        Half width of the interval by which the device's speed drifts, as a share: runs that
        follow each other do not see it, the next calibration does. Deviations add as squares.

    Raises
    ------
    MeasurementError
        If there are none, or one is not a positive number: then the timer is not to be trusted.

    Examples
    --------
    >>> found = summarise([2.0, 2.0, 2.0, 8.0])
    >>> found.median, found.minimum, found.count
    (2.0, 2.0, 4)
    >>> found.low < 2.0 < found.high
    True
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0 or not np.all(np.isfinite(values)) or np.any(values <= 0):
        msg = f"{values.size} times, not all of them positive: the timer cannot resolve the run"
        raise MeasurementError(msg)
    logs = np.log(values)
    half = _NORMAL_95 * float(np.std(logs, ddof=1)) if values.size > 1 else 0.0
    half = math.hypot(half, spread)
    centre = float(np.mean(logs))
    median = float(np.median(values))
    return Measured(
        median=median,
        mean=float(np.mean(values)),
        low=min(math.exp(centre - half), median),
        high=max(math.exp(centre + half), median),
        minimum=float(np.min(values)),
        count=int(values.size),
        repeated=repeated,
        drift=drift,
    )


def is_narrow(samples: Sequence[float], share: float) -> bool:
    """Tell whether the 95 % interval of the mean is within `share` of it on either side.

    The paper's interval is of one run and does not shrink with more of them; what more runs can
    improve is the mean, so its interval decides when to stop.

    Examples
    --------
    >>> is_narrow([1.0, 1.01, 0.99, 1.0, 1.0], 0.02)
    True
    >>> is_narrow([1.0, 1.3, 0.9, 1.0, 1.2], 0.02)
    False
    """
    if len(samples) < _FEWEST_POINTS:
        return False
    values = np.asarray(samples, dtype=np.float64)
    half = _NORMAL_95 * float(np.std(values, ddof=1)) / math.sqrt(len(samples))
    return half <= share * float(np.mean(values))


def as_trait(measured: Measured, origin: str, *, scale: float = 1.0) -> Trait[float]:
    """Give a measured value, times `scale`, as a trait; `origin` names the microbenchmark.

    Examples
    --------
    >>> as_trait(summarise([2e-6, 2e-6]), "launch").value
    2e-06
    """
    return Trait(
        value=measured.median * scale,
        source=TraitSource.MEASURED,
        low=measured.low * scale,
        high=measured.high * scale,
        origin=origin,
    )


def as_rate(measured: Measured, amount: float, origin: str) -> Trait[float]:
    """Give `amount` per measured time as a trait: operations or bytes per second.

    Examples
    --------
    >>> as_rate(summarise([0.5, 0.5]), 3.0, "copy").value
    6.0
    """
    return Trait(
        value=amount / measured.median,
        source=TraitSource.MEASURED,
        low=amount / measured.high,
        high=amount / measured.low,
        origin=origin,
    )


def difference_trait(
    measured: Measured, baseline: Measured, origin: str, *, scale: float = 1.0
) -> Trait[float]:
    """Give what `measured` took beyond `baseline`, times `scale`; the deviations add up.

    Raises
    ------
    MeasurementError
        If the difference is not above 0: then it is below what the device's noise lets one see.

    Examples
    --------
    >>> difference_trait(summarise([3.0, 3.0]), summarise([1.0, 1.0]), "barrier").value
    2.0
    """
    value = measured.median - baseline.median
    if value <= 0:
        msg = (
            f"{measured.median:.3g} s with it and {baseline.median:.3g} s without: "
            "the difference is below the noise"
        )
        raise MeasurementError(msg)
    down = math.hypot(measured.median - measured.low, baseline.high - baseline.median)
    up = math.hypot(measured.high - measured.median, baseline.median - baseline.low)
    return Trait(
        value=value * scale,
        source=TraitSource.MEASURED,
        low=max(value - down, 0.0) * scale,
        high=(value + up) * scale,
        origin=origin,
    )


def make_curve(
    name: str,
    x_name: str,
    y_name: str,
    x: Iterable[float],
    y: Sequence[Measured | Trait[float]],
) -> Curve:
    """Draw values with their intervals, measured or as traits; a point without one is a dot."""
    values = tuple(one.median if isinstance(one, Measured) else one.value for one in y)
    points = list(zip(values, y, strict=True))
    return Curve(
        name=name,
        x_name=x_name,
        y_name=y_name,
        x=tuple(map(float, x)),
        y=values,
        low=tuple(value if one.low is None else one.low for value, one in points),
        high=tuple(value if one.high is None else one.high for value, one in points),
    )


def fit_line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Fit ``y = intercept + slope * x``; relative errors count equally at both ends.

    Examples
    --------
    >>> intercept, slope = fit_line([1, 2, 4], [3, 5, 9])
    >>> round(intercept, 6), round(slope, 6)
    (1.0, 2.0)
    """
    values = np.asarray(y, dtype=np.float64)
    slope, intercept = np.polyfit(np.asarray(x, dtype=np.float64), values, 1, w=1.0 / values)
    return float(intercept), float(slope)


def proves_work(times_by_iterations: Mapping[int, float]) -> None:
    """Check that time grows in proportion to the iterations, or say why it proves nothing.

    Parameters
    ----------
    times_by_iterations : mapping of int to float
        Iterations to the time they took, in seconds; two at least, the best of a few runs each.

    Examples
    --------
    >>> proves_work({100: 1.1, 200: 2.1, 400: 4.1})
    """
    counts = sorted(times_by_iterations)
    if len(counts) < _FEWEST_POINTS:
        msg = f"{len(counts)} iteration counts cannot show that work takes time; measure two"
        raise MeasurementError(msg)
    times = [times_by_iterations[count] for count in counts]
    intercept, _ = fit_line(counts, times)
    growth = (times[-1] - times[0]) / times[-1]
    least = _LEAST_GROWTH * (counts[-1] - counts[0]) / counts[-1]
    if growth < least or intercept > _LARGEST_INTERCEPT * times[-1]:
        shown = ", ".join(f"{n}: {time_s:.3g} s" for n, time_s in zip(counts, times, strict=True))
        msg = f"time does not grow with the iterations ({shown}): the work may have been removed"
        raise MeasurementError(msg)


def proves_steps(single_s: float, double_s: float) -> None:
    """Check that twice the steps in a loop's body take about twice the time.

    Examples
    --------
    >>> proves_steps(1.0, 1.9)
    """
    if double_s < _LEAST_DOUBLING * single_s:
        msg = (
            f"twice the steps per iteration take {double_s / single_s:.2f} times as long: "
            "the compiler may have folded them"
        )
        raise MeasurementError(msg)


def check_result(
    found: npt.NDArray[np.generic], expected: npt.NDArray[np.generic], *, tolerance: float = 1e-3
) -> None:
    """Check that a kernel computed what numpy computes from the same data.

    Integers must be equal; floating-point numbers within the relative `tolerance`.
    """
    if np.issubdtype(expected.dtype, np.floating):
        good = np.isclose(
            found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance
        )
    else:
        good = np.asarray(found == expected)
    if not np.all(good):
        where = int(np.argmin(good))
        msg = (
            f"the kernel's result {where} is {found.flat[where]}, "
            f"not {expected.flat[where]}: its time means nothing"
        )
        raise MeasurementError(msg)
