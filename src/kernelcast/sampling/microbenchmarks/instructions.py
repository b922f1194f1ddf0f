"""Occupancy roofline, peak and latencies of each kind of instruction (paper, III to V)."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import KernelcastError, MeasurementError
from kernelcast.records.machine import InstructionFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.microbenchmarks.bench import Array, Bench, Launch, Loop, LoopKernel
from kernelcast.sampling.microbenchmarks.findings import Effort, Findings, Measured, make_curve
from kernelcast.sampling.opencl import cl

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A kind of instruction: the paper's SP, MADD, INT, DP, SF and software-sf."""

    name: str
    """One of `records.machine.INSTRUCTIONS`."""
    dtype: str
    step: str
    """OpenCL C of one step on ``x``; ``a`` and ``b`` are read from a buffer."""
    model: Callable[[Array, Any, Any], Array]
    operations: int = 1
    """Operations that a step counts as; a multiply-add is two."""
    operands: tuple[float, float] = (0.0, 0.0)
    unroll: int = 16
    """Steps per iteration: less for what compilers put inline."""
    tolerance: float = 1e-3


# Additions are written ``a - x``: Intel's compiler takes ``x + a`` in a loop for a sum, reorders it
# without leave and adds 16 at once (measured: a chain 16 times as fast as the adder). 15 of them
# per iteration, so that an odd number of iterations ends in another value than it began with. All
# values stay near 1.
_ADD: dict[str, Any] = {
    "step": "a - x", "model": lambda x, a, _: a - x, "operands": (1.0, 0.0), "unroll": 15,
}  # fmt: skip
_FMA: dict[str, Any] = {
    "step": "mad(x, a, b)", "model": lambda x, a, b: x * a + b, "operations": 2,
    "operands": (0.5, 0.5),
}  # fmt: skip
_INTEGER: dict[str, Any] = {
    **_FMA, "step": "x * a + b", "operands": (1664525, 1013904223), "tolerance": 0.0,
}  # fmt: skip
_COSINE: dict[str, Any] = {"model": lambda x, a, _: np.cos(x) + a, "step": "cos(x)", "unroll": 1}
_NATIVE: dict[str, Any] = {**_COSINE, "step": "native_cos(x)", "unroll": 2, "tolerance": 2e-2}
INSTRUCTIONS = (
    Instruction(name="fp32", dtype="float", **_ADD),
    Instruction(name="fp32_fma", dtype="float", **_FMA),
    Instruction(name="int32", dtype="uint", **_INTEGER),
    Instruction(name="fp64", dtype="double", **_ADD),
    Instruction(name="fp64_fma", dtype="double", **_FMA),
    Instruction(name="native_special", dtype="float", **_NATIVE),
    Instruction(name="special", dtype="float", **_COSINE),
)
CHAINS = (1, 2, 4)
"""Independent chains of dependent instructions in a work-item: the paper's ILP."""
MOST_STREAMS = 128


class Shape(NamedTuple):
    """Independent chains of steps of a work-item, and elements of their vectors."""

    chains: int = 1
    width: int = 1

    @property
    def streams(self) -> int:
        """Steps that do not depend on each other."""
        return self.width * self.chains


# Scalars that a compiler may vectorise across work-items, and vectors where it does not.
PEAK_SHAPES = (
    Shape(1), Shape(2), Shape(4), Shape(8), Shape(1, 2), Shape(1, 4), Shape(4, 4), Shape(1, 8),
    Shape(2, 8), Shape(1, 16), Shape(4, 16), Shape(8, 16),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Work-groups that are active at once on every compute unit."""

    local_size: int
    groups_per_unit: int = 1
    """The paper's concWG."""
    runs: int = 1
    """Times that a compute unit is filled: the paper's runsCU."""
    local_bytes: int = 1
    """Local memory per work-group that admits no more of them at once: equation 2."""

    @property
    def items_per_unit(self) -> int:
        """Concurrent work-items on a compute unit."""
        return self.local_size * self.groups_per_unit

    def launch(self, units: int) -> Launch:
        """Make the launch on so many compute units."""
        items = self.items_per_unit * self.runs * units
        return Launch(items, self.local_size, self.local_bytes)


def make_loop(kind: Instruction, shape: Shape) -> Loop:
    """Make the row that takes ``kind.unroll`` steps of every chain per iteration.

    Examples
    --------
    >>> "float2 x0" in make_loop(INSTRUCTIONS[0], Shape(1, 2)).source
    True
    """
    scalar, dtype = kind.dtype, np.dtype({"float": "f4", "double": "f8", "uint": "u4"}[kind.dtype])
    # Starts of all chains, the operands, and what makes work-items differ.
    starts: Array = 0.5 + np.arange(MOST_STREAMS) / (4 * MOST_STREAMS)
    apart: float = 1 / 256
    if dtype.kind == "u":
        starts, apart = np.arange(1, MOST_STREAMS + 1) * 2654435761 % 2**32, 40503
    given = np.concatenate([starts, [*kind.operands, apart]]).astype(dtype)

    def expect(items: npt.NDArray[np.int64], iterations: int) -> Array:
        a, b, apart = given[MOST_STREAMS:]
        x = given[: shape.streams][None, :] + ((items % 64).astype(dtype) * apart)[:, None]
        for _ in range(iterations * kind.unroll):
            x = kind.model(x, a, b)
        return np.asarray(x.sum(axis=1, dtype=dtype))

    names = [f"x{number}" for number in range(shape.chains)]
    vector, load, elements = scalar, "in[{}]", names
    if shape.width > 1:
        vector, load = f"{scalar}{shape.width}", f"vload{shape.width}({{}}, in)"
        elements = [f"{name}.s{lane:x}" for name in names for lane in range(shape.width)]
    begin = "\n    ".join(
        f"{vector} {name} = {load.format(number)} + ({vector})own;"
        for number, name in enumerate(names)
    )
    steps = "\n        ".join([f"{name} = STEP({name});" for name in names] * kind.unroll)
    source = f"""
#define STEP(x) ({kind.step})
kernel void kc_loop(global {scalar} *out, global const {scalar} *in, local uchar *ballast, int n)
{{
    const size_t item = get_global_id(0);
    const {vector} a = ({vector})(in[{MOST_STREAMS}]), b = ({vector})(in[{MOST_STREAMS + 1}]);
    const {scalar} own = ({scalar})(item % 64) * in[{MOST_STREAMS + 2}];
    {begin}
    if (n < 0)
        ballast[get_local_id(0)] = 1;
    for (int i = 0; i < n; ++i) {{
        {steps}
    }}
    out[item] = {" + ".join(elements)};
}}
#undef STEP
"""
    return Loop(source=source, given=given, expect=expect, tolerance=kind.tolerance)


def plan_roofline(device: DeviceDescription, effort: Effort, warp_width: int) -> list[Occupancy]:
    """Plan the points of a roofline.

    A thread of a CPU device runs one work-group at a time, so the work-group's size is the
    concurrency; 8 of them per thread, so that two threads end together. On a GPU, launches of one
    run start as many work-groups as shall be active on each compute unit, up to the 64 warps that
    any known one can hold, and local memory keeps a unit from taking another one's.
    """
    most = device.max_work_group_size
    if device.kind is DeviceKind.CPU:
        sizes = effort.pick((1, 16, 64), (1, 4, 16, 64, 256), (1, 2, 4, 8, 16, 32, 64, 128, 256))
        return [Occupancy(local_size=size, runs=8) for size in sizes if size <= most]
    points = []
    for warps in effort.pick(
        (1, 4, 8, 16, 32, 64),
        (1, 2, 4, 8, 12, 16, 24, 32, 48, 64),
        (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    ):
        # As few equal work-groups as the device allows.
        splits = [number for number in range(1, warps + 1) if warps % number == 0]
        groups = next((one for one in splits if warps // one * warp_width <= most), warps)
        size, memory = min(warps // groups * warp_width, most), device.local_memory_bytes
        local_bytes = max(1, memory // groups)
        points.append(Occupancy(local_size=size, groups_per_unit=groups, local_bytes=local_bytes))
    return points


class InstructionRuns:
    """One kind of instruction on one device; each shape is built once and checked."""

    def __init__(self, bench: Bench, kind: Instruction, points: Iterable[Occupancy]) -> None:
        self.bench = bench
        self.kind = kind
        self._most_items = max(point.launch(bench.units).global_size for point in points)
        self._kernels: dict[Shape, LoopKernel] = {}
        self._lengths: dict[Shape, tuple[int, int]] = {}

    def build(self, shape: Shape) -> LoopKernel:
        """Build the kernel of a shape, or find it built."""
        if shape not in self._kernels:
            self._kernels[shape] = self._build(self.kind, shape)
        return self._kernels[shape]

    def time(self, shape: Shape, point: Occupancy, iterations: int) -> float:
        """Run once and measure the time in seconds."""
        return self.build(shape).time(point.launch(self.bench.units), iterations)

    def choose_length(self, shape: Shape, point: Occupancy, target_s: float | None = None) -> int:
        """Choose the iterations of a run; what the shape needed elsewhere is the first guess."""
        count, items = self._lengths.get(shape, (1, 1))
        first = int(count * min(items / point.items_per_unit, 1.0))
        run = partial(self.time, shape, point)
        chosen = self.bench.choose_length(run, target_s, first=first)
        self._lengths[shape] = chosen, point.items_per_unit
        return chosen

    def measure(self, shape: Shape, point: Occupancy) -> tuple[Measured, float]:
        """Measure a run; the steps that each compute unit took come along."""
        count = self.choose_length(shape, point)
        measured = self.bench.measure(partial(self.time, shape, point, count))
        return measured, self.count_steps(shape, point, count)

    def count_steps(self, shape: Shape, point: Occupancy, iterations: int) -> float:
        """Count the instructions that the work-items of one compute unit execute in a launch."""
        steps = iterations * self.kind.unroll * shape.streams
        return float(steps * point.items_per_unit * point.runs)

    def prove(self, shape: Shape, point: Occupancy) -> None:
        """Show that time grows with the iterations, and with the steps in each of them."""
        count = self.choose_length(shape, point)
        self.bench.prove_work(partial(self.time, shape, point), count)
        longer = self._build(replace(self.kind, unroll=2 * self.kind.unroll), shape)
        launch = point.launch(self.bench.units)
        runs = [partial(kernel.time, launch, count) for kernel in (self.build(shape), longer)]
        self.bench.prove(runs, check_steps)

    def _build(self, kind: Instruction, shape: Shape) -> LoopKernel:
        return LoopKernel(self.bench, make_loop(kind, shape), Launch(64, 64, 1), self._most_items)


def check_steps(times_s: Sequence[float]) -> None:
    """Raise unless twice the steps in a loop's body take about twice the time.

    Examples
    --------
    >>> check_steps([1.0, 1.9])
    """
    single_s, double_s = times_s
    if double_s < 1.6 * single_s:
        msg = (
            f"twice the steps per iteration take {double_s / single_s:.2f} times as long: "
            "the compiler may have folded them"
        )
        raise MeasurementError(msg)


def measure_instruction(bench: Bench, findings: Findings, *, kind: Instruction) -> None:
    """Measure rooflines at each ILP, the peak, the ridge point and both latencies."""
    if kind.dtype == "double" and not bench.description.has_fp64:
        findings.not_obtained[f"instructions/{kind.name}"] = "the device has no double precision"
        return
    points = plan_roofline(bench.description, bench.effort, bench.warp_width)
    # Launches that fill the device, with work-groups of two sizes.
    most = bench.description.max_work_group_size
    peaks = [
        Occupancy(local_size=size, runs=8 if bench.is_cpu else 16)
        for size in sorted({min(64, most), min(256, most)})
    ]
    runs = InstructionRuns(bench, kind, (*points, *peaks))
    facts = InstructionFacts(name=kind.name)
    for chains in CHAINS:
        with findings.attempting(f"latency/{kind.name}/ilp{chains}"):
            facts = _add_roofline(findings, runs, points, chains, facts)
    with findings.attempting(f"peak/{kind.name}"):
        facts = replace(facts, peak_per_s=_measure_peak(runs, peaks, findings.name))
    if facts != InstructionFacts(name=kind.name):
        findings.instructions.append(facts)


def _add_roofline(
    findings: Findings,
    runs: InstructionRuns,
    points: Sequence[Occupancy],
    chains: int,
    facts: InstructionFacts,
) -> InstructionFacts:
    """Measure a roofline; its ends are the latencies (equations 4 and 5), its bend the ridge."""
    kind, bench, shape = runs.kind, runs.bench, Shape(chains)
    runs.prove(shape, points[0])
    items, rates, latencies = [], [], []
    for point in points:
        measured, steps = runs.measure(shape, point)
        items.append(point.items_per_unit)
        rates.append(measured.as_rate(steps * bench.units * kind.operations, findings.name))
        # Time per instruction and warp: CPI_warp of the paper, in seconds.
        latencies.append(measured.as_trait(findings.name, bench.warp_width / steps))
    x_name = "concurrent work-items per compute unit"
    name = f"roofline/{kind.name}" + ("" if chains == 1 else f"/ilp{chains}")
    axes = (x_name, "operations per second")
    findings.curves.append(make_curve(name, axes, items, rates))
    name, axes = f"latency/{kind.name}/ilp{chains}", (x_name, "seconds per instruction and warp")
    findings.curves.append(make_curve(name, axes, items, latencies))
    issue, completion = (end(latencies, key=lambda one: one.value) for end in (min, max))
    ridge = facts.ridge_work_items
    if chains == 1:
        value = find_ridge(items, [one.value for one in rates])
        ridge = Trait(value=value, source=TraitSource.MEASURED, origin=findings.name)
    return replace(
        facts,
        ridge_work_items=ridge,
        issue_latency_s={**facts.issue_latency_s, chains: issue},
        completion_latency_s={**facts.completion_latency_s, chains: completion},
    )


def find_ridge(work_items: Sequence[int], rates: Sequence[float]) -> int:
    """Find the fewest work-items whose rate is within 5 % of the highest.

    Examples
    --------
    >>> find_ridge([32, 64, 128, 256], [1.0, 2.0, 3.9, 4.0])
    128
    """
    pairs = zip(work_items, rates, strict=True)
    return min(count for count, rate in pairs if rate >= 0.95 * max(rates))


def _measure_peak(runs: InstructionRuns, points: Sequence[Occupancy], origin: str) -> Trait[float]:
    """Screen all shapes, measure the best ones with care, choose the fastest that is proven."""
    point = points[0]
    counts = build_shapes(runs, point)
    if not counts:
        msg = "no kernel could be built that computes what numpy computes"
        raise MeasurementError(msg)
    # A few short runs of each shape, in rounds against disturbances.
    best_s = dict.fromkeys(counts, math.inf)
    for _ in range(2):
        runs.bench.session.settle()
        for shape, count in counts.items():
            seconds = min(runs.time(shape, point, count) for _ in range(3))
            best_s[shape] = min(best_s[shape], seconds)
    screened = {
        shape: best_s[shape] / runs.count_steps(shape, point, count)
        for shape, count in counts.items()
    }
    rates: list[tuple[Trait[float], Shape, Occupancy]] = []
    for shape in sorted(screened, key=lambda shape: screened[shape])[:2]:
        for point in points:
            measured, steps = runs.measure(shape, point)
            amount = steps * runs.kind.operations * runs.bench.units
            rates.append((measured.as_rate(amount, origin), shape, point))
    rates.sort(key=lambda one: -one[0].value)
    return choose_proven(rates, lambda one: runs.prove(one[1], one[2]))[0]


def build_shapes(runs: InstructionRuns, point: Occupancy) -> Mapping[Shape, int]:
    """Build the shapes that compute rightly, up to one that takes long; run lengths come along.

    rusticl takes 3 to 60 s for wide kernels of precise cosines, PoCL 0.3 s for any. Processor time
    counts: by the clock PoCL's took longer on a busy machine, and only its widest reach the peak.
    """
    counts: dict[Shape, int] = {}
    target_s = max(0.5e-3, 2 * runs.bench.launch_overhead_s)
    for shape in PEAK_SHAPES:
        start_s = time.process_time()
        try:
            runs.build(shape)
        except (KernelcastError, cl.Error):
            continue  # another shape will do
        build_s = time.process_time() - start_s
        counts[shape] = runs.choose_length(shape, point, target_s)
        if build_s > 1.0:
            break
    return counts


def choose_proven(candidates: Sequence[T], prove: Callable[[T], None]) -> T:
    """Choose the first whose work is proven: no number of a calibration is missed as a peak is.

    Raises
    ------
    MeasurementError
        If none is proven, as the last one says.
    """
    for candidate in candidates[:-1]:
        with suppress(MeasurementError):
            prove(candidate)
            return candidate
    prove(candidates[-1])
    return candidates[-1]
