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
from dataclasses import dataclass
from math import ceil

from kernelcast.analytic.cpu.opencl.core import GATHER_ADDS, time_core
from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.expressions.accesses import AccessKind
from kernelcast.launches.modelling.launches import ModelledKernel
from kernelcast.records.ndrange import NDRange
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)
from kernelcast.tuning.accesses import (
    Nest,
    StridedAccess,
    join_boxes,
    list_strided_accesses,
    read_nest,
)
from kernelcast.tuning.footprints import Axis, Box, CacheFootprint

_WAYS = 12
# Costs that no microbenchmark measures, chosen with `benchmarks/tuning_kernels`.
_ADDRESS_OPERATIONS = 5.0
"""Integer operations per access that compilers turn into steps of a pointer."""
_MISSES_AT_ONCE = 4.0
"""Cache misses that a core waits for at once."""
_OVERLAP = 0.3
"""Share of the shorter of computing and moving data that adds to the longer."""


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
    width = choose_width(nest, device)
    strided, axes = list_strided_accesses(kernel, nest, width)
    groups = ndrange.work_group_count
    items = ceil(groups / device.cores) / groups * ndrange.work_item_count  # of the busiest core
    core = _time_core(nest, device, width, strided)
    moved = _time_moving(join_boxes(strided), axes, device)
    near = max(core.values()) * items
    far = max(moved.values(), default=0.0)
    parts = {name: seconds * items for name, seconds in core.items()} | moved
    parts["dispatch"] = groups * device.costs.get("work_group_dispatch_s", 0.0)
    parts["launch"] = device.costs.get("launch_s", 0.0)
    rest = parts["dispatch"] + parts["launch"]
    return Cost(
        seconds=max(near, far) + _OVERLAP * min(near, far) + rest,
        limiter=max(parts, key=lambda one: parts[one]),
        parts=parts,
        width=width,
    )


def choose_width(nest: Nest, device: CpuDevice) -> int:
    """Say how many neighbours along dimension 0 run in the lanes of a vector."""
    first = nest.ndrange.known_local_size[0]
    if device.width > 1:
        return device.width if first % device.width == 0 else 1
    if not nest.is_straight():
        return 1
    # Loop vectorisers take two vectors or more at a time, and fewer work-items one by one.
    return device.lanes if first % device.lanes == 0 else 1


def _time_core(
    nest: Nest,
    device: CpuDevice,
    width: int,
    strided: Sequence[StridedAccess],
) -> dict[str, float]:
    """Give the seconds of one core per work-item, by what it is busy with."""
    pairs = find_pairs(nest, strided, device) if width == 1 else {}
    executed = _compile(nest, pairs)
    execution = Execution(width=width)
    ports = time_core(executed, device, execution, ()).ports
    arithmetic = sum(ports.get(one, 0.0) for one in ("fp32", "fp64", "special"))
    whole = ports.get("int", 0.0)
    return {
        "arithmetic": arithmetic + whole if width > 1 else max(arithmetic, whole),
        "L1": _time_accesses(device, width, strided, pairs),
    }


def find_pairs(nest: Nest, strided: Sequence[StridedAccess], device: CpuDevice) -> dict[int, float]:
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


def _compile(nest: Nest, pairs: Mapping[int, float]) -> OperationCounts:
    """Give what is left of a work-item's operations after a compiler."""
    operations: dict[Operation, float] = defaultdict(float)
    memory: dict[MemoryOperation, float] = {}
    spared: dict[int, float] = defaultdict(float)
    for access in nest.facts.accesses:
        if access.offset_bytes is not None:
            spared[access.block] += _ADDRESS_OPERATIONS
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
    return OperationCounts(operations=dict(operations), memory=memory)


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


def _time_moving(boxes: Sequence[Box], axes: Sequence[Axis], device: CpuDevice) -> dict[str, float]:
    """Give the seconds of all cores together for lines from each level."""
    found = {}
    footprint = CacheFootprint(boxes, axes, device.line_bytes)
    for nearer, farther in zip(device.levels[:-1], device.levels[1:], strict=True):
        moved = footprint.count_moved(nearer.size_bytes, _WAYS)
        line = device.line_bytes
        seconds = line * (
            moved.loaded * farther.load_s_per_byte + moved.stored * farther.store_s_per_byte
        )
        waiting = moved.unforeseen * farther.latency_s / _MISSES_AT_ONCE / device.cores
        found[farther.name] = seconds + waiting
    return found
