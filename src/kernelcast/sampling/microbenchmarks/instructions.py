"""Occupancy roofline, peak and latencies of each kind of instruction (paper, III to V)."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceDescription, DeviceKind, Trait, TraitSource
from kernelcast.records.errors import KernelcastError, MeasurementError
from kernelcast.records.machine import InstructionFacts
from kernelcast.sampling.microbenchmarks.bench import (
    Array,
    Bench,
    BenchmarkResult,
    Effort,
    Launch,
    Measured,
    Row,
    add_lanes,
)
from kernelcast.sampling.opencl import cl


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
        return self.width * self.chains


# Scalars that a compiler may vectorise across work-items, and vectors where it does not.
PEAK_SHAPES = (
    Shape(1), Shape(2), Shape(4), Shape(8), Shape(1, 2), Shape(1, 4), Shape(4, 4), Shape(1, 8),
    Shape(2, 8), Shape(1, 16), Shape(4, 16), Shape(8, 16),
)  # fmt: skip


def make_row(kind: Instruction, shape: Shape, unroll: int) -> Row:
    """Make the row that takes so many steps of every chain per iteration."""
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
        for _ in range(iterations * unroll):
            x = kind.model(x, a, b)
        return np.asarray(x.sum(axis=1, dtype=dtype))

    names = [f"x{number}" for number in range(shape.chains)]
    vector, load = scalar, "in[{}]"
    if shape.width > 1:
        vector, load = f"{scalar}{shape.width}", f"vload{shape.width}({{}}, in)"
    macros = {
        "SCALAR": scalar,
        "VECTOR": vector,
        "STREAMS": MOST_STREAMS,
        "STARTS": " ".join(
            f"VECTOR {name} = {load.format(number)} + (VECTOR)own;"
            for number, name in enumerate(names)
        ),
        "STEP(x)": f"({kind.step})",
        "STEPS": " ".join([f"{name} = STEP({name});" for name in names] * unroll),
        "SUM": " + ".join(add_lanes(name, shape.width) for name in names),
    }
    return Row(
        section="instructions", macros=macros, given=given, expect=expect,
        tolerance=kind.tolerance,
    )  # fmt: skip


def plan_roofline(
    device: DeviceDescription, effort: Effort, warp_width: int, units: int
) -> dict[int, Launch]:
    """Plan launches by the work-items active at once on a compute unit: on a CPU a work-group's; on
    a GPU the paper's concWG, kept on its unit by local memory (equation 2)."""
    most, launches = device.max_work_group_size, {}
    if device.kind is DeviceKind.CPU:
        sizes = effort.pick((1, 16, 64), (1, 4, 16, 64, 256), (1, 2, 4, 8, 16, 32, 64, 128, 256))
        return {size: Launch(8 * size * units, size, 1) for size in sizes if size <= most}
    for warps in effort.pick(
        (1, 4, 8, 16, 32, 64),
        (1, 2, 4, 8, 12, 16, 24, 32, 48, 64),
        (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    ):
        # As few equal work-groups as the device allows.
        splits = [number for number in range(1, warps + 1) if warps % number == 0]
        groups = next((one for one in splits if warps // one * warp_width <= most), warps)
        size = min(warps // groups * warp_width, most)
        memory = max(1, device.local_memory_bytes // groups)
        launches[groups * size] = Launch(groups * size * units, size, memory)
    return launches


class InstructionRuns:
    """One kind of instruction on one device; each shape is built once and checked."""

    def __init__(self, bench: Bench, kind: Instruction, launches: Iterable[Launch]) -> None:
        self.bench = bench
        self.kind = kind
        most_items = max(launch.global_size for launch in launches)

        @cache
        def build(shape: Shape, times: int = 1) -> Callable[[Launch, int], float]:
            row = make_row(kind, shape, times * kind.unroll)
            return bench.open_row(row, Launch(64, 64, 1), most_items)

        self.build = build

    def measure(self, shape: Shape, launch: Launch) -> tuple[Measured, float]:
        run = partial(self.build(shape), launch)
        count = self.bench.choose_length(run)
        return self.bench.measure(partial(run, count)), self.count_steps(shape, launch, count)

    def count_steps(self, shape: Shape, launch: Launch, iterations: int) -> float:
        return float(launch.global_size * iterations * self.kind.unroll * shape.streams)

    def prove(self, shape: Shape, launch: Launch) -> None:
        """Show that time grows with the iterations, and with the steps in each of them."""
        runs = [partial(self.build(shape, times), launch) for times in (1, 2)]
        count = self.bench.choose_length(runs[0])
        self.bench.prove_work(runs[0], count)
        self.bench.prove([partial(run, count) for run in runs], check_steps)

    def measure_peak(self, launches: Sequence[Launch], origin: str) -> Trait[float]:
        """Screen all shapes, measure the best two with care, choose the fastest that is proven."""
        screened = self.screen_shapes(launches[0])
        rates: list[tuple[Trait[float], Shape, Launch]] = []
        for shape in sorted(screened, key=screened.__getitem__)[:2]:
            for launch in launches:
                measured, steps = self.measure(shape, launch)
                rate = measured.as_rate(steps * self.kind.operations, origin)
                rates.append((rate, shape, launch))
        reason = MeasurementError("no kernel could be built that computes what numpy computes")
        for rate, shape, launch in sorted(rates, key=lambda one: -one[0].value):
            try:
                self.prove(shape, launch)
            except MeasurementError as error:
                reason = error
            else:
                return rate
        raise reason

    def screen_shapes(self, launch: Launch) -> dict[Shape, float]:
        """Time a step of each shape that computes rightly, up to one that takes long to build
        (rusticl up to 60 s), by processor time: only PoCL's widest reach the peak."""
        screened: dict[Shape, float] = {}
        target_s = max(0.5e-3, 2 * self.bench.launch_overhead_s)
        for shape in PEAK_SHAPES:
            start_s = time.process_time()
            try:
                run = partial(self.build(shape), launch)
            except (KernelcastError, cl.Error):
                continue  # another shape will do
            build_s = time.process_time() - start_s
            count = self.bench.choose_length(run, target_s)
            best_s = min(run(count) for _ in range(6))
            screened[shape] = best_s / self.count_steps(shape, launch, count)
            if build_s > 1.0:
                break
        return screened


def check_steps(times_s: Sequence[float]) -> None:
    single_s, double_s = times_s
    if double_s < 1.6 * single_s:
        raise MeasurementError(
            f"twice the steps per iteration take {double_s / single_s:.2f} times as long: "
            "the compiler may have folded them"
        )


def measure_instruction(bench: Bench, result: BenchmarkResult, *, kind: Instruction) -> None:
    if kind.dtype == "double" and not bench.description.has_fp64:
        result.not_obtained[f"instructions/{kind.name}"] = "the device has no double precision"
        return
    points = plan_roofline(bench.description, bench.effort, bench.warp_width, bench.units)
    # Launches that fill the device, with work-groups of two sizes.
    most, groups = bench.description.max_work_group_size, (8 if bench.is_cpu else 16) * bench.units
    sizes = sorted({min(64, most), min(256, most)})
    peaks = [Launch(size * groups, size, 1) for size in sizes]
    runs = InstructionRuns(bench, kind, (*points.values(), *peaks))
    facts = InstructionFacts(name=kind.name)
    for chains in CHAINS:
        with result.attempting(f"latency/{kind.name}/ilp{chains}"):
            shape, rates, latencies = Shape(chains), [], []
            runs.prove(shape, min(points.values()))
            for launch in points.values():
                measured, steps = runs.measure(shape, launch)
                rates.append(measured.as_rate(steps * kind.operations, result.name))
                # Time of a compute unit per instruction and warp: CPI_warp of the paper, in
                # seconds.
                scale = bench.warp_width * bench.units / steps
                latencies.append(measured.as_trait(result.name, scale))
            x_name = "concurrent work-items per compute unit"
            name = f"roofline/{kind.name}" + ("" if chains == 1 else f"/ilp{chains}")
            result.draw(name, (x_name, "operations per second"), points, rates)
            name = f"latency/{kind.name}/ilp{chains}"
            result.draw(name, (x_name, "seconds per instruction and warp"), points, latencies)
            if chains == 1:
                value = find_ridge([*points], [one.value for one in rates])
                ridge = Trait(value=value, source=TraitSource.MEASURED, origin=result.name)
                facts = replace(facts, ridge_work_items=ridge)
            # A roofline's ends are the latencies (equations 4 and 5), its bend is the ridge.
            issue, completion = (end(latencies, key=lambda one: one.value) for end in (min, max))
            facts = replace(
                facts,
                issue_latency_s={**facts.issue_latency_s, chains: issue},
                completion_latency_s={**facts.completion_latency_s, chains: completion},
            )
    with result.attempting(f"peak/{kind.name}"):
        facts = replace(facts, peak_per_s=runs.measure_peak(peaks, result.name))
    if facts != InstructionFacts(name=kind.name):
        result.instructions += (facts,)


def find_ridge(work_items: Sequence[int], rates: Sequence[float]) -> int:
    pairs = zip(work_items, rates, strict=True)
    return min(count for count, rate in pairs if rate >= 0.95 * max(rates))
