"""What single operations cost: clock, divergence, atomics, barriers, gathers, starts, launches."""

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import MeasurementError
from kernelcast.sampling.microbenchmarks.bench import (
    NEVER,
    Array,
    Bench,
    BenchmarkResult,
    Launch,
    Measured,
    Row,
    check_growth,
    check_result,
)
from kernelcast.sampling.opencl import cl

_A, _B = np.uint32(1664525), np.uint32(1013904223)
_ADD, _MULTIPLY = "x = (x + a) ^ b;", "x = (x * a) ^ b;"
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
        adding = _make_chain(_ADD * 32, 32, lambda x: (x + _A) ^ _B)
        multiplying = _make_chain(_MULTIPLY * 32, 32, lambda x: (x * _A) ^ _B)
        added, added_count = bench.measure_row(adding, Launch(1, 1))
        multiplied, multiplied_count = bench.measure_row(multiplying, Launch(1, 1))
        ratio = (multiplied.minimum / multiplied_count) / (added.minimum / added_count)
        result.clock_hz = judge_clock(added, 32 * added_count, ratio)


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


def judge_clock(added: Measured, steps: float, ratio: float) -> Trait[float]:
    """Read the clock if a step that multiplies takes twice as long as one that adds, within 6 %."""
    if abs(ratio - 2.0) > 0.12:
        raise MeasurementError(
            f"a step that multiplies takes {ratio:.2f} times one that adds, "
            "2.00 expected: latencies in cycles are not what they are taken for"
        )
    return added.as_rate(2 * steps, "clock")


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
            note = " (work-items that the compiler vectorises together)" if bench.is_cpu else ""
            result.warp_width = Trait(
                value=infer_width(counts, best),
                source=TraitSource.MEASURED,
                origin=f"divergence{note}",
            )


def infer_width(counts: Sequence[int], rates: Sequence[float]) -> int:
    """Infer how many work-items are executed in lock-step, from rates by agreeing neighbours."""
    best = max(rates)
    if best < 1.5 * rates[0]:
        raise MeasurementError(
            f"work-items that take different branches run at {rates[0] / best:.0%} of the rate of "
            "those that agree: they are not seen to be executed in lock-step"
        )
    return min(count for count, rate in zip(counts, rates, strict=True) if rate >= 0.85 * best)


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
    fenced = f"{_ADD} barrier(CLK_LOCAL_MEM_FENCE);"
    rows = [
        _make_chain(steps, 8, lambda x: (x + _A) ^ _B) for steps in (fenced * 8, _ADD * 7 + fenced)
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
            result.costs["dispatch_row_order"] = find_row_order(bench)


def find_row_order(bench: Bench) -> Trait[float]:
    """Find the rank correlation of work-groups' numbers and of tickets drawn at begins."""
    size, rows = min(64, bench.description.max_work_group_size), 4 * bench.description.compute_units
    buffers = (bench.buffer(4), bench.buffer(4 * 64 * rows), bench.buffer(4))
    kernel = bench.build("order")
    kernel.set_args(*buffers, np.int32(500))
    cl.enqueue_nd_range_kernel(bench.session.queue, kernel, (64 * size, rows), (size, 1))
    tickets = bench.read(buffers[1], np.int32, 64 * rows)
    correlation = round(float(np.corrcoef(tickets, np.arange(64 * rows))[0, 1]), 6)
    return Trait(value=correlation, source=TraitSource.MEASURED, origin="dispatch")


def measure_launch(bench: Bench, result: BenchmarkResult) -> None:
    """Measure an empty launch: alone, and in a batch."""
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
