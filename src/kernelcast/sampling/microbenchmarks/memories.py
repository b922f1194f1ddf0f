"""Memories: sizes, latencies and bandwidths of every level by random walks and working sets, of
global memory by streams, and transfers between host and device."""

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from kernelcast.records.device import Trait, TraitSource
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import CacheFacts, MemoryFacts
from kernelcast.sampling.microbenchmarks.bench import (
    LEAST_SPREAD,
    MOST_ITERATIONS,
    Array,
    Bench,
    BenchmarkResult,
    Launch,
    add_lanes,
    check_result,
    make_trait,
    summarise,
)
from kernelcast.sampling.microbenchmarks.fits import find_undisturbed, fit_levels
from kernelcast.sampling.opencl import cl, mapped_memory

STRIDE_BYTES = 64
"""Bytes from one element to the next: a line of most caches, so that each step is a new line."""
_LARGE_PAGE_BYTES = 2**21
_UNROLLED = 64
"""Steps of a walk per iteration."""
_FILLED = frozenset({"local", "private"})
"""Spaces whose array a walk has to fill first."""


def measure_caches(bench: Bench, result: BenchmarkResult) -> None:
    """Measure sizes, latencies and bandwidths of the caches, and the latency beyond them."""
    caches: list[CacheFacts] = []
    with result.attempting("caches"):
        # A walk through up to four times the last cache finds sizes and latencies.
        known = bench.last_cache_bytes * (1 if bench.is_cpu else bench.effort.pick(1, 2, 4))
        most, per_octave = min(4 * known, bench.most_bytes), bench.effort.pick(3, 4, 6)
        levels, beyond_s = _walk(bench, result, "global", most, per_octave)
        result.memories += (MemoryFacts(space="global", latency_s=beyond_s),)
        caches, remarks = match_caches(levels, bench.host_caches)
        result.not_obtained.update(remarks)
        # The line that the driver reports, where nobody else did, is the last cache's.
        line = int(bench.session.device.global_mem_cacheline_size)
        if caches and caches[-1].line_bytes is None and line > 0:
            reported = Trait(value=line, source=TraitSource.REPORTED, origin="driver")
            caches[-1] = replace(caches[-1], line_bytes=reported)
    with result.attempting("caches/load_bytes_per_s"):
        caches = caches and _add_bandwidths(bench, result, caches)
    result.caches = tuple(caches)


def measure_spaces(bench: Bench, result: BenchmarkResult) -> None:
    most_constant = int(bench.session.device.max_constant_buffer_size)
    for space, most in (
        ("local", bench.description.local_memory_bytes // 2),  # the runtime may keep some
        ("constant", min(most_constant, 2**22)),
        ("private", 2**15),
    ):
        with result.attempting(f"memories/{space}/latency_s"):
            _, latency_s = _walk(bench, result, space, most, bench.effort.pick(1, 2, 3))
            result.memories += (MemoryFacts(space=space, latency_s=latency_s),)


def make_sizes(least: int, most: int, per_octave: int, unit: int) -> list[int]:
    count = max(2, round(math.log2(most / least) * per_octave) + 1)
    return sorted({round(size) * unit for size in np.geomspace(least, most, count) / unit})


def _walk(
    bench: Bench, result: BenchmarkResult, space: str, most_bytes: int, per_octave: int
) -> tuple[list[CacheFacts], Trait[float]]:
    """Measure latency over the size of an array, find levels, and the latency beyond them; in
    several passes with other cycles, since a busy neighbour disturbs a size in one pass only."""
    run_s, passes, warm_s = bench.effort.pick((6e-4, 2, 0.05), (1e-3, 3, 0.1), (1.5e-3, 4, 0.25))
    if not bench.session.uses_event_timer:
        run_s = max(run_s, 6 * bench.launch_overhead_s)
    sizes, origin = make_sizes(2048, most_bytes, per_octave, STRIDE_BYTES), f"walk/{space}"
    walk = Walk(bench, space, sizes[-1])
    walk.lay_out(sizes[0])
    most = walk.most_iterations
    first = bench.choose_length(walk.time_steps, 2 * run_s, most=most)
    bench.prove_work(walk.time_steps, first, most=most)
    shortest, usual = np.full(len(sizes), math.inf), np.full(len(sizes), math.inf)

    def visit(index: int) -> None:
        walk.lay_out(sizes[index])
        times = walk.time_runs(run_s, warm_s)
        shortest[index] = min(shortest[index], *times)
        usual[index] = min(usual[index], statistics.median(times))

    for index in [*range(len(sizes))] * passes:
        visit(index)
    for _ in range(2):
        for index in np.flatnonzero(~find_undisturbed(shortest)).tolist():
            visit(index)
    points = zip(shortest.tolist(), usual.tolist(), strict=True)
    traits = [make_trait(low, origin, low, high) for low, high in points]
    result.draw(origin, ("size of the array in bytes", "seconds per dependent load"), sizes, traits)
    if len(sizes) < 6:
        return [], summarise(shortest.tolist(), spread=LEAST_SPREAD).as_trait(origin)
    array_sizes = np.array(sizes, dtype=np.float64)
    return fit_levels(array_sizes, shortest, is_host=bench.is_cpu, origin=origin)


class Walk:
    """A kernel that walks in one address space of a device."""

    def __init__(self, bench: Bench, space: str, most_bytes: int) -> None:
        self._bench, self._space = bench, space
        context, flags = bench.session.context, cl.mem_flags
        if bench.is_cpu:
            # In large pages, which NumPy asks Linux for: in those of 4 KiB each step beyond some
            # MiB misses translation buffers, and a cache of 1 MiB looks like 0.5 to 1.5.
            whole_bytes = -(-most_bytes // _LARGE_PAGE_BYTES) * _LARGE_PAGE_BYTES
            memory = np.empty(whole_bytes + _LARGE_PAGE_BYTES, dtype=np.uint8)
            start = -memory.ctypes.data % _LARGE_PAGE_BYTES
            content = memory[start : start + most_bytes]
            content[:] = 0
            own = flags.READ_WRITE | flags.USE_HOST_PTR
            self._memory = cl.Buffer(context, own, hostbuf=content)
        else:
            self._memory = cl.Buffer(context, flags.READ_WRITE, size=most_bytes)
        self._kernel = bench.build(
            "walk",
            {f"IN_{space.upper()}": 1, "STRIDE": STRIDE_BYTES // 4, "ELEMENTS": most_bytes // 4},
        )
        self._result = bench.buffer(4)
        self._generator = np.random.default_rng(20170911)
        self._order = np.zeros(1, dtype=np.uint32)
        self._position = 0

    @property
    def most_iterations(self) -> int:
        """Iterations of one launch, after the loop that fills a local or private array."""
        return MOST_ITERATIONS - (len(self._order) if self._space in _FILLED else 0)

    def lay_out(self, size_bytes: int) -> None:
        length = max(2, size_bytes // STRIDE_BYTES)
        # A random cycle; the paper's swaps may make short cycles.
        self._order = self._generator.permutation(length).astype(np.uint32)
        successors = np.empty_like(self._order)
        successors[self._order] = np.roll(self._order, -1)
        self._position = 0
        queue, flags = self._bench.session.queue, cl.map_flags.WRITE_INVALIDATE_REGION
        # Mapped, because a runtime on the host then need not copy the memory.
        with mapped_memory(queue, self._memory, length * STRIDE_BYTES, flags) as mapped:
            cells = mapped.view(np.uint32).reshape(length, -1)
            cells[:, 0] = successors * np.uint32(STRIDE_BYTES // 4)

    def time_steps(self, iterations: int) -> float:
        length = len(self._order)
        start = int(self._order[self._position]) * STRIDE_BYTES // 4
        local = [cl.LocalMemory(length * STRIDE_BYTES)] if self._space == "local" else []
        words = (np.uint32(length), np.uint32(start))
        arguments = (self._memory, *local, self._result, *words, iterations)
        seconds = self._bench.time(self._kernel, Launch(1, 1), *arguments)
        self._position = (self._position + iterations * _UNROLLED) % length
        expected = int(self._order[self._position]) * STRIDE_BYTES // 4
        end = int(self._bench.read(self._result, np.uint32, 1)[0])
        if end != expected:
            msg = f"a walk ended at {end}, not at {expected}: its time means nothing"
            raise MeasurementError(msg)
        return seconds

    def time_runs(self, run_s: float, warm_s: float) -> list[float]:
        """Warm up, and measure seconds per step of four runs of about `run_s`, less the shortest of
        as many short runs: filling local or private memory does not count."""
        left = -(-len(self._order) // _UNROLLED)
        while left > 0 and warm_s > 0:
            warm_s -= self.time_steps(min(left, 4096))
            left -= 4096
        most = self.most_iterations
        iterations = self._bench.choose_length(self.time_steps, run_s, most=most)
        times = [self.time_steps(iterations) for _ in range(4)]
        few, filling_s = 0, 0.0
        if self._space in _FILLED:
            few = max(1, iterations // 16)
            filling_s = min(self.time_steps(few) for _ in range(4))
        if min(times) <= filling_s or few == iterations:
            msg = f"{iterations} steps take {min(times):.3g} s, {few} {filling_s:.3g} s"
            raise MeasurementError(msg)
        return [(seconds - filling_s) / ((iterations - few) * _UNROLLED) for seconds in times]


def match_caches(
    levels: list[CacheFacts], host_caches: Sequence[CacheFacts]
) -> tuple[list[CacheFacts], dict[str, str]]:
    """Join levels of a walk with reported caches of sizes within a factor of four, the nearest
    pairs first; beyond a factor of two they disagree, which is remarked."""
    if not host_caches:
        return levels, {}
    reported = {one.name: one.size_bytes.value for one in host_caches if one.size_bytes}
    found = {one.name: one.size_bytes for one in levels if one.size_bytes}
    distances = sorted(
        (abs(math.log(measured.value / size)), name, level)
        for level, measured in found.items()
        for name, size in reported.items()
    )
    chosen: dict[str, tuple[float, CacheFacts]] = {}
    left = {level.name: level for level in levels}
    for distance, name, level in distances:
        if distance <= math.log(4) and name not in chosen and level in left:
            chosen[name] = distance, left.pop(level)
    caches, remarks = [], {}
    for cache in host_caches:
        name, size = cache.name, reported[cache.name]
        if name not in chosen:
            remarks[f"caches/{name}/latency_s"] = (
                f"no step of the random walk is near the {size} bytes that the operating system "
                "reports"
            )
            caches.append(cache)
            continue
        distance, walked = chosen[name]
        measured = found[walked.name]
        if distance > math.log(2):
            remarks[f"caches/{name}/agreement"] = (
                f"measured {measured.value} bytes, the operating system reports {size}: "
                "others may use the cache, or a hypervisor may give a part of it"
            )
        said = f"{measured.origin}; the operating system reports {size} bytes"
        measured = replace(measured, origin=said)
        caches.append(replace(cache, size_bytes=measured, latency_s=walked.latency_s))
    for level in left:
        remarks[f"caches/step at {found[level].value} bytes"] = (
            "a step of the random walk belongs to no cache that the operating system "
            "reports: translation buffers or neighbours"
        )
    return caches, remarks


class WorkingSets:
    """Kernels that read or copy a working set again and again, all compute units together."""

    def __init__(
        self, bench: Bench, shape: tuple[int, int], content: Array, array: cl.Buffer
    ) -> None:
        self._bench, self._content, self._array = bench, content, array
        self._local_size, self._words = shape
        # Several per compute unit, since runtimes hand them out by the handful.
        self.groups = 4 * bench.description.compute_units
        macros = {
            "TYPE": "uint" if self._words == 1 else f"uint{self._words}",
            "SUM": add_lanes("total", self._words),
        }
        self._kernels = [bench.build(name, macros) for name in ("load", "copy")]

    def measure(self, origin: str, size_bytes: int, *, is_copy: bool = False) -> Trait[float]:
        bench, kernel = self._bench, self._kernels[is_copy]
        items, count = self.groups * self._local_size, size_bytes // (4 * self._words)
        written = size_bytes * self.groups // 4 if is_copy else items
        blocks = count // (16 * self._local_size)
        if blocks > MOST_ITERATIONS or (is_copy and written > len(self._content)):
            msg = f"a set of {size_bytes} bytes is more than a launch can read or copy"
            raise MeasurementError(msg)
        output, most = bench.buffer(4 * written), max(1, MOST_ITERATIONS // (blocks + 1))

        def run(rounds: int) -> float:
            launch = Launch(items, self._local_size)
            return bench.time(kernel, launch, self._array, output, rounds, count)

        rounds = bench.choose_length(run, most=most)
        if rounds >= 4:  # fewer can prove nothing
            rounds = bench.prove_work(run, rounds, most=most)
        measured = bench.measure(partial(run, rounds))
        found, expected = bench.read(output, np.uint32, written), self._content[:written]
        if not is_copy:
            found = found.reshape(self.groups, -1).sum(axis=1, dtype=np.uint32)
            once = int(self._content[: size_bytes // 4].sum(dtype=np.uint32))
            expected = np.full(self.groups, once * rounds % 2**32, dtype=np.uint32)
        check_result(found, expected)
        return measured.as_rate((1 + is_copy) * rounds * size_bytes * self.groups, origin)


def _add_bandwidths(
    bench: Bench, result: BenchmarkResult, caches: list[CacheFacts]
) -> list[CacheFacts]:
    """Read working sets of all sizes as is fastest, and copy half of every cache."""
    # Work-items of a work-group, and words that each reads at once.
    shapes = [(1, 16), (16, 1), (16, 4)] if bench.is_cpu else [(256, 1), (256, 4), (512, 2)]
    able = [one for one in shapes if one[0] <= bench.description.max_work_group_size] or [(1, 16)]
    unit = max(64 * local_size * words for local_size, words in able)
    capacities = [cache.size_bytes.value for cache in caches if cache.size_bytes is not None]
    most = min(2 * max(capacities, default=unit), bench.most_bytes)
    content = np.random.default_rng(6).integers(0, 2**32, size=most // 4 + unit, dtype=np.uint32)
    array = bench.buffer(content)
    sets = [WorkingSets(bench, shape, content, array) for shape in able]

    def time_byte(one: WorkingSets) -> float:
        # In the nearest cache alone noise decides: on PoCL one way reads 360 or 100 GB/s there and
        # another 210 or 60, but 200 and 50 from the next.
        sizes = [max(1, round(size / 2 / unit)) * unit for size in sorted(capacities)[:2]]
        try:
            return sum(1 / one.measure("", size).value for size in sizes)
        except MeasurementError:
            return math.inf

    sets.sort(key=time_byte)

    def measure(origin: str, size_bytes: int, *, is_copy: bool = False) -> Trait[float]:
        reasons = []
        for one in sets:
            try:
                return one.measure(origin, size_bytes, is_copy=is_copy)
            except MeasurementError as error:
                reasons.append(str(error))
        raise MeasurementError("; ".join(reasons))

    name, rates = "working_sets/load", {}
    for size in make_sizes(max(2048, unit), most, bench.effort.pick(1, 2, 3), unit):
        with result.attempting(f"{name}/{size}"):
            rates[size] = measure(name, size)
    if not rates:
        raise MeasurementError("no working set could be read")
    axes = ("working set in bytes", "bytes per second, all compute units")
    result.draw(name, axes, rates, [*rates.values()])
    nearer = 0
    for place, (cache, capacity) in enumerate(zip(caches, capacities, strict=True)):
        # The median of the sets that lie well within the cache and beyond the next nearer one:
        # in the median of seven calibrations 2 % from a fit of steps in the time per byte.
        inside = [one for size, one in rates.items() if 1.5 * nearer <= size <= 0.75 * capacity]
        if not inside:
            inside = [rates[min(rates, key=lambda size: abs(size - 0.75 * capacity))]]
        load = sorted(inside, key=lambda rate: rate.value)[len(inside) // 2]
        nearer = capacity
        copy, what = None, f"caches/{cache.name}/copy_bytes_per_s"
        with result.attempting(what):
            if not bench.is_cpu:
                raise MeasurementError("it is not known how many compute units share the cache")
            # Work-groups of one compute unit run one after the other, so that all parts of a
            # shared cache count, and of an own one only the part at work, source and copy. Half of
            # the cache leaves room for what else is in it.
            is_shared = cache.shared_by is not None and cache.shared_by.value > 1
            parts = 2 * (sets[0].groups if is_shared else 1)
            size = max(1, round(capacity / 2 / parts / unit)) * unit
            copy = measure("working_sets/copy", size, is_copy=True)
        caches[place] = replace(cache, load_bytes_per_s=load, copy_bytes_per_s=copy)
    return caches


TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "uint2", 16: "uint4", 32: "uint8", 64: "uint16"}
"""By the bytes of an element: 1 to 16 as in the paper, 32 and 64 as clpeak has them."""
# First element of a work-item, and the step to its next. Neighbours to neighbours, a step of the
# global size apart: coalesced, as in the paper; a step of the local size apart: a work-group stays
# together; one after the other: a CPU's prefetcher likes it where work-items are not vectorised.
ORDERS = {
    "global": ("get_global_id(0)", "get_global_size(0)"),
    "group": (
        "get_group_id(0) * get_local_size(0) * LOADS_OF + get_local_id(0)", "get_local_size(0)",
    ),
    "item": ("get_global_id(0) * LOADS_OF", "1"),
}  # fmt: skip


class Stream(NamedTuple):
    """A row: a kernel that reads, or copies, a large array once."""

    element_bytes: int
    order: str
    is_copy: bool = False
    loop: str = "unrolled"
    """Whether the count is an argument (dynamic), known to the compiler (constant), or there is no
    loop."""
    loads: int = 32

    @property
    def label(self) -> str:
        verb = "copy" if self.is_copy else "load"
        return f"{verb} {self.element_bytes} B, order {self.order}, {self.loop} x{self.loads}"


class StreamMemory:
    def __init__(self, bench: Bench, size_bytes: int) -> None:
        self._bench = bench
        self._content = np.frombuffer(np.random.default_rng(6).bytes(size_bytes), dtype=np.uint8)
        self._array = bench.buffer(self._content)
        self._found = bench.buffer(size_bytes)

    def prepare(self, stream: Stream) -> tuple[Callable[[], float], int]:
        """Build and check a stream; give what runs it once, and the bytes that this moves."""
        bench, found = self._bench, self._found
        first, following = ORDERS[stream.order]
        move = "found[at] = array[at];" if stream.is_copy else "sum += array[at];"
        moves = f"{move} at += step; "
        in_loop = f"for (int i = 0; i < LOADS_OF; ++i) {{ {moves}}}"
        macros: dict[str, object] = {
            "TYPE": TYPES[stream.element_bytes],
            "LOADS_OF": "count" if stream.loop == "dynamic" else stream.loads,
            "FIRST": first,
            "NEXT": following,
            "MOVES": moves * stream.loads if stream.loop == "unrolled" else in_loop,
            "SUM": add_lanes("sum", stream.element_bytes // 4),
        }
        kernel = bench.build("stream", macros | ({"COPIES": 1} if stream.is_copy else {}))
        local_size = min(256, bench.description.max_work_group_size)
        items = self._content.nbytes // (stream.element_bytes * stream.loads)
        items -= items % local_size
        if items == 0:
            raise MeasurementError(f"{self._content.nbytes} bytes are too few for {stream.label}")

        def run(key: int = 0) -> float:
            launch = Launch(items, local_size)
            return bench.time(kernel, launch, self._array, found, stream.loads, key)

        lane = np.dtype(f"u{min(stream.element_bytes, 4)}")
        read_bytes = items * stream.loads * stream.element_bytes
        written_bytes = read_bytes if stream.is_copy else items * stream.element_bytes
        zero = np.zeros(1, dtype=np.uint8)
        cl.enqueue_fill_buffer(bench.session.queue, found, zero, 0, written_bytes)
        run(1)
        written: Array = bench.read(found, lane, written_bytes // lane.itemsize)
        wanted: Array = self._content[:read_bytes].view(lane)
        # Sums wrap around, as the kernel's do.
        sums = (np.sum(one, dtype=lane) for one in (written, wanted))
        if not (np.array_equal(written, wanted) if stream.is_copy else len(set(sums)) == 1):
            raise MeasurementError(f"{stream.label} computes wrongly: its time means nothing")
        return run, read_bytes * (2 if stream.is_copy else 1)

    def measure_best(
        self, result: BenchmarkResult, streams: Sequence[Stream]
    ) -> tuple[Trait[float], Stream]:
        """Measure the stream that a trial shows to be fastest; what computes wrongly is noted."""
        trials = []
        reasons = {}
        for stream in streams:
            try:
                run, moved = self.prepare(stream)
                trials.append((min(run() for _ in range(3)) / moved, run, moved, stream))
            except MeasurementError as error:
                reasons[f"bandwidth/{stream.label}"] = f"{stream.label}: {error}"
        if not trials:
            raise MeasurementError("; ".join(reasons.values()))
        result.not_obtained.update(reasons)
        _, run, moved, stream = min(trials, key=lambda trial: trial[0])
        return self._bench.measure(run).as_rate(moved, stream.label), stream


def measure_bandwidth(bench: Bench, result: BenchmarkResult) -> None:
    facts = MemoryFacts(space="global")
    with result.attempting("memories/global/load_bytes_per_s"):
        # Arrays of four times the last cache, so that it can hold little of them.
        wanted = max(4 * bench.last_cache_bytes, 2**27)
        memory = StreamMemory(bench, min(wanted, bench.most_bytes))
        loads: dict[int, Trait[float]] = {}
        order = ""
        for size in TYPES:
            with result.attempting(f"memories/global/load_bytes_per_s/{size}"):
                streams = [Stream(size, one) for one in ORDERS]
                loads[size], best = memory.measure_best(result, streams)
                order = best.order if size == 4 else order
        facts = replace(facts, load_bytes_per_s=loads)
        # The paper's figure 6.
        counts = bench.effort.pick((4, 32), (1, 4, 16, 64), (1, 2, 4, 8, 16, 32, 64, 128))
        for loop in ("dynamic", "constant", "unrolled") if order else ():
            name, axes = f"bandwidth/{loop}", ("loads per work-item", "bytes per second")
            with result.attempting(name):
                rates = []
                for count in counts:
                    run, moved = memory.prepare(stream := Stream(4, order, loop=loop, loads=count))
                    rates.append(bench.measure(run).as_rate(moved, stream.label))
                result.draw(name, axes, counts, rates)
        with result.attempting("memories/global/copy_bytes_per_s"):
            sizes = bench.effort.pick((16, 64), (4, 16, 64), (4, 16, 64))
            copies = [Stream(*one, is_copy=True) for one in itertools.product(sizes, ORDERS)]
            rate, _ = memory.measure_best(result, copies)
            facts = replace(facts, copy_bytes_per_s=rate)
    result.memories += (facts,)


def measure_transfers(bench: Bench, result: BenchmarkResult) -> None:
    most = min(2**26, bench.most_bytes)
    content = np.frombuffer(np.random.default_rng(12).bytes(most), dtype=np.uint8)
    buffer, back = bench.buffer(most), np.zeros(most, dtype=np.uint8)
    queue = bench.session.queue
    per_step = bench.effort.pick(16, 4, 2)
    grown = (4 * per_step**step for step in range(24))
    sizes = [*(size for size in grown if size < most), most]

    def time_copy(size: int, is_read: bool) -> float:
        sides = (back[:size], buffer) if is_read else (buffer, content[:size])
        start_s = time.perf_counter()
        cl.enqueue_copy(queue, *sides)
        return time.perf_counter() - start_s

    for is_read, direction in enumerate(("to_device", "from_device")):
        name = f"transfer_{direction}"
        with result.attempting(f"costs/{name}_s"):
            times = [bench.measure(partial(time_copy, size, bool(is_read))) for size in sizes]
            if is_read:
                check_result(back, content)
            # Latency of the least size, bandwidth of the largest.
            result.costs[f"{name}_s"] = times[0].as_trait(name)
            result.costs[f"{name}_bytes_per_s"] = times[-1].as_rate(most, name)
            traits = [one.as_trait(name) for one in times]
            result.draw(f"transfers/{direction}", ("bytes", "seconds"), sizes, traits)
