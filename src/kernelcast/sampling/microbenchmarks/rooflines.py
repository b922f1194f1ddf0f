"""Occupancy roofline, peak and latencies of one kind of instruction (paper, III to V)."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import KernelcastError, MeasurementError
from kernelcast.records.machine import Curve, InstructionFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks.findings import BenchmarkResult, Findings
from kernelcast.sampling.microbenchmarks.harness import Bench
from kernelcast.sampling.microbenchmarks.instruction_kernels import InstructionKind, Shape
from kernelcast.sampling.microbenchmarks.instruction_runs import (
    InstructionRuns,
    OccupancyPoint,
    plan_points,
)
from kernelcast.sampling.microbenchmarks.statistics import Measured, as_rate, as_trait, make_curve
from kernelcast.sampling.opencl import cl

_Found = TypeVar("_Found")

CHAINS = (1, 2, 4)
"""Independent instructions in a kernel: the paper's ILP."""
_NEAR_PEAK = 0.95
_PEAK_SHAPES = (
    Shape(chains=1), Shape(chains=2), Shape(chains=4), Shape(chains=8),
    Shape(width=2), Shape(width=4), Shape(width=4, chains=4), Shape(width=8),
    Shape(width=8, chains=2), Shape(width=16), Shape(width=16, chains=4),
    Shape(width=16, chains=8),
)  # fmt: skip
"""Scalars that a compiler may vectorise across work-items, and vectors where it does not."""
_PEAK_SIZES = (64, 256)
_PEAK_GROUPS = 8
_SCREENING_S = 0.5e-3
_SCREENED = 3
_ROUNDS = 2
_FINALISTS = 2
# Processor time: rusticl takes 3 to 60 s for wide kernels of precise cosines, PoCL 0.3 s for any.
# By the clock PoCL's took longer on a busy machine, and only its widest ones reach the peak.
_LONGEST_BUILD_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """One point of a roofline."""

    at: OccupancyPoint
    measured: Measured
    steps_per_unit: float
    """Instructions that the work-items of one compute unit executed."""

    @property
    def latency_scale(self) -> float:
        """Turns the launch's time into time per instruction and warp: one over instrRun."""
        return self.at.warp_width / self.steps_per_unit

    @property
    def latency_s(self) -> float:
        """CPI_warp of the paper, in seconds."""
        return self.measured.median * self.latency_scale


def measure_instruction(bench: Bench, kind: InstructionKind) -> BenchmarkResult:
    """Measure rooflines at each ILP, the peak, the ridge point and both latencies.

    A number that the device cannot give or that proves nothing is noted as not obtained.
    """
    findings = Findings(f"instructions-{kind.name}")
    if kind.type_name == "double" and not bench.description.has_fp64:
        findings.not_obtained[f"instructions/{kind.name}"] = "the device has no double precision"
        return findings.result()
    points = plan_points(bench.description, bench.effort, warp_width=bench.warp_width)
    peaks = plan_peak_points(bench.description, warp_width=bench.warp_width)
    most = max(point.global_size(bench.units) for point in (*points, *peaks))
    runs = InstructionRuns(bench, kind, most)
    rooflines = {}
    for chains in CHAINS:
        with findings.attempting(f"latency/{kind.name}/ilp{chains}"):
            rooflines[chains] = _measure_roofline(runs, chains, points)
            findings.curves += _draw(runs, chains, rooflines[chains])
    peak: Trait[float] | None = None
    with findings.attempting(f"peak/{kind.name}"):
        peak = _measure_peak(runs, peaks, findings.name)
    if peak or rooflines:
        findings.instructions.append(_describe(kind, peak, rooflines, findings.name))
    return findings.result()


def plan_peak_points(device: DeviceDescription, *, warp_width: int) -> tuple[OccupancyPoint, ...]:
    """Plan launches that fill the device, with work-groups of two sizes."""
    runs = _PEAK_GROUPS if device.kind is DeviceKind.CPU else 2 * _PEAK_GROUPS
    sizes = sorted({min(size, device.max_work_group_size) for size in _PEAK_SIZES})
    return tuple(
        OccupancyPoint(local_size=size, runs=runs, warp_width=warp_width) for size in sizes
    )


def find_ridge(work_items: Sequence[int], rates: Sequence[float]) -> int:
    """Find the fewest work-items whose rate is within 5 % of the highest.

    Examples
    --------
    >>> find_ridge([32, 64, 128, 256], [1.0, 2.0, 3.9, 4.0])
    128
    """
    peak = max(rates)
    pairs = zip(work_items, rates, strict=True)
    return min(count for count, rate in pairs if rate >= _NEAR_PEAK * peak)


def _measure_roofline(
    runs: InstructionRuns, chains: int, points: Sequence[OccupancyPoint]
) -> list[RooflinePoint]:
    shape = Shape(chains=chains)
    runs.prove(shape, points[0])
    measured = []
    for point in points:
        found, steps = runs.measure(shape, point)
        measured.append(RooflinePoint(at=point, measured=found, steps_per_unit=steps))
    return measured


def _draw(runs: InstructionRuns, chains: int, points: Sequence[RooflinePoint]) -> list[Curve]:
    """Draw rate and time per instruction over the concurrency (paper, Fig. 2 and 3)."""
    name = runs.kind.name
    x_name = "concurrent work-items per compute unit"
    x = [point.at.work_items_per_unit for point in points]
    rates = [
        as_rate(point.measured, point.steps_per_unit * runs.bench.units * runs.kind.operations, "")
        for point in points
    ]
    times = [as_trait(point.measured, "", scale=point.latency_scale) for point in points]
    suffix = "" if chains == 1 else f"/ilp{chains}"
    return [
        make_curve(f"roofline/{name}{suffix}", x_name, "operations per second", x, rates),
        make_curve(
            f"latency/{name}/ilp{chains}", x_name, "seconds per instruction and warp", x, times
        ),
    ]


def _measure_peak(
    runs: InstructionRuns, points: Sequence[OccupancyPoint], origin: str
) -> Trait[float]:
    """Screen all shapes, measure the best ones with care, give the fastest that is proven."""
    screened = _screen(runs, points[0])
    if not screened:
        msg = "no kernel could be built that computes what numpy computes"
        raise MeasurementError(msg)
    finalists = sorted(screened, key=lambda shape: -screened[shape])[:_FINALISTS]
    operations = runs.kind.operations * runs.bench.units
    found: list[tuple[Trait[float], Shape, OccupancyPoint]] = []
    for shape in finalists:
        for point in points:
            measured, steps = runs.measure(shape, point)
            found.append((as_rate(measured, steps * operations, origin), shape, point))
    best = sorted(found, key=lambda one: -one[0].value)
    return choose_proven(best, lambda one: runs.prove(one[1], one[2]))[0]


def choose_proven(found: Sequence[_Found], prove: Callable[[_Found], None]) -> _Found:
    """Give the first whose work is proven: no number of a calibration is missed as a peak is.

    Raises
    ------
    MeasurementError
        If none is proven, as the last one says.
    """
    for one in found[:-1]:
        with suppress(MeasurementError):
            prove(one)
            return one
    prove(found[-1])
    return found[-1]


def _screen(runs: InstructionRuns, point: OccupancyPoint) -> dict[Shape, float]:
    """Give the best rate of a few short runs of each shape, in rounds against disturbances."""
    counts = build_shapes(runs, point)
    best_s = dict.fromkeys(counts, math.inf)
    for _ in range(_ROUNDS):
        runs.bench.session.settle()
        for shape, count in counts.items():
            seconds = min(runs.time(shape, point, count) for _ in range(_SCREENED))
            best_s[shape] = min(best_s[shape], seconds)
    return {
        shape: runs.steps_per_unit(shape, point, count) / best_s[shape]
        for shape, count in counts.items()
    }


def build_shapes(runs: InstructionRuns, point: OccupancyPoint) -> dict[Shape, int]:
    """Build the shapes that compute rightly, up to one that takes long; give run lengths."""
    counts: dict[Shape, int] = {}
    target_s = max(_SCREENING_S, 2 * runs.bench.launch_overhead_s)
    for shape in _PEAK_SHAPES:
        start_s = time.process_time()
        try:
            runs.kernel(shape)
        except (KernelcastError, cl.Error):
            continue  # another shape will do
        build_s = time.process_time() - start_s
        counts[shape] = runs.choose_length(shape, point, target_s)
        if build_s > _LONGEST_BUILD_S:
            break
    return counts


def _describe(
    kind: InstructionKind,
    peak: Trait[float] | None,
    rooflines: dict[int, list[RooflinePoint]],
    origin: str,
) -> InstructionFacts:
    """Read ridge point and latencies (equations 4 and 5) off the rooflines."""
    issue, completion = {}, {}
    for chains, points in rooflines.items():
        fastest = min(points, key=lambda point: point.latency_s)
        slowest = max(points, key=lambda point: point.latency_s)
        issue[chains] = as_trait(fastest.measured, origin, scale=fastest.latency_scale)
        completion[chains] = as_trait(slowest.measured, origin, scale=slowest.latency_scale)
    ridge = None
    if 1 in rooflines:
        counts = [point.at.work_items_per_unit for point in rooflines[1]]
        rates = [point.steps_per_unit / point.measured.median for point in rooflines[1]]
        value = find_ridge(counts, rates)
        ridge = Trait(value=value, source=TraitSource.MEASURED, origin=origin)
    return InstructionFacts(
        name=kind.name,
        peak_per_s=peak,
        ridge_work_items=ridge,
        issue_latency_s=issue,
        completion_latency_s=completion,
    )
