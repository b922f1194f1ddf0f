"""What microbenchmarks find: repeated times put into numbers, and reasons for what is missing."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import KernelcastError, MeasurementError
from kernelcast.records.machine import CacheFacts, Curve, InstructionFacts, MemoryFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.opencl import cl

T = TypeVar("T")
Array = npt.NDArray[Any]


class Effort(StrEnum):
    """How thorough: `QUICK` takes at most a minute per device, `FULL` five, on two cores."""

    QUICK = "quick"
    NORMAL = "normal"
    FULL = "full"

    def pick(self, quick: T, normal: T, full: T) -> T:
        return {Effort.QUICK: quick, Effort.NORMAL: normal, Effort.FULL: full}[self]


@dataclass(slots=True, kw_only=True)
class BenchmarkResult:
    """Outcome of one microbenchmark, filled while it runs; fields as in `MachineDescription`."""

    name: str
    instructions: tuple[InstructionFacts, ...] = ()
    caches: tuple[CacheFacts, ...] = ()
    memories: tuple[MemoryFacts, ...] = ()
    """Like instructions and caches, facts; those with the name of facts that are known already add
    to them."""
    warp_width: Trait[int] | None = None
    clock_hz: Trait[float] | None = None
    costs: dict[str, Trait[float]] = field(default_factory=dict)
    """By names that end in their unit."""
    curves: tuple[Curve, ...] = ()
    not_obtained: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def attempting(self, what: str) -> Iterator[None]:
        """Note an error of compiler, driver or measurement as the reason why `what` is missing."""
        try:
            yield
        except (KernelcastError, cl.Error) as error:
            self.not_obtained[what] = str(error)

    def draw(
        self, name: str, axes: tuple[str, str], x: Iterable[float], y: Sequence[Trait[float]]
    ) -> None:
        """Add a curve of traits with their intervals; `axes` names quantities with their units."""
        curve = Curve(
            name=name,
            x_name=axes[0],
            y_name=axes[1],
            x=tuple(map(float, x)),
            y=tuple(one.value for one in y),
            low=tuple(one.value if one.low is None else one.low for one in y),
            high=tuple(one.value if one.high is None else one.high for one in y),
        )
        self.curves += (curve,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What repeated runs have shown, in seconds."""

    median: float
    """Decisions and traits take it, since neighbours on a machine only ever add time."""
    low: float
    """Begin of the 95 % interval of one run: 1.96 standard deviations on either side of the mean,
    as in the microbenchmarks paper, but of the logarithms. So it stays positive, turns into the
    interval of a rate, holds the median always, and differs from the paper's by less than 0.5 % of
    the mean where the deviation is below 5 %. The drift of the device's speed from one minute to
    another, as the reference kernel has it, is part of it."""
    high: float
    """Its end."""
    minimum: float

    def as_trait(self, origin: str, scale: float = 1.0) -> Trait[float]:
        """Make a trait of the time, times `scale`; `origin` names what was measured."""
        return make_trait(self.median * scale, origin, self.low * scale, self.high * scale)

    def as_rate(self, amount: float, origin: str) -> Trait[float]:
        """Make a trait of `amount` per time: operations or bytes per second."""
        return make_trait(amount / self.median, origin, amount / self.high, amount / self.low)

    def beyond(self, baseline: "Measured", origin: str, scale: float = 1.0) -> Trait[float]:
        """Make a trait of what it took beyond `baseline`, times `scale`; deviations add up."""
        value = self.median - baseline.median
        if value <= 0:
            raise MeasurementError(
                f"{self.median:.3g} s with it and {baseline.median:.3g} s without: "
                "the difference is below the noise"
            )
        down = math.hypot(self.median - self.low, baseline.high - baseline.median)
        up = math.hypot(self.high - self.median, baseline.median - baseline.low)
        low, high = max(value - down, 0.0) * scale, (value + up) * scale
        return make_trait(value * scale, origin, low, high)


def make_trait(value: float, origin: str, low: float, high: float) -> Trait[float]:
    return Trait(value=value, source=TraitSource.MEASURED, low=low, high=high, origin=origin)


def summarise(times_s: Sequence[float], *, spread: float = 0.0) -> Measured:
    """Summarise times, all positive or the timer is not to be trusted; the half width of the
    drift's interval `spread`, a share, and deviations add as squares."""
    values = np.asarray(times_s, dtype=np.float64)
    if values.size == 0 or not np.all(np.isfinite(values)) or np.any(values <= 0):
        msg = f"{values.size} times, not all of them positive: the timer cannot resolve the run"
        raise MeasurementError(msg)
    logs = np.log(values)
    deviation = float(np.std(logs, ddof=1)) if values.size > 1 else 0.0
    half = math.hypot(1.96 * deviation, spread)
    centre, median = float(np.mean(logs)), float(np.median(values))
    low, high = min(math.exp(centre - half), median), max(math.exp(centre + half), median)
    return Measured(median=median, low=low, high=high, minimum=float(np.min(values)))


def is_narrow(times_s: Sequence[float], share: float) -> bool:
    """Tell whether the 95 % interval of the mean, not the paper's of one run, which does not shrink
    with more of them, is within `share` of it."""
    half = 1.96 * float(np.std(times_s, ddof=1)) / math.sqrt(len(times_s))
    return half <= share * float(np.mean(times_s))


def check_growth(counts: Sequence[int], times_s: Sequence[float]) -> None:
    """Raise unless time grows with the iterations: by at least half of what proportion would add,
    with at most 30 % of the longest time that stays."""
    growth, least = 1 - times_s[0] / times_s[-1], 0.5 * (1 - counts[0] / counts[-1])
    is_good = len(counts) > 1 and growth >= least
    if is_good:  # relative errors count equally at both ends
        _, intercept = np.polyfit(counts, times_s, 1, w=1.0 / np.asarray(times_s))
        is_good = intercept <= 0.3 * times_s[-1]
    if not is_good:
        shown = ", ".join(f"{n}: {time_s:.3g} s" for n, time_s in zip(counts, times_s, strict=True))
        msg = f"time does not grow with the iterations ({shown}): the work may have been removed"
        raise MeasurementError(msg)


def check_result(found: Array, expected: Array, tolerance: float = 0.0) -> None:
    """Raise unless a kernel computed what numpy computes, within a relative `tolerance`."""
    good = np.asarray(found == expected)
    if tolerance:
        wanted = expected.astype(np.float64)
        good = np.isclose(found.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)
    if not np.all(good):
        where = int(np.argmin(good))
        raise MeasurementError(
            f"the kernel's result {where} is {found.flat[where]}, "
            f"not {expected.flat[where]}: its time means nothing"
        )
