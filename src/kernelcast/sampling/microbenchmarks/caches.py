"""Memories by random walks and working sets: sizes, latencies and bandwidths of every level."""

import contextlib
import math
import mmap
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import CacheFacts, Curve, MemoryFacts
from kernelcast.records.traits import Trait, TraitSource
from kernelcast.sampling.mapping import map_memory, unmap_memory
from kernelcast.sampling.microbenchmarks.bench import MOST_ITERATIONS, Bench
from kernelcast.sampling.microbenchmarks.findings import (
    Findings,
    Measured,
    check_result,
    make_curve,
    make_trait,
)
from kernelcast.sampling.microbenchmarks.fits import (
    LEAST_SPREAD,
    CacheLevel,
    Floats,
    find_undisturbed,
    fit_bandwidths,
    fit_levels,
)
from kernelcast.sampling.opencl import cl

STRIDE_BYTES = 64
"""Bytes from one element to the next: a line of most caches, so that each step is a new line."""
LARGE_PAGE_BYTES = 2**21
_LEAST_BYTES = 2048
_UNROLLED = 64
"""Steps per iteration: a loop of one step would add its own cost, and rusticl allows few."""
_FILL = "for (uint i = 0; i < elements; ++i) staged[i * STRIDE] = array[i * STRIDE];"
# Parameters of the kernel that walks in an address space, what fills its array, and the array.
_WALKS = {
    "global": ("global const uint *array", "", "array"),
    "constant": ("constant uint *array", "", "array"),
    "local": ("global const uint *array, local uint *staged", _FILL, "staged"),
    "private": ("global const uint *array", f"uint staged[ELEMENTS]; {_FILL}", "staged"),
}
# Integers, so that the sum can be checked bit by bit, and a rotation of the start by group, so
# that the compute units of a GPU do not all ask the same bank at once.
_SETS = """
#define UNROLLED 16
#define TYPE {type}
kernel void kc_load(global const TYPE *array, global uint *sums, int rounds, int count, int key)
{{
    int lane = get_local_id(0), width = get_local_size(0);
    int blocks = count / (UNROLLED * width);
    int first = (int)(((long)blocks * get_group_id(0)) / get_num_groups(0));
    {accumulators}
    for (int round = 0; round < rounds; ++round) {{
        for (int block = first; block < blocks; ++block) {{
            global const TYPE *at = array + (size_t)block * UNROLLED * width + lane;
            {loads}
        }}
        for (int block = 0; block < first; ++block) {{
            global const TYPE *at = array + (size_t)block * UNROLLED * width + lane;
            {loads}
        }}
    }}
    TYPE total = {total};
    uint sum = {sum};
    if (sum * (uint)key != 0)
        sums[get_global_id(0)] = sum;
}}
kernel void kc_copy(global const TYPE *array, global TYPE *copies, int rounds, int count)
{{
    int lane = get_local_id(0), width = get_local_size(0);
    int blocks = count / (UNROLLED * width);
    size_t base = (size_t)get_group_id(0) * count;
    for (int round = 0; round < rounds; ++round)
        for (int block = 0; block < blocks; ++block) {{
            size_t at = base + (size_t)block * UNROLLED * width + lane;
            {stores}
        }}
}}
"""


def measure_caches(bench: Bench, findings: Findings) -> None:
    """Measure sizes, latencies and bandwidths of the caches, and the latency beyond them."""
    caches: list[CacheFacts] = []
    with findings.attempting("caches"):
        caches = _find_caches(bench, findings)
    sizes = [cache.size_bytes.value for cache in caches if cache.size_bytes is not None]
    if sizes:
        with findings.attempting("caches/load_bytes_per_s"):
            sets = order_sets(bench, sizes)
            rates = iter(_measure_loads(bench, findings, sets, sizes))
            # Copies take one shape, whatever reads each size fastest.
            caches = [
                _add_copy(bench, findings, sets[0], replace(cache, load_bytes_per_s=next(rates)))
                if cache.size_bytes is not None
                else cache
                for cache in caches
            ]
    findings.caches.extend(caches)


def _find_caches(bench: Bench, findings: Findings) -> list[CacheFacts]:
    """Find sizes and latencies by a walk through up to four times the last cache."""
    known = bench.last_cache_bytes
    if not bench.is_cpu:
        known *= bench.effort.pick(1, 2, 4)
    most = min(4 * known, bench.most_bytes)
    sizes = make_sizes(_LEAST_BYTES, most, bench.effort.pick(3, 4, 6), STRIDE_BYTES)
    latencies = _walk(bench, findings, "global", sizes)
    levels, beyond_s = fit_levels(
        np.array(sizes, dtype=np.float64), latencies, is_host=bench.is_cpu, origin="walk/global"
    )
    findings.memories.append(MemoryFacts(space="global", latency_s=beyond_s))
    caches, remarks = match_caches(levels, bench.host_caches)
    findings.not_obtained.update(remarks)
    # The line that the driver reports, where nobody else did, is the last cache's.
    line = int(bench.session.device.global_mem_cacheline_size)
    if caches and caches[-1].line_bytes is None and line > 0:
        reported = Trait(value=line, source=TraitSource.REPORTED, origin="driver")
        caches[-1] = replace(caches[-1], line_bytes=reported)
    return caches


def measure_spaces(bench: Bench, findings: Findings) -> None:
    """Walk at random through local, constant and private memory."""
    most_constant = int(bench.session.device.max_constant_buffer_size)
    for space, most in (
        ("local", bench.description.local_memory_bytes // 2),  # the runtime may keep some
        ("constant", min(most_constant, 2**22)),
        ("private", 2**15),
    ):
        with findings.attempting(f"memories/{space}/latency_s"):
            sizes = make_sizes(_LEAST_BYTES, most, bench.effort.pick(1, 2, 3), STRIDE_BYTES)
            latencies, origin = _walk(bench, findings, space, sizes), f"walk/{space}"
            if len(sizes) < 6:
                usual, fault = float(np.median(latencies)), 1 + LEAST_SPREAD
                low, high = float(min(latencies)), float(max(latencies))
                latency_s = make_trait(
                    usual, origin, min(low, usual / fault), max(high, usual * fault)
                )
            else:
                array_sizes = np.array(sizes, dtype=np.float64)
                is_host = bench.is_cpu
                _, latency_s = fit_levels(array_sizes, latencies, is_host=is_host, origin=origin)
            findings.memories.append(MemoryFacts(space=space, latency_s=latency_s))


def make_sizes(least: int, most: int, per_octave: int, unit: int = 1) -> list[int]:
    """List sizes that grow geometrically, in whole units.

    Examples
    --------
    >>> make_sizes(128, 512, 1, 64)
    [128, 256, 512]
    """
    count = max(2, round(math.log2(most / least) * per_octave) + 1)
    return sorted({round(size) * unit for size in np.geomspace(least, most, count) / unit})


def _walk(bench: Bench, findings: Findings, space: str, sizes: list[int]) -> Floats:
    """Measure the latency in arrays of several sizes, then again where a neighbour disturbed.

    Several times through all sizes, each time with other cycles: a neighbour that is busy for a
    second disturbs a size in one pass only. The curve goes from the shortest run, since neighbours
    only ever add time, to the usual one.
    """
    run_s, passes, warm_s = bench.effort.pick((6e-4, 2, 0.05), (1e-3, 3, 0.1), (1.5e-3, 4, 0.25))
    if not bench.session.uses_event_timer:
        run_s = max(run_s, 6 * bench.launch_overhead_s)
    walk = Walk(bench, space, sizes[-1])
    walk.lay_out(sizes[0])
    most = walk.most_iterations
    first = bench.choose_length(walk.time_steps, 2 * run_s, first=8, most=most)
    bench.prove_work(walk.time_steps, first, most=most)
    points = np.full((len(sizes), 2), math.inf)

    def visit(index: int) -> None:
        walk.lay_out(sizes[index])
        walk.warm(warm_s)
        times = walk.time_runs(run_s)
        points[index] = np.minimum(points[index], (min(times), statistics.median(times)))

    for _ in range(passes):
        for index in range(len(sizes)):
            visit(index)
    for _ in range(2):
        for index in np.flatnonzero(~find_undisturbed(points[:, 0])).tolist():
            visit(index)
    shortest, usual = (tuple(column.tolist()) for column in points.T)
    findings.curves.append(
        Curve(
            name=f"walk/{space}",
            x_name="size of the array in bytes",
            y_name="seconds per dependent load",
            x=tuple(map(float, sizes)),
            y=shortest,
            low=shortest,
            high=usual,
        )
    )
    return points[:, 0]


class Walk:
    """A kernel that walks in one address space of a device."""

    def __init__(self, bench: Bench, space: str, most_bytes: int) -> None:
        self._bench = bench
        self._space = space
        self._memory = _make_walk_memory(bench, most_bytes)
        self._kernel = bench.build_kernel(make_walk_source(space, most_bytes), "kc_walk")
        self._result = bench.buffer(4)
        self._generator = np.random.default_rng(20170911)
        self._order = np.zeros(1, dtype=np.uint32)
        self._position = 0

    @property
    def most_iterations(self) -> int:
        """Iterations of one launch, after the loop that fills a local or private array."""
        return MOST_ITERATIONS - (len(self._order) if _WALKS[self._space][1] else 0)

    def lay_out(self, size_bytes: int) -> None:
        """Write a new random cycle of that size into the memory."""
        length = max(2, size_bytes // STRIDE_BYTES)
        self._order = draw_order(length, self._generator)
        self._position = 0
        queue, flags = self._bench.session.queue, cl.map_flags.WRITE_INVALIDATE_REGION
        # Mapped, because a runtime on the host then need not copy the memory.
        mapped = map_memory(queue, self._memory, length * STRIDE_BYTES, flags)
        cells = mapped.view(np.uint32).reshape(length, -1)
        cells[:, 0] = link_order(self._order) * np.uint32(STRIDE_BYTES // 4)
        unmap_memory(queue, mapped)

    def time_steps(self, iterations: int) -> float:
        """Walk on for so many iterations and measure the time in seconds."""
        length = len(self._order)
        start = int(self._order[self._position]) * STRIDE_BYTES // 4
        local = [cl.LocalMemory(length * STRIDE_BYTES)] if self._space == "local" else []
        words = (np.uint32(length), np.uint32(start))
        self._bench.set_args(self._kernel, self._memory, *local, self._result, *words, iterations)
        seconds = self._bench.time_launch(self._kernel, 1, 1)
        self._position = (self._position + iterations * _UNROLLED) % length
        expected = int(self._order[self._position]) * STRIDE_BYTES // 4
        end = int(self._bench.read(self._result, np.uint32, 1)[0])
        if end != expected:
            msg = f"a walk ended at {end}, not at {expected}: its time means nothing"
            raise MeasurementError(msg)
        return seconds

    def warm(self, budget_s: float) -> None:
        """Walk once through the array, or as far as the time allows."""
        left = -(-len(self._order) // _UNROLLED)
        while left > 0 and budget_s > 0:
            budget_s -= self.time_steps(min(left, 4096))
            left -= 4096

    def time_runs(self, run_s: float) -> list[float]:
        """Measure seconds per step of four runs of about `run_s`.

        Filling local or private memory does not count: the shortest of as many short runs is
        taken off, since each run alone may be disturbed by more than a short walk takes.
        """
        most = self.most_iterations
        iterations = self._bench.choose_length(self.time_steps, run_s, first=8, most=most)
        times = [self.time_steps(iterations) for _ in range(4)]
        few, filling_s = 0, 0.0
        if _WALKS[self._space][1]:
            few = max(1, iterations // 16)
            filling_s = min(self.time_steps(few) for _ in range(4))
        if min(times) <= filling_s or few == iterations:
            msg = f"{iterations} steps take {min(times):.3g} s, {few} {filling_s:.3g} s"
            raise MeasurementError(msg)
        return [(seconds - filling_s) / ((iterations - few) * _UNROLLED) for seconds in times]


def make_walk_source(space: str, most_bytes: int) -> str:
    """Write the kernel that walks in an address space, in at most so much private memory."""
    parameters, before, array = _WALKS[space]
    step = f"index = {array}[index];"
    return f"""
#define STRIDE {STRIDE_BYTES // 4}
#define ELEMENTS {most_bytes // 4}
kernel void kc_walk({parameters}, global uint *result, uint elements, uint start, int iterations)
{{
    {before}
    uint index = start;
    for (int i = 0; i < iterations; ++i) {{
        {step * _UNROLLED}
    }}
    result[0] = index;
}}
"""


def draw_order(length: int, generator: np.random.Generator) -> npt.NDArray[np.uint32]:
    """Draw the order in which a random cycle visits its elements.

    Each of the ``(length - 1)!`` cycles is as likely, since each belongs to ``length`` orders. The
    microbenchmarks paper swaps each element with one from ``[index, length)``, which may leave an
    element in its place: then the walk ends in a short cycle and never sees the rest of the array.
    """
    return generator.permutation(length).astype(np.uint32)


def link_order(order: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Find the successor of each element of a cycle that visits them in this order.

    Examples
    --------
    >>> link_order(np.array([0, 2, 1], dtype=np.uint32)).tolist()
    [2, 0, 1]
    """
    successors = np.empty_like(order)
    successors[order] = np.roll(order, -1)
    return successors


def _make_walk_memory(bench: Bench, size_bytes: int) -> cl.Buffer:
    """Make the memory that walks go through: on a CPU, large pages of this process."""
    context, flags = bench.session.context, cl.mem_flags
    if not bench.is_cpu:
        return cl.Buffer(context, flags.READ_WRITE, size=size_bytes)
    content = allocate_large_pages(size_bytes)[:size_bytes]
    return cl.Buffer(context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=content)


def allocate_large_pages(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Allocate zeroed memory, aligned to large pages and in such pages where the system has them.

    In pages of 4 KiB a random walk over more than some MiB misses the translation buffers at
    every step, and physical pages fall on the sets of a cache by chance, so that a cache of 1 MiB
    looks like anything from 0.5 to 1.5 MiB: measured here, 12 ns against 50 ns at 5 MiB.
    """
    count = -(-size_bytes // LARGE_PAGE_BYTES)
    # One page more, since an anonymous mapping need not start at a multiple of a large page.
    mapping = mmap.mmap(-1, (count + 1) * LARGE_PAGE_BYTES)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without large pages
            mapping.madvise(mmap.MADV_HUGEPAGE)
    content = np.frombuffer(mapping, dtype=np.uint8)
    start = -content.ctypes.data % LARGE_PAGE_BYTES
    aligned = content[start : start + count * LARGE_PAGE_BYTES]
    aligned[:] = 0
    return aligned


def match_caches(
    levels: Sequence[CacheLevel], host_caches: Sequence[CacheFacts]
) -> tuple[list[CacheFacts], dict[str, str]]:
    """Join levels that a walk found with caches that the operating system reports.

    A level belongs to a reported cache if their sizes are within a factor of four, the nearest
    pairs first; beyond a factor of two they disagree. Without reported caches, levels are numbered
    as they were found. Disagreements, and what was not found, come along as remarks.
    """
    if not host_caches:
        return [
            CacheFacts(name=f"L{number}", size_bytes=level.size_bytes, latency_s=level.latency_s)
            for number, level in enumerate(levels, start=1)
        ], {}
    reported = {one.name: one.size_bytes.value for one in host_caches if one.size_bytes}
    distances = sorted(
        (abs(math.log(level.size_bytes.value / size)), name, index)
        for index, level in enumerate(levels)
        for name, size in reported.items()
    )
    chosen: dict[str, tuple[float, int]] = {}
    for distance, name, index in distances:
        is_free = name not in chosen and index not in (one for _, one in chosen.values())
        if is_free and distance <= math.log(4):
            chosen[name] = distance, index
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
        distance, index = chosen[name]
        level = levels[index]
        if distance > math.log(2):
            remarks[f"caches/{name}/agreement"] = (
                f"measured {level.size_bytes.value} bytes, the operating system reports {size}: "
                "others may use the cache, or a hypervisor may give a part of it"
            )
        said = f"{level.size_bytes.origin}; the operating system reports {size} bytes"
        measured = replace(level.size_bytes, origin=said)
        caches.append(replace(cache, size_bytes=measured, latency_s=level.latency_s))
    for index in set(range(len(levels))) - {one for _, one in chosen.values()}:
        remarks[f"caches/step at {levels[index].size_bytes.value} bytes"] = (
            "a step of the random walk belongs to no cache that the operating system "
            "reports: translation buffers or neighbours"
        )
    return caches, remarks


class Shape(NamedTuple):
    """Work-items of a work-group, and the 4-byte words that each reads at once: 1 to 16."""

    local_size: int
    words: int

    @property
    def block_bytes(self) -> int:
        """What a work-group reads in one iteration."""
        return self.local_size * self.words * 4 * 16


def list_shapes(bench: Bench) -> list[Shape]:
    """List the ways to read that are worth trying."""
    shapes = [Shape(1, 16), Shape(16, 1), Shape(16, 4)]
    if not bench.is_cpu:
        shapes = [Shape(256, 1), Shape(256, 4), Shape(512, 2)]
    most = bench.description.max_work_group_size
    return [one for one in shapes if one.local_size <= most] or [Shape(1, 16)]


def make_set_source(shape: Shape) -> str:
    """Write the kernels for a shape."""
    lanes = [f"total.s{lane:x}" for lane in range(shape.words)]
    return _SETS.format(
        type="uint" if shape.words == 1 else f"uint{shape.words}",
        accumulators=" ".join(f"TYPE a{n} = (TYPE)(0);" for n in range(16)),
        loads=" ".join(f"a{n} += at[{n} * width];" for n in range(16)),
        total=" + ".join(f"a{n}" for n in range(16)),
        sum="total" if shape.words == 1 else " + ".join(lanes),
        stores=" ".join(f"copies[at + {n} * width] = array[at + {n} * width];" for n in range(16)),
    )


class WorkingSets:
    """Kernels that read or copy a working set again and again, all compute units together.

    Parameters
    ----------
    most_bytes : int
        Largest working set, of all work-groups.
    """

    def __init__(self, bench: Bench, shape: Shape, most_bytes: int) -> None:
        self.shape = shape
        self._bench = bench
        # Several per compute unit, since runtimes hand them out by the handful.
        self.groups = 4 * bench.description.compute_units
        source = make_set_source(shape)
        self._load = bench.build_kernel(source, "kc_load")
        self._copy = bench.build_kernel(source, "kc_copy")
        words = -(-most_bytes // 4)
        self._content = np.random.default_rng(6).integers(0, 2**32, size=words, dtype=np.uint32)
        self._array = bench.buffer(self._content)
        self._sums = bench.buffer(4 * self.groups * shape.local_size)
        self.reach_bytes = min(4 * words, shape.block_bytes * MOST_ITERATIONS)
        """Largest working set that one launch can read."""

    def round_size(self, size_bytes: float) -> int:
        """Find the nearest working set in whole blocks, at least one."""
        block = self.shape.block_bytes
        return max(1, min(round(size_bytes / block), self.reach_bytes // block)) * block

    def measure_load(self, size_bytes: int) -> tuple[Measured, int]:
        """Let every work-group read the same working set; the bytes come along."""
        count, most = size_bytes // (4 * self.shape.words), self._find_most_rounds(size_bytes)

        def run(rounds: int, key: int = 0) -> float:
            return self._time(self._load, self._array, self._sums, rounds, count, key)

        rounds = min(3, most)
        run(rounds, key=1)
        items = self.groups * self.shape.local_size
        sums = self._bench.read(self._sums, np.uint32, items).reshape(self.groups, -1)
        once = int(np.sum(self._content[: size_bytes // 4], dtype=np.uint64))
        expected = np.full(self.groups, once * rounds % 2**32, dtype=np.uint32)
        check_result(np.asarray(np.sum(sums, axis=1, dtype=np.uint32)), expected)
        measured, rounds = self._measure(run, most)
        return measured, rounds * size_bytes * self.groups

    def measure_copy(self, size_bytes: int) -> tuple[Measured, int]:
        """Let every work-group copy its own part; bytes loaded and stored come along."""
        words = size_bytes * self.groups // 4
        if words > len(self._content):
            most = 4 * len(self._content)
            msg = f"{self.groups} parts of {size_bytes} bytes are more than {most}"
            raise MeasurementError(msg)
        copies = self._bench.buffer(4 * words)
        count = size_bytes // (4 * self.shape.words)

        def run(rounds: int) -> float:
            return self._time(self._copy, self._array, copies, rounds, count)

        measured, rounds = self._measure(run, self._find_most_rounds(size_bytes))
        check_result(self._bench.read(copies, np.uint32, words), self._content[:words])
        return measured, 2 * rounds * size_bytes * self.groups

    def _find_most_rounds(self, size_bytes: int) -> int:
        return max(1, MOST_ITERATIONS // (size_bytes // self.shape.block_bytes + 1))

    def _measure(self, run: Callable[[int], float], most: int) -> tuple[Measured, int]:
        rounds = self._bench.choose_length(run, most=most)
        if rounds >= 4:  # fewer can prove nothing
            rounds = self._bench.prove_work(run, rounds, most=most)
        return self._bench.measure(partial(run, rounds)), rounds

    def _time(self, kernel: cl.Kernel, *arguments: object) -> float:
        self._bench.set_args(kernel, *arguments)
        local_size = self.shape.local_size
        return self._bench.time_launch(kernel, self.groups * local_size, local_size)


def order_sets(bench: Bench, sizes: Sequence[int]) -> list[WorkingSets]:
    """Order ways to read by their speed in the two nearest caches, the fastest first.

    In the nearest alone noise decides: on PoCL one way reads 360 or 100 GB/s there and another 210
    or 60, but 200 and 50 from the next cache. Not every one can read large sets in one launch:
    those are left to the next.
    """
    most = min(2 * max(sizes), bench.most_bytes)
    ordered: list[tuple[float, WorkingSets]] = []
    reasons = []
    for shape in list_shapes(bench):
        try:
            sets, seconds = WorkingSets(bench, shape, most), 0.0
            for size in sorted(sizes)[:2]:
                measured, moved = sets.measure_load(sets.round_size(size / 2))
                seconds += measured.median / moved
            ordered.append((seconds, sets))
        except MeasurementError as error:
            reasons.append(str(error))
    if not ordered:
        raise MeasurementError("; ".join(reasons))
    return [sets for _, sets in sorted(ordered, key=lambda one: one[0])]


def _measure_loads(
    bench: Bench, findings: Findings, sets: Sequence[WorkingSets], capacities: Sequence[int]
) -> list[Trait[float]]:
    """Read working sets of all sizes; find the bandwidth of each cache."""
    chosen = {}
    for size in make_sizes(_LEAST_BYTES, 2 * max(capacities), bench.effort.pick(1, 2, 3)):
        # The fastest way to read so much, or the one that reaches furthest.
        able = [one for one in sets if one.reach_bytes >= size]
        best = able[0] if able else max(sets, key=lambda one: one.reach_bytes)
        chosen[best.round_size(size)] = best
    name, rates = "working_sets/load", {}
    for size, best in sorted(chosen.items()):
        with findings.attempting(f"{name}/{size}"):
            measured, moved = best.measure_load(size)
            rates[size] = measured.as_rate(moved, name)
    traits = [*rates.values()]
    axes = ("working set in bytes", "bytes per second, all compute units")
    findings.curves.append(make_curve(name, axes, rates, traits))
    values = np.array([rate.value for rate in traits])
    fitted = fit_bandwidths(np.array([*rates], dtype=np.float64), values, capacities, name)
    # No interval is narrower than those of the points behind it.
    spread = float(np.median([(rate.high or 1.0) / rate.value for rate in traits]))
    return [
        make_trait(
            one.value,
            name,
            min(one.low or one.value, one.value / spread),
            max(one.high or one.value, one.value * spread),
        )
        for one in fitted
    ]


def _add_copy(bench: Bench, findings: Findings, sets: WorkingSets, cache: CacheFacts) -> CacheFacts:
    """Copy within a cache, every compute unit its own part."""
    what, rate = f"caches/{cache.name}/copy_bytes_per_s", None
    with findings.attempting(what):
        if not bench.is_cpu or cache.size_bytes is None:
            msg = "it is not known how many compute units share the cache"
            raise MeasurementError(msg)
        # Work-groups of one compute unit run one after the other, so that all parts of a shared
        # cache count, and of an own one only the part at work, source and copy. Half of the cache
        # leaves room for what else is in it.
        is_shared = cache.shared_by is not None and cache.shared_by.value > 1
        parts = 2 * (sets.groups if is_shared else 1)
        measured, moved = sets.measure_copy(sets.round_size(cache.size_bytes.value / 2 / parts))
        rate = measured.as_rate(moved, "working_sets/copy")
    return replace(cache, copy_bytes_per_s=rate)
