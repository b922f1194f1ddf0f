"""What single operations cost: occupancy roofline, peak and latencies of each kind of instruction
(paper, III to V); clock, divergence, atomics, barriers, gathers, starts, launches.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceDescription, DeviceKind, Trait
from kernelcast.records.errors import KernelcastError, MeasurementError
from kernelcast.records.machine import InstructionFacts
from kernelcast.sampling.microbenchmarks.bench import (
    NEVER,
    Array,
    Bench,
    BenchmarkResult,
    Effort,
    Launch,
    Measured,
    Row,
    add_lanes,
    check_growth,
    check_result,
    make_trait,
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

        def check(times_s: Sequence[float]) -> None:
            single_s, double_s = times_s
            if double_s < 1.6 * single_s:
                raise MeasurementError(
                    f"twice the steps per iteration take {double_s / single_s:.2f} times as long: "
                    "the compiler may have folded them"
                )

        self.bench.prove([partial(run, count) for run in runs], check)

    def measure_peak(self, launches: Sequence[Launch], origin: str) -> Trait[float]:
        """Screen all shapes, up to one that takes long to build (rusticl up to 60 s), by processor
        time: only PoCL's widest reach the peak. Measure the best two with care, and choose the
        fastest that is proven."""
        screened: dict[Shape, float] = {}
        target_s = max(0.5e-3, 2 * self.bench.launch_overhead_s)
        for shape in PEAK_SHAPES:
            start_s = time.process_time()
            try:
                run = partial(self.build(shape), launches[0])
            except (KernelcastError, cl.Error):
                continue  # another shape will do
            build_s = time.process_time() - start_s
            count = self.bench.choose_length(run, target_s)
            best_s = min(run(count) for _ in range(6))
            screened[shape] = best_s / self.count_steps(shape, launches[0], count)
            if build_s > 1.0:
                break
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
                best = max(one.value for one in rates)
                value = next(
                    count for count, rate in zip(points, rates, strict=True)
                    if rate.value >= 0.95 * best
                )  # fmt: skip
                facts = replace(facts, ridge_work_items=make_trait(value, result.name))
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


_A, _B = np.uint32(1664525), np.uint32(1013904223)
_ADD_STEP, _MULTIPLY_STEP = "x = (x + a) ^ b;", "x = (x * a) ^ b;"
_FACTORS = (1664525, 22695477, 1103515245, 214013)
"""What each branch multiplies with, so that branches cannot be merged."""
READ_CYCLES = {
    "cl_nv_device_attribute_query":
        'asm volatile("mov.u64 %0, %%clock64;" : "=l"(into), "+r"(x) : : "memory");',
    "cl_amd_device_attribute_query":
        'asm volatile("s_memtime %0\\ns_waitcnt lgkmcnt(0)" : "=s"(into), "+v"(x) : : "memory");',
}  # fmt: skip
"""Statements that read a compute unit's cycles, by the extension of devices that have it."""


def _make_chain(steps: str, count: int, step: Callable[[Array], Array]) -> Row:
    """Make a row of so many dependent steps on one value per iteration."""

    def expect(items: npt.NDArray[np.int64], iterations: int) -> Array:
        x: Array = items.astype(np.uint32)
        for _ in range(iterations * count):
            x = step(x)
        return x

    given = np.array([_A, _B], dtype=np.uint32)
    return Row(section="chain", macros={"STEPS": steps}, given=given, expect=expect)


def measure_clock(bench: Bench, result: BenchmarkResult) -> None:
    """Count dependent instructions per second: on x86-64 (Intel since Nehalem, AMD since Zen) a
    step that adds takes two cycles, one that multiplies four, and only times as 2 to 4 are
    believed. GPUs count cycles themselves."""
    with result.attempting("clock_hz"):
        if not bench.is_cpu:
            known = (READ_CYCLES.get(name) for name in bench.description.extensions)
            statement = next(filter(None, known), None)
            if statement is None:
                msg = "the device has no counter of cycles that kernels are known to read"
                raise MeasurementError(msg)
            result.clock_hz = count_cycles(bench, statement)
            return
        adding = _make_chain(_ADD_STEP * 32, 32, lambda x: (x + _A) ^ _B)
        multiplying = _make_chain(_MULTIPLY_STEP * 32, 32, lambda x: (x * _A) ^ _B)
        added, added_count = bench.measure_row(adding, Launch(1, 1))
        multiplied, multiplied_count = bench.measure_row(multiplying, Launch(1, 1))
        ratio = (multiplied.minimum / multiplied_count) / (added.minimum / added_count)
        if abs(ratio - 2.0) > 0.12:
            raise MeasurementError(
                f"a step that multiplies takes {ratio:.2f} times one that adds, "
                "2.00 expected: latencies in cycles are not what they are taken for"
            )
        result.clock_hz = added.as_rate(2 * 32 * added_count, "clock")


def count_cycles(bench: Bench, statement: str, *, size: int = 256) -> Trait[float]:
    """Count a compute unit's cycles per second while all are at work."""
    launch = Launch(size * bench.units, size)
    cycles, out = bench.buffer(8), bench.buffer(4 * launch.global_size)
    kernel = bench.build("cycles", {"READ_CYCLES(into)": statement})

    def run(iterations: int) -> float:
        return bench.time(kernel, launch, cycles, out, iterations)

    iterations = bench.prove_work(run, bench.choose_length(run))
    # Each time by the cycles of its own launch: other programs lengthen both.
    measured = bench.measure(lambda: run(iterations) / float(bench.read(cycles, np.uint64, 1)[0]))
    clock_hz = measured.as_rate(1.0, "clock")
    if not 1e8 < clock_hz.value < 1e10:  # of any GPU
        msg = f"the device's counter of cycles goes at {clock_hz.value:.3g} Hz: it counts others"
        raise MeasurementError(msg)
    return clock_hz


def measure_divergence(bench: Bench, result: BenchmarkResult) -> None:
    """Vary how many neighbouring work-items take the same one of four branches (paper, V.D)."""
    size = min(256, bench.description.max_work_group_size)
    launch = Launch(16 * size * bench.units, size)
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if 4 * count <= size]
    macros = {f"FACTOR{number}": f"{factor}u" for number, factor in enumerate(_FACTORS)}
    rates, best = [], []
    with result.attempting("divergence"):
        for count in counts:

            def expect(items: Array, iterations: int, count: int = count) -> Array:
                factors = np.array(_FACTORS, dtype=np.uint32)[items % size // count % 4]
                x = items.astype(np.uint32)
                for _ in range(iterations * 16):
                    x = x * factors + _B
                return x

            given = np.array([_A, _B, count], dtype=np.uint32)
            row = Row(section="branches", macros=macros, given=given, expect=expect)
            measured, iterations = bench.measure_row(row, launch)
            rates.append(measured.as_rate(2.0 * 16 * iterations, "divergence"))
            best.append(iterations / measured.minimum)  # noise spares the shortest runs
        axes = ("neighbouring work-items that take the same branch", "operations per second")
        result.draw("divergence", axes, counts, rates)
        with result.attempting("warp_width"):
            if max(best) < 1.5 * best[0]:
                raise MeasurementError(
                    f"work-items that take different branches run at {best[0] / max(best):.0%} of "
                    "the rate of those that agree: they are not seen to be executed in lock-step"
                )
            pairs = zip(counts, best, strict=True)
            width = min(count for count, rate in pairs if rate >= 0.85 * max(best))
            note = " (work-items that the compiler vectorises together)" if bench.is_cpu else ""
            result.warp_width = make_trait(width, f"divergence{note}")


def measure_atomics(bench: Bench, result: BenchmarkResult) -> None:
    """Add integers atomically, at one address or each at its own beside the neighbour's."""
    size = min(64, bench.description.max_work_group_size)
    launch = Launch(16 * size * bench.units, size)
    places = (("same", 0), ("distinct", 1))
    for space, (place, apart) in itertools.product(("global", "local"), places):
        together = 1 if apart else size if space == "local" else launch.global_size

        def expect(items: Array, iterations: int, together: int = together) -> Array:
            return np.where(items % together == 0, 3 * iterations * together, 0)

        given = np.array([3, apart, apart], dtype=np.uint32)
        macros = {f"IN_{space.upper()}_MEMORY": 1}
        what = f"atomic_{space}_{place}_per_s"
        with result.attempting(what):
            row = Row(section="atomics", macros=macros, given=given, expect=expect)
            measured, additions = bench.measure_row(row, launch)
            result.costs[what] = measured.as_rate(additions, "atomics")


def measure_barriers(bench: Bench, result: BenchmarkResult) -> None:
    """Time loops of eight barriers against the same loops with one: without any PoCL is 35 times as
    slow, since it vectorises across work-items between barriers only."""
    usual = 64
    costs: dict[int, Trait[float]] = {}
    fenced = f"{_ADD_STEP} barrier(CLK_LOCAL_MEM_FENCE);"
    rows = [
        _make_chain(steps, 8, lambda x: (x + _A) ^ _B)
        for steps in (fenced * 8, _ADD_STEP * 7 + fenced)
    ]
    for size in bench.effort.pick((usual,), *((1, 4, 16, usual, 256),) * 2):
        launch = Launch(8 * size * bench.units, size)
        with result.attempting("barrier_s" if size == usual else f"barrier/{size}"):
            if size > bench.description.max_work_group_size:
                raise MeasurementError(f"the device has no work-groups of {size} work-items")
            many, one = (partial(bench.open_row(row, launch), launch) for row in rows)
            measured, iterations = bench.measure_loop(many)
            least = bench.measure(partial(one, iterations))
            costs[size] = measured.beyond(least, "barrier", 1 / (iterations * 7 * 8))
    if usual in costs:
        result.costs["barrier_s"] = costs[usual]
    if costs:
        axes = ("work-items of a work-group", "seconds per barrier and work-group")
        result.draw("barrier", axes, costs, list(costs.values()))


def measure_gathers(bench: Bench, result: BenchmarkResult) -> None:
    """Load from L1 at addresses of which no two neighbours' lie side by side."""
    with result.attempting("gather_lane_s"):
        generator = np.random.default_rng(7)
        size, most = min(64, bench.description.max_work_group_size), 2**16
        content = generator.integers(0, 2**32, size=(64, 32), dtype=np.uint32)
        chosen = generator.permutation(64)[:size]
        cells, places = bench.buffer(content), bench.buffer((32 * chosen).astype(np.int32))
        kernel, out = bench.build("gather"), bench.buffer(4 * size * most)

        def run(groups: int) -> float:
            return bench.time(kernel, Launch(groups * size, size), out, cells, places)

        measured, groups = bench.measure_loop(run, most)
        sums = content.sum(axis=1, dtype=np.uint32)[chosen]
        check_result(bench.read(out, np.uint32, size * groups), np.tile(sums, groups))
        scale = bench.units / (groups * size * 32)
        result.costs["gather_lane_s"] = measured.as_trait("gathers", scale)


def measure_dispatch(bench: Bench, result: BenchmarkResult) -> None:
    with result.attempting("work_group_dispatch_s"):
        kernel, sink = bench.build("idle"), bench.buffer(4)

        def run(groups: int) -> float:
            return bench.time(kernel, Launch(groups, 1), sink, NEVER)

        most = 256 * max(4, bench.choose_length(lambda count: run(256 * count), most=2**12))
        counts = [most // 4, most // 2, most]
        times = [bench.measure(partial(run, count)) for count in counts]
        check_growth(counts, [one.minimum for one in times])
        cost = times[-1].beyond(times[0], "dispatch", 1 / (counts[-1] - counts[0]))
        result.costs["work_group_dispatch_s"] = cost
        traits = [one.as_trait("dispatch") for one in times]
        result.draw("dispatch", ("empty work-groups", "seconds"), counts, traits)
    if bench.description.kind is DeviceKind.GPU:
        with result.attempting("dispatch_row_order"):
            # The rank correlation of work-groups' numbers and of tickets drawn at begins.
            size = min(64, bench.description.max_work_group_size)
            rows = 4 * bench.description.compute_units
            buffers = (bench.buffer(4), bench.buffer(4 * 64 * rows), bench.buffer(4))
            kernel = bench.build("order")
            kernel.set_args(*buffers, np.int32(500))
            cl.enqueue_nd_range_kernel(bench.session.queue, kernel, (64 * size, rows), (size, 1))
            tickets = bench.read(buffers[1], np.int32, 64 * rows)
            correlation = round(float(np.corrcoef(tickets, np.arange(64 * rows))[0, 1]), 6)
            result.costs["dispatch_row_order"] = make_trait(correlation, "dispatch")


def measure_launch(bench: Bench, result: BenchmarkResult) -> None:
    queue, sink, kernel = bench.session.queue, bench.buffer(4), bench.build("idle")
    kernel.set_args(sink, NEVER)

    def finish(count: int) -> float:
        start_s = time.perf_counter()
        for _ in range(count):
            cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,))
        queue.finish()
        return (time.perf_counter() - start_s) / count

    for what, count in (("launch_s", 1), ("launch_in_batch_s", 32)):
        with result.attempting(what):
            result.costs[what] = bench.measure(partial(finish, count)).as_trait("launch")
