"""What a launch costs on a CPU, made for comparing configurations of one kernel.

The analytic model of `kernelcast.analytic.cpu` answers for one launch; what differs between
configurations is what compilers and caches make of their loops: whether work-items share vectors,
which sets of a cache the rows of a tile fall into, and what a work-group costs beside its work. All
of it follows from the source and the calibrated machine. Rules that together were worth less than a
point of the pick's speed on six kernels and four devices were taken out: what stays in registers,
chains of operations, steps of unrolled loops, loads ahead of loops, neighbours of a stencil, and
the wait for the last core.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, gcd, prod
from typing import NamedTuple

import numpy as np

from kernelcast.analytic.cpu.opencl.core import GATHER_ADDS, Execution, time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.expressions import Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.expressions.axes import bind_names
from kernelcast.expressions.axes import list_axes as list_dimensions
from kernelcast.expressions.kernel_facts import KernelFacts
from kernelcast.features.counting.bindings import choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import count_blocks
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

Step = tuple[int, int]
"""Bytes that an iteration of an axis moves an address, and iterations; neither sign nor zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A loop around accesses."""

    name: str
    extent: int


@dataclass(frozen=True, kw_only=True)
class Box:
    """Accesses of one buffer that move alike; neighbours count as one."""

    buffer: str
    bytes: int
    """Of one element."""
    strides: tuple[int, ...]
    """Bytes that an iteration of each axis moves the address."""
    is_store: bool = False
    """Whether it writes."""
    share: float = 1.0
    """Part of the work-items that do it."""
    inside: tuple[bool, ...] = ()
    """Axes that are around it; others do not repeat it. All when left out."""

    def count_repeats(self, axes: Sequence[Axis], start: int) -> int:
        """Count the iterations of the outer axes, from one on, that repeat it."""
        inside = self.inside or (True,) * len(axes)
        return prod(
            axis.extent for axis, is_inside in zip(axes[start:], inside[start:], strict=True)
            if is_inside
        )  # fmt: skip

    def list_shapes(self, axes: Sequence[Axis], line: int) -> list["Shape"]:
        """Describe the places that no axis reaches, that the innermost reaches, and so on."""
        steps: list[Step] = []
        found = [self._shape(steps, line)]
        for axis, stride in zip(axes, self.strides, strict=False):
            if axis.extent > 1 and stride:
                steps.append((abs(stride), axis.extent))
                found.append(self._shape(steps, line))
            else:
                found.append(found[-1])
        return found

    def count_streams(self, axes: Sequence[Axis], line: int) -> int:
        """Count the far places that are visited before one of them moves on."""
        streams, chunk = 1, self.bytes
        apart: list[tuple[int, int]] = []
        for axis, stride in zip(axes, self.strides, strict=False):
            step = abs(stride)
            if axis.extent == 1 or not step:
                continue
            apart.append((step, axis.extent))
            if step > max(line, chunk):
                # Prefetchers follow a walk of more than 16 steps, each of up to half a page.
                is_followed = step < 2048 and axis.extent > 16
                streams *= 1 if is_followed else axis.extent
                continue
            # What lay apart may now be side by side.
            while near := [one for one in apart if one[0] <= max(line, chunk)]:
                chunk += sum(one * (extent - 1) for one, extent in near)
                apart = [one for one in apart if one not in near]
            # Neighbouring lines after which a prefetcher is ahead.
            if chunk >= 8 * line:
                break
        return streams

    def _shape(self, steps: Sequence[Step], line: int) -> "Shape":
        """Describe the places that some axes reach, given as their steps, innermost first."""
        chunk = self.bytes
        far: list[tuple[int, int]] = []
        for stride, extent in sorted(steps):
            if not far and stride <= max(chunk, line):
                chunk += stride * (extent - 1)
            else:
                _add_far(far, extent, stride)
        chunk_lines = chunk / line + (1 - self.bytes / line if chunk % line else 0.0)
        chunk_lines = max(1.0, chunk_lines)
        return Shape(
            lines=chunk_lines * prod(extent for extent, _ in far),
            chunk_lines=chunk_lines,
            far=tuple((extent, stride // line) for extent, stride in far),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Places of an access: pieces side by side, and how they lie apart."""

    lines: float
    chunk_lines: float
    far: tuple[tuple[int, int], ...]
    """How often pieces are repeated, and how many lines apart, for each way to go on."""

    def count_sets(self, sets: int) -> int:
        """Count the sets that the lines fall into, of a cache that has so many."""
        found = min(sets, ceil(self.chunk_lines))
        for extent, apart in self.far:
            step = apart % sets
            found = min(sets, found * min(extent, sets // gcd(step, sets) if step else 1))
        return max(1, found)


def _add_far(far: list[tuple[int, int]], extent: int, stride: int) -> None:
    """Add pieces that lie far apart; those that fall onto earlier ones lengthen their row."""
    if far:
        count, step = far[-1]
        if stride % step == 0 and stride <= count * step:
            far[-1] = (count + stride // step * (extent - 1), step)
            return
    far.append((extent, stride))


class Moved(NamedTuple):
    """Lines that a level sends towards a core."""

    loaded: float
    """Lines over all axes; what is written is loaded first."""
    stored: float
    """The same of what goes back."""
    unforeseen: float
    """Lines among them that no prefetcher brings in time."""


class CacheFootprint:
    """What the accesses of nested loops touch, worked out once for all levels of caches."""

    def __init__(self, boxes: Sequence[Box], axes: Sequence[Axis], line_bytes: int) -> None:
        self._boxes = boxes
        self._axes = axes
        self._line_bytes = line_bytes
        self._shapes = [box.list_shapes(axes, line_bytes) for box in boxes]
        self._walks = [box.count_streams(axes, line_bytes) for box in boxes]

    def count_moved(self, size_bytes: float, ways: int) -> Moved:
        """Count the lines that a cache does not hold when they are wanted.

        A layer condition: what one iteration of an axis touches is still there in the next if all
        accesses of an iteration fit the cache, and each access the sets that its addresses fall
        into. The outermost axis whose iterations fit is the one along which lines are reused.
        """
        sets = 2 ** (max(1, int(size_bytes / self._line_bytes / ways)).bit_length() - 1)
        depth = 0
        while depth < len(self._axes):
            shapes = [each[depth] for each in self._shapes]
            lines = sum(one.lines for one in shapes)
            crowded = sum(one.lines / one.count_sets(sets) for one in shapes)
            if lines * self._line_bytes > size_bytes or crowded > ways:
                break
            depth += 1
        beside = sum(streams for streams in self._walks if streams > 1) - 1
        loaded = stored = unforeseen = 0.0
        for box, of_axes, streams in zip(self._boxes, self._shapes, self._walks, strict=True):
            lines = of_axes[depth].lines * box.count_repeats(self._axes, depth) * box.share
            loaded += lines
            stored += lines if box.is_store else 0.0
            if streams > 1:
                # Streams beside each other of which half are late, as measured with columns of 8 to
                # 512 rows.
                unforeseen += lines * beside / (beside + 64)
        return Moved(loaded, stored, unforeseen)


_AXES = MAX_DIMENSIONS
_GROUP_STEPS = [f"{what} {at}" for what in ("local", "group") for at in range(_AXES)]
_LOOP_BODY = "loop body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop of one work-item."""

    body: int
    """Block of its body."""
    trips: float
    """Mean iterations per entry."""
    has_barrier: bool
    """Whether work-items wait for each other in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """The loops of a kernel for one launch."""

    facts: KernelFacts
    ndrange: NDRange
    counts: tuple[float, ...]
    """Mean executions of each block per work-item."""
    loops: Mapping[int, Loop]
    """By the block of their body."""

    def around(self, block: int) -> tuple[Loop, ...]:
        """List the loops around a block, outermost first."""
        found: list[Loop] = []
        at: int | None = block
        while at is not None:
            if at in self.loops:
                found.insert(0, self.loops[at])
            at = self.facts.blocks[at].parent
        return tuple(found)

    def is_straight(self) -> bool:
        """Tell whether no loop is left between barriers.

        Only then does a loop over work-items hold no other loop, and is vectorised.
        """
        return all(one.has_barrier or one.trips <= 1 for one in self.loops.values())


def read_nest(kernel: ModelledKernel, ndrange: NDRange) -> Nest:
    """Count a launch's blocks and find its loops."""
    facts = kernel.facts
    groups = choose_work_groups(ndrange, 3)
    sample = count_statically(facts, ndrange, kernel.scalars, groups)
    means = count_blocks(facts, sample)[sample.is_present].mean(axis=0)
    counts = tuple(float(mean) for mean in means)
    children: dict[int, list[int]] = {}
    for block in facts.blocks:
        if block.parent is not None:
            children.setdefault(block.parent, []).append(block.id)
    loops: dict[int, Loop] = {}
    for block in facts.blocks:
        if block.kind != _LOOP_BODY or block.parent is None:
            continue
        inner = [block.id]
        for one in inner:
            inner += children.get(one, ())
        entries = counts[block.parent]
        loops[block.id] = Loop(
            body=block.id,
            trips=counts[block.id] / entries if entries else 0.0,
            has_barrier=any(
                facts.blocks[one].operations.count(OperationKind.BARRIER) for one in inner
            ),
        )
    return Nest(facts=facts, ndrange=ndrange, counts=counts, loops=loops)


@dataclass(frozen=True, slots=True, kw_only=True)
class StridedAccess:
    """One access with its strides through memory."""

    access: MemoryAccess
    lane_bytes: int | None
    """From one work-item to its neighbour along dimension 0; None if it depends on data."""
    loop_bytes: int | None
    """From one iteration of the innermost loop around it to the next; None as before."""
    executions: float
    """Per work-item."""
    box: Box | None
    """Where it goes; None if that depends on data, or in local memory."""


def _list_axes(nest: Nest, width: int) -> tuple[list[Axis], list[int]]:
    """List the loops that a core goes through, innermost first, and their bodies' blocks or -1.

    Lanes, loops without barriers, vectors and rows of a work-group, loops with barriers,
    work-groups.
    """
    dimensions = list_dimensions(nest.ndrange)
    loops = sorted(nest.loops.values(), key=lambda one: -one.body)
    axes = [Axis(name="lane", extent=width)]
    bodies = [-1]

    def add(chosen: Sequence[Loop]) -> None:
        for one in chosen:
            axes.append(Axis(name=f"loop {one.body}", extent=max(1, round(one.trips))))
            bodies.append(one.body)

    add([one for one in loops if not one.has_barrier])
    axes.append(Axis(name="local 0", extent=max(1, dimensions[0].local // width)))
    axes += [Axis(name=f"local {one.number}", extent=one.local) for one in dimensions[1:]]
    bodies += [-1] * _AXES
    add([one for one in loops if one.has_barrier])
    axes += [Axis(name=f"group {one.number}", extent=one.groups) for one in dimensions]
    bodies += [-1] * _AXES
    return axes, bodies


def list_strided_accesses(
    kernel: ModelledKernel, nest: Nest, width: int
) -> tuple[list[StridedAccess], list[Axis]]:
    """List a launch's accesses with their strides through memory, and the loops of a core.

    Ids have the values of the first point of a work-group in the middle, and others a step on along
    each of the `_GROUP_STEPS` and loops.
    """
    axes, bodies = _list_axes(nest, width)
    steps = [*_GROUP_STEPS, *(f"loop {body}" for body in nest.loops)]
    marks = np.eye(1 + len(steps), dtype=np.int64)[1:]
    ids: dict[Symbol, Value] = {**bind_names(kernel.scalars)}
    for axis in list_dimensions(nest.ndrange):
        inner, outer = marks[axis.number], marks[_AXES + axis.number] + axis.groups // 2
        ids |= axis.bind(outer, inner, axis.local)
    of_loops = dict(zip(nest.loops, marks[len(_GROUP_STEPS) :], strict=True))
    strided: list[StridedAccess] = []
    known: set[tuple[object, ...]] = set()
    for access in nest.facts.accesses:
        executions = nest.counts[access.block]
        offset = access.offset_bytes
        if offset is None:
            strided.append(
                StridedAccess(
                    access=access, lane_bytes=None, loop_bytes=None, executions=executions, box=None
                )
            )
            continue
        key = (access.block, access.kind, access.buffer, offset)
        if access.kind is AccessKind.LOAD and key in known:
            continue  # loaded once for both
        known.add(key)
        around = nest.around(access.block)
        numbers = {
            Symbol(SymbolKind.LOOP, facts.name): of_loops[loop.body]
            for loop, facts in zip(around, access.loops, strict=False)
        }
        try:
            found = np.asarray(offset.evaluate(ids | numbers))
        except InputError as error:
            where = f"{nest.facts.kernel}, line {access.line}"
            msg = f"{where}: address of {access.text}: {error}"
            raise InputError(msg) from error
        first, *values = np.broadcast_to(found, (1 + len(steps),)).tolist()
        moves = {name: value - first for name, value in zip(steps, values, strict=True)}
        lane, inside = moves["local 0"], {loop.body for loop in around}
        reached = prod(loop.trips for loop in around)
        box = Box(
            buffer=access.buffer or "",
            bytes=access.bytes,
            strides=(
                lane,
                *(
                    lane * width if axis.name == "local 0"
                    # loops beside the access are not around it
                    else moves[axis.name] if body < 0 or body in inside else 0
                    for axis, body in zip(axes[1:], bodies[1:], strict=True)
                ),
            ),
            is_store=access.kind is not AccessKind.LOAD,
            share=min(1.0, executions / reached) if reached else 0.0,
            inside=tuple(body < 0 or body in inside for body in bodies),
        )  # fmt: skip
        is_far = access.space in (MemorySpace.GLOBAL, MemorySpace.CONSTANT)
        strided.append(
            StridedAccess(
                access=access,
                lane_bytes=lane,
                loop_bytes=moves[f"loop {around[-1].body}"] if around else 0,
                executions=executions,
                box=box if is_far else None,
            )
        )
    return strided, axes


def join_boxes(strided: Sequence[StridedAccess]) -> list[Box]:
    """Join accesses of a buffer that differ by a constant only; a load brings in what is stored."""
    found: dict[tuple[object, ...], list[Box]] = defaultdict(list)
    for one in strided:
        if one.box is not None:
            box = one.box
            found[box.buffer, box.bytes, box.strides, box.inside].append(box)
    return [
        replace(
            boxes[0],
            is_store=any(box.is_store for box in boxes),
            share=max(box.share for box in boxes),
        )
        for boxes in found.values()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a launch costs."""

    seconds: float
    limiter: str
    """The largest part."""
    parts: dict[str, float]
    """Seconds by what they are spent on."""
    width: int
    """Work-items in the lanes of a vector."""


def cost_launch(kernel: ModelledKernel, ndrange: NDRange, device: CpuDevice) -> Cost:
    """Say what a launch costs."""
    nest = read_nest(kernel, ndrange)
    width = _choose_width(nest, device)
    strided, axes = list_strided_accesses(kernel, nest, width)
    groups = ndrange.work_group_count
    items = ceil(groups / device.cores) / groups * ndrange.work_item_count  # of the busiest core
    pairs = _find_pairs(nest, strided, device) if width == 1 else {}
    # Give what is left of a work-item's operations after a compiler.
    operations: dict[Operation, float] = defaultdict(float)
    spared: dict[int, float] = defaultdict(float)
    for access in nest.facts.accesses:
        if access.offset_bytes is not None:
            # Operations per access that become steps of a pointer: benchmarks/tuning_kernels.
            spared[access.block] += 5.0
    for block, count in zip(nest.facts.blocks, nest.counts, strict=True):
        if not count:
            continue
        integers = block.operations.count(
            OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.CONVERT,
            number=NumberClass.INTEGER,
        )  # fmt: skip
        left = max(0.0, integers - spared[block.id]) / integers if integers else 1.0
        for operation, times in block.operations.operations.items():
            is_address = operation.number is NumberClass.INTEGER and operation.kind in (
                OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.CONVERT
            )  # fmt: skip
            work = count * times * (left if is_address else 1.0)
            operations[operation] += work / pairs.get(block.id, 1.0)
    ports = time_core(
        OperationCounts(operations=dict(operations), memory={}), device, Execution(width=width), ()
    ).ports
    arithmetic = sum(ports.get(one, 0.0) for one in ("fp32", "fp64", "special"))
    whole = ports.get("int", 0.0)
    core = {
        "arithmetic": arithmetic + whole if width > 1 else max(arithmetic, whole),
        "L1": _time_accesses(device, width, strided, pairs),
    }
    footprint = CacheFootprint(join_boxes(strided), axes, device.line_bytes)
    far = {}
    for nearer, farther in pairwise(device.levels):
        moved = footprint.count_moved(nearer.size_bytes, 12)
        seconds = device.line_bytes * (
            moved.loaded * farther.load_s_per_byte + moved.stored * farther.store_s_per_byte
        )
        # Cache misses that a core waits for at once.
        waiting = moved.unforeseen * farther.latency_s / 4.0 / device.cores
        far[farther.name] = seconds + waiting
    parts = {name: seconds * items for name, seconds in core.items()} | far
    ends = max(core.values()) * items, max(far.values(), default=0.0)
    rest = {
        "dispatch": groups * device.costs.get("work_group_dispatch_s", 0.0),
        "launch": device.costs.get("launch_s", 0.0),
    }
    parts |= rest
    # Three tenths of the shorter of computing and moving data add to the longer.
    return Cost(
        seconds=max(ends) + 0.3 * min(ends) + sum(rest.values()),
        limiter=max(parts, key=lambda one: parts[one]),
        parts=parts,
        width=width,
    )


def _choose_width(nest: Nest, device: CpuDevice) -> int:
    """Say how many neighbours along dimension 0 run in the lanes of a vector."""
    first = nest.ndrange.known_local_size[0]
    if device.width > 1:
        return device.width if first % device.width == 0 else 1
    if not nest.is_straight():
        return 1
    # Loop vectorisers take two vectors or more at a time, and fewer work-items one by one.
    return device.lanes if first % device.lanes == 0 else 1


def _find_pairs(
    nest: Nest, strided: Sequence[StridedAccess], device: CpuDevice
) -> dict[int, float]:
    """Give the neighbours of one work-item that share a vector, by block.

    Where work-items run one after the other, compilers still join the iterations of an innermost
    loop whose accesses lie side by side.
    """
    found: dict[int, float] = {}
    for body, loop in nest.loops.items():
        own = [one for one in strided if one.access.block == body]
        far = [one for one in own if one.box is not None or one.access.space is MemorySpace.LOCAL]
        steps = [one.loop_bytes for one in far]
        sizes = [one.access.bytes for one in far]
        if (
            loop.trips < 2
            or not far
            or any(step not in (0, size) for step, size in zip(steps, sizes, strict=True))
        ):
            continue
        block = nest.facts.blocks[body]
        is_reduction = not block.operations.count_memory(MemorySpace.PRIVATE, is_store=True) and (
            not any(one.access.kind is AccessKind.STORE for one in own)
        )
        if is_reduction or not any(steps):
            continue
        found[body] = min(loop.trips, device.lanes / 2)
    return found


def _time_accesses(
    device: CpuDevice, width: int, strided: Sequence[StridedAccess], pairs: Mapping[int, float]
) -> float:
    """Give the seconds per work-item of loads and stores that the nearest cache answers."""
    register_bytes = 4 * device.lanes
    load_s = register_bytes * device.levels[0].load_s_per_byte * device.cores
    total = 0.0
    for one in strided:
        size = one.access.bytes
        if width == 1 or one.lane_bytes == 0:
            seconds = -(-size // register_bytes) * load_s / width
        elif one.lane_bytes is not None and abs(one.lane_bytes) == size:
            seconds = -(-size * width // register_bytes) * load_s / width
        else:
            seconds = GATHER_ADDS * device.add_s * max(1, size // 4)
        total += one.executions * seconds / pairs.get(one.access.block, 1.0)
    return total
