"""Random walks through an address space: their memory, their order, their kernel, their times."""

import contextlib
import math
import mmap
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import MeasurementError
from kernelcast.records.machine import SPACES
from kernelcast.sampling.mapping import map_memory, unmap_memory
from kernelcast.sampling.microbenchmarks.fits.levels import find_undisturbed
from kernelcast.sampling.microbenchmarks.harness import MOST_ITERATIONS, Bench
from kernelcast.sampling.opencl import cl

Indices: TypeAlias = npt.NDArray[np.uint32]


def draw_order(length: int, generator: np.random.Generator) -> Indices:
    """Draw the order in which a random cycle visits its elements.

    Each of the ``(length - 1)!`` cycles is as likely, since each belongs to ``length`` orders. The
    microbenchmarks paper swaps each element with one from ``[index, length)``, which may leave an
    element in its place: then the walk ends in a short cycle and never sees the rest of the array.
    """
    return generator.permutation(length).astype(np.uint32)


def link_order(order: Indices) -> Indices:
    """Give the successor of each element of a cycle that visits them in this order.

    Examples
    --------
    >>> link_order(np.array([0, 2, 1], dtype=np.uint32)).tolist()
    [2, 0, 1]
    """
    successors = np.empty_like(order)
    successors[order] = np.roll(order, -1)
    return successors


LARGE_PAGE_BYTES = 2 * 2**20


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


STRIDE_BYTES = 64
"""Bytes from one element to the next: a line of most caches, so that each step is a new line."""
_ELEMENT_BYTES = 4
_STRIDE = STRIDE_BYTES // _ELEMENT_BYTES
UNROLLED = 64
"""Steps per iteration: a loop of one step would add its own cost, and rusticl allows few."""
STAGED = ("local", "private")
"""Spaces that are filled from global memory before a walk."""
_SEED = 20170911
_FEWEST_ITERATIONS = 8
_LENGTH_TRIES = 6
_REPAIRS = 2

_COPY_IN = "for (uint i = 0; i < elements; ++i) staged[i * STRIDE] = array[i * STRIDE];"
_BODIES = {
    "global": ("global const uint *array", "", "array"),
    "constant": ("constant uint *array", "", "array"),
    "local": ("global const uint *array, local uint *staged", _COPY_IN, "staged"),
    "private": ("global const uint *array", f"uint staged[ELEMENTS]; {_COPY_IN}", "staged"),
}


def make_walk_source(space: str, capacity: int) -> str:
    """Write the kernel that walks in an address space.

    Parameters
    ----------
    space : str
        One of `SPACES`; local and private arrays are filled from global memory first.
    capacity : int
        Elements of a private array, which must be known to the compiler.
    """
    parameters, before, array = _BODIES[space]
    step = f"index = {array}[index];"
    return f"""
#define STRIDE {_STRIDE}
#define ELEMENTS {capacity * _STRIDE}
kernel void kc_walk({parameters}, global uint *result, uint elements, uint start, int iterations)
{{
    {before}
    uint index = start;
    for (int i = 0; i < iterations; ++i) {{
        {step * UNROLLED}
    }}
    result[0] = index;
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkPoint:
    """Latency in an array of one size."""

    size_bytes: int
    latency_s: float
    """Shortest run, in seconds per step: neighbours on a machine only ever add time."""
    usual_s: float
    """Median of the runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkPlan:
    """How long to walk."""

    run_s: float
    """Length of one run, in seconds; short runs fit between the disturbances of a busy machine."""
    runs: int
    """Runs of each size in each pass."""
    passes: int
    """Times to go through all sizes, each time with other cycles: a neighbour that is busy for a
    second disturbs a size in one pass only."""
    warm_s: float
    """Longest walk before anything counts, in seconds."""


class Walk:
    """A kernel that walks in one address space of a device.

    Parameters
    ----------
    space : str
        One of `SPACES`.
    """

    def __init__(
        self,
        bench: Bench,
        space: str,
        memory: cl.Buffer,
        *,
        most_bytes: int = STRIDE_BYTES,
    ) -> None:
        if space not in SPACES:
            msg = f"address space {space!r}; give one of {', '.join(SPACES)}"
            raise ValueError(msg)
        self._bench = bench
        self._space = space
        self._memory = memory
        self._is_staged = space in STAGED
        source = make_walk_source(space, most_bytes // STRIDE_BYTES)
        self._kernel = bench.build_kernel(source, "kc_walk")
        self._result = bench.buffer(_ELEMENT_BYTES)
        self._generator = np.random.default_rng(_SEED)
        self._order: Indices = np.zeros(1, dtype=np.uint32)
        self._position = 0

    @property
    def length(self) -> int:
        """Elements of the array that is laid out."""
        return len(self._order)

    def lay_out(self, size_bytes: int) -> None:
        """Write a new random cycle of that size into the memory."""
        length = max(2, size_bytes // STRIDE_BYTES)
        self._order = draw_order(length, self._generator)
        self._position = 0
        successors = link_order(self._order) * np.uint32(_STRIDE)
        queue = self._bench.session.queue
        # Mapped, because a runtime on the host then need not copy the memory.
        size = length * STRIDE_BYTES
        mapped = map_memory(queue, self._memory, size, cl.map_flags.WRITE_INVALIDATE_REGION)
        mapped.view(np.uint32).reshape(length, _STRIDE)[:, 0] = successors
        unmap_memory(queue, mapped)

    def time_steps(self, iterations: int) -> float:
        """Walk on for `iterations * UNROLLED` steps and give the time in seconds."""
        start = int(self._order[self._position]) * _STRIDE
        local = (
            (self._bench.local_memory(self.length * STRIDE_BYTES),)
            if self._space == "local"
            else ()
        )
        arguments = (self._result, np.uint32(self.length), np.uint32(start), iterations)
        self._bench.set_args(self._kernel, self._memory, *local, *arguments)
        seconds = self._bench.time_launch(self._kernel, 1, 1)
        self._position = (self._position + iterations * UNROLLED) % self.length
        expected = int(self._order[self._position]) * _STRIDE
        found = int(self._bench.read(self._result, np.uint32, 1)[0])
        if found != expected:
            msg = f"a walk ended at {found}, not at {expected}: its time means nothing"
            raise MeasurementError(msg)
        return seconds

    def warm(self, budget_s: float) -> None:
        """Walk once through the array, or as far as the time allows."""
        left = -(-self.length // UNROLLED)
        spent_s = 0.0
        while left > 0 and spent_s < budget_s:
            iterations = min(left, 4096)
            spent_s += self.time_steps(iterations)
            left -= iterations

    def choose_iterations(self, target_s: float) -> int:
        """Choose how many iterations last about `target_s`."""
        iterations = _FEWEST_ITERATIONS
        for _ in range(_LENGTH_TRIES):
            seconds = min(self.time_steps(iterations) for _ in range(2))
            if seconds >= target_s / 2 or iterations >= self.most_iterations:
                break
            needed = int(iterations * target_s / seconds) + 1
            iterations = min(needed, 16 * iterations, self.most_iterations)
        return iterations

    @property
    def most_iterations(self) -> int:
        """Iterations of one launch, after the loop that fills a local or private array."""
        return MOST_ITERATIONS - (self.length if self._is_staged else 0)

    def time_runs(self, iterations: int, runs: int) -> list[float]:
        """Give seconds per step of several runs.

        Filling local or private memory does not count: the shortest of as many short runs is
        taken off, since each run alone may be disturbed by more than a short walk takes.
        """
        times = [self.time_steps(iterations) for _ in range(runs)]
        if not self._is_staged:
            return [seconds / (iterations * UNROLLED) for seconds in times]
        few = max(1, iterations // 16)
        filling_s = min(self.time_steps(few) for _ in range(runs))
        if min(times) <= filling_s or few == iterations:
            msg = f"{iterations} steps take {min(times):.3g} s, {few} {filling_s:.3g} s"
            raise MeasurementError(msg)
        return [(seconds - filling_s) / ((iterations - few) * UNROLLED) for seconds in times]


def make_walk_memory(bench: Bench, size_bytes: int) -> cl.Buffer:
    """Make the memory that walks go through: on a CPU, large pages of this process."""
    if bench.description.kind is not DeviceKind.CPU:
        return cl.Buffer(bench.session.context, cl.mem_flags.READ_WRITE, size=size_bytes)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    content = allocate_large_pages(size_bytes)[:size_bytes]
    return cl.Buffer(bench.session.context, flags, hostbuf=content)


def walk_sizes(walk: Walk, sizes_bytes: Sequence[int], plan: WalkPlan) -> list[WalkPoint]:
    """Walk through arrays of several sizes, then again where a neighbour disturbed.

    Parameters
    ----------
    sizes_bytes : sequence of int
        Increasing.
    """
    points = [_walk_size(walk, size, plan) for size in sizes_bytes]
    for _ in range(1, plan.passes):
        for index, size in enumerate(sizes_bytes):
            points[index] = _join(points[index], _walk_size(walk, size, plan))
    for _ in range(_REPAIRS):
        latencies = np.array([point.latency_s for point in points])
        for index in np.flatnonzero(~find_undisturbed(latencies)).tolist():
            again = _walk_size(walk, sizes_bytes[index], plan)
            points[index] = _join(points[index], again)
    return points


def make_sizes(least: int, most: int, *, per_octave: int) -> list[int]:
    """Give sizes that grow geometrically, in whole strides.

    Examples
    --------
    >>> make_sizes(128, 512, per_octave=1)
    [128, 256, 512]
    """
    count = max(2, round(math.log2(most / least) * per_octave) + 1)
    sizes = np.geomspace(least, most, count) / STRIDE_BYTES
    return sorted({round(size) * STRIDE_BYTES for size in sizes})


def _walk_size(walk: Walk, size_bytes: int, plan: WalkPlan) -> WalkPoint:
    walk.lay_out(size_bytes)
    walk.warm(plan.warm_s)
    iterations = walk.choose_iterations(plan.run_s)
    times = walk.time_runs(iterations, plan.runs)
    return WalkPoint(size_bytes=size_bytes, latency_s=min(times), usual_s=statistics.median(times))


def _join(one: WalkPoint, other: WalkPoint) -> WalkPoint:
    """Keep what was least disturbed."""
    return WalkPoint(
        size_bytes=one.size_bytes,
        latency_s=min(one.latency_s, other.latency_s),
        usual_s=min(one.usual_s, other.usual_s),
    )
