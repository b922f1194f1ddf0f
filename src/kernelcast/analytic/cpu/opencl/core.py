"""Time of the cores: arithmetic, functions, loads and stores of an average work-item; its lanes.

Constants are what calibration does not tell of a CPU and its OpenCL runtime, in units of the
machine's own (one scalar addition that no other waits for), so that they travel between clocks.
They were chosen with the kernels of ``examples/`` and the corpus on Intel's runtime and PoCL, on
one processor each (`benchmarks/static_estimates.py`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import log2

from kernelcast.analytic.addresses import (
    GroupAddresses,
    GroupEvaluator,
    Groups,
    read_recorded,
)
from kernelcast.analytic.cpu.in_core import instruction_of
from kernelcast.analytic.cpu.opencl.device import CpuDevice, read_function_costs
from kernelcast.expressions import Expr, Symbol, SymbolKind, Value
from kernelcast.expressions.accesses import AccessKind, LoopFacts, MemoryAccess, ModelledLaunch
from kernelcast.records.operations import (
    MemoryOperation,
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
)

GATHER_ADDS = 2.5
"""Time per lane of a vector load or store whose lanes do not lie side by side."""
_DIVIDER_ADDS, _DIVIDER_ADDS_PER_LANE = 4.0, 2.0
"""Time of a scalar division or square root, and per lane of a vector: they take turns."""
_ELEMENT_BYTES, _SCALAR_BYTES = 4, 8
_CHAINED = (OperationKind.ADD, OperationKind.FUSED)
"""A product that is added to a sum does not wait for the sum before it."""


_OF_ITEMS = (SymbolKind.GLOBAL_ID, SymbolKind.LOCAL_ID)


class LanePattern(StrEnum):
    """Where the lanes of a vector go."""

    UNIFORM = "uniform"
    """All to one address: one scalar access."""
    CONTIGUOUS = "contiguous"
    """Side by side: one vector access."""
    SCATTERED = "scattered"
    """One access per lane."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AccessPattern:
    access: MemoryAccess
    groups: Mapping[int, GroupAddresses]
    """By work-group: evaluated where there is a formula, else recorded."""
    lanes: LanePattern
    executions: float
    """Per work-item, as the kernel's counts say."""
    is_masked: bool = False
    """Whether some lanes may leave it out while others do not."""

    @property
    def is_local(self) -> bool:
        """Whether it goes to memory that no other work-group sees."""
        return self.access.space in (MemorySpace.LOCAL, MemorySpace.PRIVATE)


def find_patterns(
    launch: ModelledLaunch, width: int, *, gathers_narrowed: bool = False
) -> list[AccessPattern]:
    """Evaluate all accesses of a launch for some work-groups and their neighbours."""
    evaluator = GroupEvaluator(launch, Groups(launch.ndrange).every)
    found: list[AccessPattern] = []
    for access in launch.accesses:
        lanes = LanePattern.SCATTERED
        if access.offset_bytes is not None:
            groups = evaluator.evaluate(access, access.offset_bytes)
            # Compilers still see lanes side by side in an outermost loop that neighbours leave at
            # different times, if its trip count is a formula.
            first, *inner = access.loops or (None,)
            if not (first and first.trip_count is None) and not any(map(_is_divergent, inner)):
                lanes = _find_lanes(access.offset_bytes, access.bytes, evaluator.bound)
            if width == 1:
                lanes = LanePattern.CONTIGUOUS
            elif gathers_narrowed and access.is_narrowed and lanes is LanePattern.CONTIGUOUS:
                lanes = LanePattern.SCATTERED
        else:
            groups = read_recorded(access, launch)
            if not groups:
                if access.space is not MemorySpace.LOCAL:
                    raise access.refuse_unknown(launch.kernel)
                # How often it is executed does not depend on where it goes.
                groups = evaluator.evaluate(access, Expr.constant(0))
        every = sum(len(one.table) for one in groups.values())
        # Whether a condition on data or ids decides which lanes execute an access.
        guard = access.guard
        is_masked = not guard.is_exact or any(one.kind in _OF_ITEMS for one in guard.symbols())
        found.append(
            AccessPattern(
                access=access,
                groups=groups,
                lanes=lanes,
                executions=sum(one.executions for one in groups.values()) / every,
                is_masked=is_masked or any(map(_is_divergent, access.loops)),
            )
        )
    # Executions agree with the kernel's counts, which know of conditions on data.
    kinds: dict[MemoryOperation, list[int]] = defaultdict(list)
    for place, one in enumerate(found):
        space, kind, size = one.access.space, one.access.kind, one.access.bytes
        if kind is not AccessKind.ATOMIC:
            is_store = kind is AccessKind.STORE
            kinds[MemoryOperation(space=space, is_store=is_store, bytes=size)].append(place)
    for operation, places in kinds.items():
        modelled = sum(found[place].executions for place in places)
        counted = launch.executed.memory.get(operation)
        if counted is not None and modelled > 0:
            for place in places:
                own = found[place]
                found[place] = replace(own, executions=own.executions * counted / modelled)
    return found


def _find_lanes(offset: Expr, size_bytes: int, bound: Mapping[Symbol, Value]) -> LanePattern:
    """Find where the lanes go by the bytes from one to the next, if these are always the same."""
    step = Expr.constant(0)
    for kind in _OF_ITEMS:
        parts = offset.split(Symbol(kind, axis=0))
        if parts is None:
            return LanePattern.SCATTERED
        offset, slope = parts
        step += slope
    found = step.evaluate(bound) if step.is_parameter else None
    if not isinstance(found, int) or found not in (0, size_bytes):
        return LanePattern.SCATTERED
    return LanePattern.CONTIGUOUS if found else LanePattern.UNIFORM


def _is_divergent(loop: LoopFacts) -> bool:
    """Tell whether neighbours may leave a loop at different times."""
    if loop.trip_count is None:
        return True
    return any(one.kind in _OF_ITEMS for one in loop.trip_count.symbols())


def find_execution(launch: ModelledLaunch, device: CpuDevice) -> tuple[int, float]:
    """Find how the loop over work-items is executed: the width of its vectors, their efficiency.

    So many neighbours along dimension 0 run in the lanes of one vector; 1 if they run one after the
    other. The efficiency is the share of the lanes that do useful work: all alternatives that some
    lane takes are issued for all of them.
    """
    width, executed = device.width, launch.executed
    if width == 1:
        # LLVM makes vectors of a loop over work-items unless it holds another loop or a branch,
        # vectors of the kernel's own, or calls of a function of which there is no vector version,
        # as its remarks say. Barriers part a kernel into loops, most of which hold neither.
        by_lane = () if device.functions is None else device.functions.by_lane
        is_plain = executed.count(OperationKind.BARRIER) > 0 or not (
            any(one.lanes > 1 for one in launch.accesses)
            or any(one.lanes > 1 or one.name in by_lane for one in executed.operations)
        )
        if is_plain and not executed.count(OperationKind.BRANCH):
            width = device.lanes
    if launch.ndrange.known_local_size[0] % width:
        width = 1
    efficiency = 1.0
    narrowest = min(launch.warps, key=lambda one: one.width, default=None)
    if narrowest is not None and width > 1:
        # The logarithm is linear in the width's.
        share = min(1.0, log2(width) / log2(narrowest.width))
        efficiency = max(narrowest.lane_efficiency, 1 / narrowest.width) ** share
    return width, efficiency


Times = Mapping[str, float]
"""Seconds of one core per work-item, by what it is busy with: ``fp32``, ``fp64``, ``int``,
``special``, which share a core's ports, ``L1``, and ``chain``, the results that it waits for."""


def add_up(times: Times) -> float:
    """Compute the time of a work-item whose data is near."""
    arithmetic = sum(times.get(one, 0.0) for one in ("fp32", "fp64", "special", "int"))
    return max(arithmetic, times["L1"], times["chain"])


def time_core(
    executed: OperationCounts,
    device: CpuDevice,
    width: int,
    patterns: Sequence[AccessPattern],
    efficiency: float = 1.0,
) -> tuple[Times, list[str]]:
    """Time what a core does for a work-item in lanes; with notes on what is left out."""
    ports: dict[str, float] = defaultdict(float)
    notes: list[str] = []
    for operation, times in executed.operations.items():
        is_branch = operation.kind is OperationKind.BRANCH
        instruction = "int32" if is_branch else instruction_of(operation)
        if instruction is None:
            continue
        if instruction.endswith("special"):
            ports["special"] += times * _time_special(operation, device, width, notes)
            continue
        each_s = device.instruction_s(instruction, operation.bits)
        if each_s is None:
            notes.append(f"{operation}: the throughput of {instruction} is not known; left out")
            continue
        lanes = device.lanes_of(operation.bits)
        instructions = -(-operation.lanes * width // lanes) / width
        # The microbenchmark counts a fused product and sum as two.
        doubled = 2 if operation.kind is OperationKind.FUSED else 1
        port = "int" if instruction == "int32" else instruction.removesuffix("_fma")
        ports[port] += doubled * times * instructions * each_s
    # One sum per iteration waits for the last.
    sums = executed.count(*_CHAINED, number=NumberClass.FLOAT)
    chained = min(sums, executed.count(OperationKind.BRANCH))
    add_latency_s = device.instructions["fp32"].completion_latency_s[1].value
    ports["L1"] = _time_accesses(device, width, patterns)
    ports["chain"] = chained * add_latency_s / width
    return {port: seconds / efficiency for port, seconds in ports.items()}, notes


def _time_special(operation: Operation, device: CpuDevice, width: int, notes: list[str]) -> float:
    """Time a function, division or root of one work-item."""
    name, is_division = operation.name, operation.kind is OperationKind.DIVIDE
    lanes = operation.lanes * width
    measured = device.functions if operation.bits != 64 else None
    if measured is not None:
        divider = measured.divider_adds if lanes == 1 else measured.divider_vector_adds
        adds = divider.get("divide" if is_division else name)
        if adds is not None:
            return adds * -(-lanes // device.lanes) * device.add_s / width
    usual = read_function_costs()["others"]
    passes = 1.0 if is_division else usual.divider_adds.get(name)
    if passes is not None:
        wide = 2.0 if operation.bits == 64 else 1.0
        adds = max(_DIVIDER_ADDS, _DIVIDER_ADDS_PER_LANE * lanes * wide)
        return passes * adds * device.add_s / width
    figure = "special" if operation.kind is OperationKind.SPECIAL else "native_special"
    facts = device.instructions.get(figure)
    if facts is None or facts.peak_per_s is None:
        notes.append(f"{operation}: the throughput of {figure} is not known; left out")
        return 0.0
    vector_s = device.cores / facts.peak_per_s.value
    latencies = facts.completion_latency_s
    scalar_s = latencies[max(latencies)].value if latencies else vector_s
    if measured is not None and measured.by_lane and operation.lanes > 1:
        # What is called lane by lane has versions for a kernel's own vectors, which take as long as
        # for one number (`benchmarks/operation_costs.py`).
        alone = measured.scalar.get(name)
        if alone is not None:
            return -(-operation.lanes // 8) * alone * scalar_s
        measured = None
    is_scalar = lanes == 1 or name in (measured or usual).by_lane
    weight = None
    if measured is not None:
        weight = (measured.scalar if is_scalar else measured.vector).get(name)
    if weight is None:
        weight = usual.scalar.get(name, 1.0) if figure == "special" else 1.0
    return operation.lanes * weight * (scalar_s if is_scalar else vector_s)


def _time_accesses(device: CpuDevice, width: int, patterns: Sequence[AccessPattern]) -> float:
    """Time the loads and stores of a work-item that the nearest cache answers."""
    register_bytes = 4 * device.lanes
    instruction_s = register_bytes * device.levels[0].load_s_per_byte * device.cores
    gather_s = GATHER_ADDS * device.add_s
    # Take off the loads of a work-item that find what it has loaded before. Only of buffers that
    # nothing is stored to: else compilers must load again.
    stored = {one.access.buffer for one in patterns if one.access.kind is not AccessKind.LOAD}
    found: dict[object, AccessPattern] = {}
    for one in patterns:
        is_free = one.access.offset_bytes is not None and one.access.buffer not in stored
        found.setdefault(_identify(one.access) if is_free else id(one), one)
    own = [*found.values()]
    if instruction_s > device.lanes * gather_s:
        # The runtime loads lane by lane whatever the pattern, the size and the condition: numbers
        # of a vector one by one, bytes of one too.
        numbers = (
            one.executions * max(one.access.lanes, one.access.bytes / _ELEMENT_BYTES) for one in own
        )
        return sum(numbers) * instruction_s / device.lanes
    total = 0.0
    for one in own:
        if width > 1 and one.lanes is LanePattern.SCATTERED:
            own_s = max(1.0, one.access.bytes / _SCALAR_BYTES) * gather_s
            # How many times as long accesses take, lane by lane, that some lanes may leave out, on
            # vectors without mask registers: one lane after the other is asked.
            own_s *= 3.0 if one.is_masked and not device.has_masks else 1.0
        else:
            together = 1 if one.lanes is LanePattern.UNIFORM else width
            own_s = -(-one.access.bytes * together // register_bytes) / width * instruction_s
        total += one.executions * own_s
    return total


def _identify(access: MemoryAccess) -> object:
    """Name what an access loads; loops of one line are the same, whoever calls their function."""
    assert access.offset_bytes is not None
    lines = {
        Symbol(SymbolKind.LOOP, one.name): Expr.symbol(Symbol(SymbolKind.LOOP, str(one.line)))
        for one in access.loops
    }
    loops = tuple((one.line, one.trip_count) for one in access.loops)
    return access.buffer, access.offset_bytes.substitute(lines), loops
