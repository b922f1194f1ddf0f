"""What a launch costs on a CPU, made for comparing configurations of one kernel.

Variants differ in what `kernelcast.analytic.cpu` leaves out: loops that barriers cut into vectors,
far places that no prefetcher follows, and the sets of a cache that the rows of a tile fall into.
On ``benchmarks/results/tuning`` that model picks 70 % of the best speed in the mean where this one
picks 89 %.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, gcd, prod
from typing import NamedTuple

import numpy as np

from kernelcast.analytic.cpu.opencl.core import GATHER_ADDS, time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.expressions import Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.axes import list_axes as list_dimensions
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.static import choose_work_groups, count_statically
from kernelcast.features.counting.summary import count_blocks
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.records.errors import InputError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

_ADDRESS_KINDS = (OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.CONVERT)
_FAR = (MemorySpace.GLOBAL, MemorySpace.CONSTANT)


class Axis(NamedTuple):
    """A loop that a core goes through, over work-items, work-groups or in the kernel."""

    extent: int
    block: int | None = None
    """Of a loop in the kernel, the block of its body."""


class Shape(NamedTuple):
    """Places that some axes reach: chunks side by side, and how they lie apart."""

    lines: float
    chunk_lines: float
    far: tuple[tuple[int, int], ...]
    """How often chunks are repeated, and how many lines apart, for each way to go on."""

    def count_sets(self, sets: int) -> int:
        """Count the sets that the lines fall into, of a cache that has so many."""
        found = min(sets, ceil(self.chunk_lines))
        for extent, apart in self.far:
            step = apart % sets
            found = min(sets, found * min(extent, sets // gcd(step, sets) if step else 1))
        return max(1, found)


class Walk(NamedTuple):
    """How accesses of one buffer that move alike go through memory."""

    buffer: str
    bytes: int
    steps: tuple[int, ...]
    """Bytes from one iteration of each axis to the next, innermost first."""
    inside: tuple[bool, ...]
    """Axes that are around it; others do not repeat it."""

    def find_shape(self, axes: Sequence[Axis], line: int) -> Shape:
        """Describe the places that the innermost axes reach together."""
        chunk = self.bytes
        far: list[tuple[int, int]] = []
        steps = zip(map(abs, self.steps), axes, strict=False)
        for step, (extent, _) in sorted(one for one in steps if one[0] and one[1].extent > 1):
            if not far and step <= max(chunk, line):
                chunk += step * (extent - 1)
            elif far and step % far[-1][1] == 0 and step <= prod(far[-1]):
                # Chunks that fall onto earlier ones lengthen their row.
                count, apart = far.pop()
                far.append((count + step // apart * (extent - 1), apart))
            else:
                far.append((extent, step))
        chunk_lines = max(1.0, chunk / line)
        return Shape(
            lines=chunk_lines * prod(extent for extent, _ in far),
            chunk_lines=chunk_lines,
            far=tuple((extent, step // line) for extent, step in far),
        )

    def count_streams(self, axes: Sequence[Axis], line: int) -> int:
        """Count the far places that are visited before one of them moves on."""
        streams, chunk = 1, self.bytes
        apart: list[tuple[int, int]] = []
        for axis, step in zip(axes, map(abs, self.steps), strict=True):
            if axis.extent == 1 or not step:
                continue
            apart.append((step, axis.extent))
            if step > max(line, chunk):
                streams *= axis.extent
                continue
            # What lay apart may now be side by side.
            while near := [one for one in apart if one[0] <= max(line, chunk)]:
                chunk += sum(step * (extent - 1) for step, extent in near)
                apart = [one for one in apart if one not in near]
            # Neighbouring lines after which a prefetcher is ahead.
            if chunk >= 8 * line:
                break
        return streams


def count_moved(
    walks: Mapping[Walk, bool], axes: Sequence[Axis], line_bytes: int, size_bytes: float, ways: int
) -> tuple[float, float, float]:
    """Count the lines that a cache loads, writes back, and loads with no prefetcher in time.

    `walks` says of each whether it stores.
    """
    # A layer condition: what one iteration of an axis touches is still there in the next if all
    # accesses of an iteration fit the cache, and each access the sets that its addresses fall into.
    # The outermost axis whose iterations fit is the one along which lines are reused.
    sets = 2 ** (max(1, int(size_bytes / line_bytes / ways)).bit_length() - 1)
    for depth in range(len(axes) + 1):
        shapes = [one.find_shape(axes[:depth], line_bytes) for one in walks]
        crowded = sum(one.lines / one.count_sets(sets) for one in shapes)
        if sum(one.lines for one in shapes) * line_bytes > size_bytes or crowded > ways:
            break
    streams = [one.count_streams(axes, line_bytes) for one in walks]
    beside = sum(one for one in streams if one > 1) - 1
    loaded = stored = unforeseen = 0.0
    for (walk, is_store), shape, apart in zip(walks.items(), shapes, streams, strict=True):
        around = zip(axes[depth:], walk.inside[depth:], strict=True)
        lines = shape.lines * prod(axis.extent for axis, inside in around if inside)
        loaded += lines
        stored += lines if is_store else 0.0
        if apart > 1:
            # Streams beside each other of which half are late, as measured with columns of 8 to 512
            # rows.
            unforeseen += lines * beside / (beside + 64)
    return loaded, stored, unforeseen


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """The loops of a kernel for one launch."""

    facts: KernelFacts
    ndrange: NDRange
    counts: tuple[float, ...]
    """Mean executions of each block per work-item."""
    trips: Mapping[int, float]
    """Mean iterations of each loop per entry, by the block of its body."""
    waiting: frozenset[int]
    """Blocks with a barrier in them: loops in which work-items wait for each other."""

    def list_around(self, block: int | None) -> list[int]:
        """List the bodies of the loops around a block, outermost first."""
        found = []
        while block is not None:
            if block in self.trips:
                found.append(block)
            block = self.facts.blocks[block].parent
        return found[::-1]

    def choose_width(self, device: CpuDevice) -> int:
        """Say how many neighbours along dimension 0 run in the lanes of a vector."""
        width = device.width
        if width == 1:
            # Only where no loop is left between barriers does a loop over work-items hold no other
            # loop, and is vectorised.
            if not all(body in self.waiting or trips <= 1 for body, trips in self.trips.items()):
                return 1
            width = device.lanes
        return width if self.ndrange.known_local_size[0] % width == 0 else 1

    def list_axes(self, width: int) -> list[Axis]:
        """List the loops that a core goes through, innermost first."""
        own: dict[bool, list[Axis]] = {False: [], True: []}
        for body, trips in sorted(self.trips.items(), reverse=True):
            own[body in self.waiting].append(Axis(max(1, round(trips)), body))
        first, *others = list_dimensions(self.ndrange)
        return [
            Axis(width),
            *own[False],
            Axis(max(1, first.local // width)),
            *(Axis(one.local) for one in others),
            *own[True],
            *(Axis(one.groups) for one in (first, *others)),
        ]


def read_nest(kernel: ModelledKernel, ndrange: NDRange) -> Nest:
    """Count a launch's blocks and find its loops."""
    facts = kernel.facts
    sample = count_statically(facts, ndrange, kernel.scalars, choose_work_groups(ndrange, 3))
    counts = count_blocks(facts, sample)[sample.is_present].mean(axis=0).tolist()
    waiting: set[int] = set()
    for block in facts.blocks:
        at = block.id if block.operations.count(OperationKind.BARRIER) else None
        while at is not None:
            waiting.add(at)
            at = facts.blocks[at].parent
    trips = {
        block.id: counts[block.id] / counts[block.parent] if counts[block.parent] else 0.0
        for block in facts.blocks
        if block.kind == "loop body" and block.parent is not None
    }
    return Nest(
        facts=facts, ndrange=ndrange, counts=tuple(counts), trips=trips, waiting=frozenset(waiting)
    )


class StridedAccess(NamedTuple):
    """One access with its strides through memory; None if they depend on data."""

    access: MemoryAccess
    lane_bytes: int | None
    """From one work-item to its neighbour along dimension 0."""
    walk: Walk | None
    """None of local memory, too."""


def list_strided_accesses(
    kernel: ModelledKernel, nest: Nest, axes: Sequence[Axis]
) -> list[StridedAccess]:
    """Evaluate a launch's addresses for a work-group in the middle, and a step along each axis."""
    # Columns of the values are the first work-item and iterations, then a step in each dimension of
    # the work-group, of the grid of work-groups, and of each loop.
    marks = np.eye(2 * MAX_DIMENSIONS + len(nest.trips) + 1, dtype=np.int64)[1:]
    ids: dict[Symbol, Value] = {**bind_names(kernel.scalars)}
    for axis in list_dimensions(nest.ndrange):
        outer = marks[MAX_DIMENSIONS + axis.number] + axis.groups // 2
        ids |= axis.bind(outer, marks[axis.number], axis.local)
    places = {body: 2 * MAX_DIMENSIONS + at for at, body in enumerate(nest.trips)}
    strided: list[StridedAccess] = []
    for access in nest.facts.accesses:
        if access.offset_bytes is None:
            strided.append(StridedAccess(access, None, None))
            continue
        around = nest.list_around(access.block)
        names = (Symbol(SymbolKind.LOOP, one.name) for one in access.loops)
        loops = {name: marks[places[body]] for name, body in zip(names, around, strict=False)}
        try:
            found = np.asarray(access.offset_bytes.evaluate(ids | loops))
        except InputError as error:
            where = f"{nest.facts.kernel}, line {access.line}"
            raise InputError(f"{where}: address of {access.text}: {error}") from error
        first, *others = np.broadcast_to(found, (1 + len(marks),)).tolist()
        moves = [other - first for other in others]
        lane = moves[0]
        dimensions = iter((lane, lane * axes[0].extent, *moves[1 : 2 * MAX_DIMENSIONS]))
        walk = Walk(
            buffer=access.buffer or "",
            bytes=access.bytes,
            # Loops beside the access are not around it.
            steps=tuple(
                next(dimensions) if one.block is None
                else moves[places[one.block]] if one.block in around else 0
                for one in axes
            ),
            inside=tuple(one.block is None or one.block in around for one in axes),
        )  # fmt: skip
        strided.append(StridedAccess(access, lane, walk if access.space in _FAR else None))
    return strided


def cost_launch(kernel: ModelledKernel, ndrange: NDRange, device: CpuDevice) -> AnalyticEstimate:
    """Estimate what a launch costs beside other configurations of its kernel."""
    nest = read_nest(kernel, ndrange)
    width = nest.choose_width(device)
    axes = nest.list_axes(width)
    strided = list_strided_accesses(kernel, nest, axes)
    groups = ndrange.work_group_count
    items = ceil(groups / device.cores) / groups * ndrange.work_item_count  # of the busiest core
    # Where a compiler knows the addresses of a block, laying them out becomes steps of pointers.
    stepped = {one.block for one in nest.facts.accesses if one.offset_bytes is not None}
    executed: dict[Operation, float] = defaultdict(float)
    for block, count in zip(nest.facts.blocks, nest.counts, strict=True):
        for operation, times in block.operations.operations.items():
            is_stepped = block.id in stepped and operation.kind in _ADDRESS_KINDS
            if not (is_stepped and operation.number is NumberClass.INTEGER):
                executed[operation] += count * times
    counts = OperationCounts(operations=dict(executed), memory={})
    ports, _ = time_core(counts, device, width, ())
    loaded_s = device.levels[0].load_s_per_byte * device.cores / width
    l1_s = 0.0
    for access, lane_bytes, _ in strided:
        size = access.bytes
        if width == 1 or lane_bytes in (0, size, -size):
            seconds = loaded_s * max(4 * device.lanes, (width if lane_bytes else 1) * size)
        else:  # lanes that lie apart are loaded one by one
            seconds = GATHER_ADDS * device.add_s * max(1, size // 4)
        l1_s += nest.counts[access.block] * seconds
    arithmetic_s = sum(ports.get(one, 0.0) for one in ("fp32", "fp64", "special", "int"))
    core = {"arithmetic": arithmetic_s, "L1": l1_s}
    walks: dict[Walk, bool] = defaultdict(bool)  # and whether it stores
    for one in strided:
        if one.walk is not None:
            walks[one.walk] |= one.access.kind is not AccessKind.LOAD
    far = {}
    for nearer, farther in pairwise(device.levels):
        loaded, stored, unforeseen = count_moved(
            walks, axes, device.line_bytes, nearer.size_bytes, 12
        )
        seconds = device.line_bytes * (
            loaded * farther.load_s_per_byte + stored * farther.store_s_per_byte
        )
        # Cache misses that a core waits for at once.
        waiting = unforeseen * farther.latency_s / 4.0 / device.cores
        far[farther.name] = seconds + waiting
    ends = max(core.values()) * items, max(far.values(), default=0.0)
    rest = {
        "dispatch": groups * device.costs.get("work_group_dispatch_s", 0.0),
        "launch": device.costs.get("launch_s", 0.0),
    }
    parts = {name: seconds * items for name, seconds in core.items()} | far | rest
    # Three tenths of the shorter of computing and moving data add to the longer.
    return AnalyticEstimate(
        model="cpu_cost",
        machine=device.id,
        seconds=max(ends) + 0.3 * min(ends) + sum(rest.values()),
        limiter=max(parts, key=parts.__getitem__),
        limiters=parts,
        quantities={"vector_work_items_count": width},
    )
