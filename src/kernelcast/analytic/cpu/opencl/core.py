"""Time of the cores: arithmetic, functions, loads and stores of an average work-item."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from kernelcast.analytic.cpu.opencl.constants import WorkItemConstants
from kernelcast.analytic.cpu.opencl.device import CpuDevice
from kernelcast.analytic.cpu.opencl.execution import Execution
from kernelcast.analytic.cpu.opencl.functions import FunctionCosts
from kernelcast.analytic.cpu.opencl.patterns import AccessPattern, LanePattern
from kernelcast.analytic.cpu.opencl.repeated_loads import leave_out_repeated
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.records.operations import (
    MemorySpace,
    NumberClass,
    Operation,
    OperationCounts,
    OperationKind,
    OwnElement,
)

_INTEGER = frozenset({
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.DIVIDE, OperationKind.LOGIC,
    OperationKind.COMPARE, OperationKind.SELECT, OperationKind.CONVERT,
})  # fmt: skip
_FLOAT = frozenset({
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.LOGIC, OperationKind.COMPARE,
    OperationKind.SELECT, OperationKind.CONVERT,
})  # fmt: skip
_ELEMENT_BYTES = 4
_SCALAR_BYTES = 8
_OWN_LANES = 8
_MOST_APART = 8
"""Numbers between lanes that LLVM still loads as whole registers, 2 to 8 times as long as lanes
side by side (`benchmarks/operation_costs.py`)."""
_COUNTER_OPERATIONS = 3
"""Addition, comparison and branch."""
_CHAINED = (OperationKind.ADD, OperationKind.FUSED)
"""A product that is added to a sum does not wait for the sum before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimes:
    """Seconds of one core per work-item, by what it is busy with.

    Parameters
    ----------
    ports : mapping of str to float
        ``fp32``, ``fp64``, ``int``, ``special``, which share a core's ports, and ``L1``.
    chain_s : float
        Waiting for the result of the operation before.
    notes : tuple of str
        What was not known.
    """

    ports: dict[str, float]
    chain_s: float
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Time of a work-item whose data is near."""
        arithmetic = sum(self.ports.get(one, 0.0) for one in ("fp32", "fp64", "special", "int"))
        return max(arithmetic, self.ports.get("L1", 0.0), self.chain_s)


def time_core(
    executed: OperationCounts,
    device: CpuDevice,
    execution: Execution,
    patterns: Sequence[AccessPattern],
    constants: WorkItemConstants,
) -> CoreTimes:
    """Add up what a core does for a work-item."""
    adder = _Adder(device, execution.width, constants)
    for operation, times in executed.operations.items():
        adder.add(operation, times)
    own = _OwnAccesses.of(executed)
    elements = max(0.0, executed.count_memory(MemorySpace.PRIVATE, is_store=True) - own.stores)
    if elements:
        _unroll_elements(adder, executed, elements)
    # One sum per iteration waits for the last. Elements of a private array are chains of their own.
    sums = executed.count(*_CHAINED, number=NumberClass.FLOAT)
    chained = max(0.0, min(sums, executed.count(OperationKind.BRANCH)) - elements)
    return CoreTimes(
        ports={
            **{port: seconds / execution.efficiency for port, seconds in adder.ports.items()},
            "L1": _time_accesses(device, execution, patterns, constants)
            + own.count * _time_element(device, constants) / execution.efficiency,
        },
        chain_s=chained * device.add_latency_s / execution.width / execution.efficiency,
        notes=tuple(dict.fromkeys(adder.notes)),
    )


@dataclass(frozen=True, slots=True)
class _OwnAccesses:
    """Accesses to elements of a work-item's own arrays that are not held in registers."""

    loads: float
    stores: float

    @property
    def count(self) -> float:
        return self.loads + self.stores

    @classmethod
    def of(cls, executed: OperationCounts) -> "_OwnAccesses":
        """Read them off the addresses that are computed; an update is a load and a store."""
        times: dict[str, float] = defaultdict(float)
        for operation, count in executed.operations.items():
            if operation.kind is OperationKind.ADDRESS and operation.name:
                times[operation.name] += count
        both = times[OwnElement.UPDATE]
        return cls(times[OwnElement.LOAD] + both, times[OwnElement.STORE] + both)


def _unroll_elements(adder: "_Adder", executed: OperationCounts, elements: float) -> None:
    """Take off what compilers spare by holding private arrays in vector registers.

    Loops over elements are unrolled, so that their counters go, and neighbouring elements share
    an instruction.
    """
    adder.add_counters(-elements)
    total = executed.count(OperationKind.MULTIPLY, *_CHAINED, number=NumberClass.FLOAT)
    share = min(1.0, elements / total) if total else 0.0
    for port in ("fp32", "fp64"):
        adder.ports[port] *= 1 - share * (1 - adder.element_share(port))


class _Adder:
    """Adds up times of operations."""

    def __init__(self, device: CpuDevice, width: int, constants: WorkItemConstants) -> None:
        self.ports: dict[str, float] = defaultdict(float)
        self.notes: list[str] = []
        self._device = device
        self._width = width
        self._constants = constants

    def add(self, operation: Operation, times: float) -> None:
        """Add an operation."""
        if operation.number is NumberClass.FLOAT:
            self._add_float(operation, times)
        elif operation.number is NumberClass.INTEGER and operation.kind in _INTEGER:
            self._add_instructions("int", "int32", operation, times)
        elif operation.kind is OperationKind.BRANCH:
            one = Operation(kind=OperationKind.COMPARE, number=NumberClass.INTEGER, bits=32)
            masks = self._width > 1 and not self._device.has_masks
            adds = self._constants.mask_adds if masks else 1.0
            self._add_instructions("int", "int32", one, times * adds)

    def add_counters(self, times: float) -> None:
        """Add (or take off) what the counter of a loop costs per iteration."""
        one = Operation(kind=OperationKind.ADD, number=NumberClass.INTEGER, bits=32)
        self._add_instructions("int", "int32", one, _COUNTER_OPERATIONS * times)
        self.ports["int"] = max(0.0, self.ports["int"])

    def element_share(self, port: str) -> float:
        """Give the instructions per element where elements fill the lanes that are free."""
        lanes = self._device.lanes_of(64 if port == "fp64" else 32)
        return min(1.0, self._width / lanes)

    def _add_float(self, operation: Operation, times: float) -> None:
        kind, name = operation.kind, operation.name
        bits = 64 if operation.bits == 64 else 32
        measured = self._device.functions if bits == 32 else None
        divider_s = None if measured is None else self._time_measured_divider(measured, operation)
        is_function = kind in (OperationKind.SPECIAL, OperationKind.SPECIAL_NATIVE)
        if divider_s is not None:
            self.ports["special"] += times * divider_s
        elif kind is OperationKind.DIVIDE or (is_function and name in self._constants.divider):
            passes = self._constants.divider.get(name, 1)
            self.ports["special"] += times * passes * self._time_divider(operation)
        elif kind is OperationKind.SPECIAL:
            self.ports["special"] += times * self._time_function("special", operation)
        elif kind is OperationKind.SPECIAL_NATIVE:
            self.ports["special"] += times * self._time_function("native_special", operation)
        elif kind is OperationKind.FUSED:
            self._add_instructions(f"fp{bits}", f"fp{bits}_fma", operation, times, flops=2)
        elif kind in _FLOAT:
            self._add_instructions(f"fp{bits}", f"fp{bits}", operation, times)

    def _add_instructions(
        self, port: str, kind: str, operation: Operation, times: float, flops: int = 1
    ) -> None:
        one = self._device.instruction_s(kind, operation.bits)
        if one is None:
            self.notes.append(f"{operation}: the throughput of {kind} is not known; left out")
            return
        lanes = self._device.lanes_of(operation.bits)
        instructions = -(-operation.lanes * self._width // lanes) / self._width
        self.ports[port] += times * instructions * one * flops * self._weigh(operation)

    def _weigh(self, operation: Operation) -> float:
        """Give how much longer or shorter it takes than an addition's instruction."""
        if operation.kind is OperationKind.DIVIDE:
            is_alone = self._width * operation.lanes == 1
            return self._constants.divide_integers[0 if is_alone else 1]
        is_long = operation.number is NumberClass.INTEGER and operation.bits == 64
        is_vector = self._width * operation.lanes > 1
        if is_vector and is_long and operation.kind is OperationKind.MULTIPLY:
            return self._constants.multiply_long
        return 1.0

    def _time_divider(self, operation: Operation) -> float:
        lanes = operation.lanes * self._width
        wide = 2.0 if operation.bits == 64 else 1.0
        adds = max(
            self._constants.divider_adds, self._constants.divider_adds_per_lane * lanes * wide
        )
        return adds * self._device.add_s / self._width

    def _time_measured_divider(self, costs: FunctionCosts, operation: Operation) -> float | None:
        """Give the time of a division or root of one work-item; None of another operation."""
        name = "divide" if operation.kind is OperationKind.DIVIDE else operation.name
        geometric = costs.geometric_adds.get(name)
        if geometric is not None:
            # Of `length` and its like the root stands for all, of `dot` its products.
            is_all = operation.kind is not OperationKind.MULTIPLY or name == "dot"
            return geometric * self._device.add_s if is_all else 0.0
        lanes = operation.lanes * self._width
        adds = costs.divide_adds(name, lanes)
        if adds is None:
            return None
        if self._calls_alone(operation):
            return adds * self._device.add_s
        vectors = -(-lanes // self._device.lanes)
        return adds * vectors * self._device.add_s / self._width

    def _calls_alone(self, operation: Operation) -> bool:
        """Tell whether a work-item has a call of its own, with a register for its vector."""
        return self._device.keeps_vectors and operation.lanes > 1 and bool(operation.name)

    def _time_function(self, kind: str, operation: Operation) -> float:
        """Give the time of a function of one work-item."""
        facts = self._device.instructions.get(kind)
        if facts is None or facts.peak_per_s is None:
            self.notes.append(f"{operation}: the throughput of {kind} is not known; left out")
            return 0.0
        together = operation.lanes * self._width
        vector_s = self._device.cores / facts.peak_per_s.value
        latencies = facts.completion_latency_s
        scalar_s = latencies[max(latencies)].value if latencies else vector_s
        measured = self._device.functions if operation.bits != 64 else None
        if measured is not None and measured.by_lane and operation.lanes > 1:
            # What is called lane by lane has versions for a kernel's own vectors, which take as
            # long as for one number (`benchmarks/operation_costs.py`).
            calls = -(-operation.lanes // _OWN_LANES)
            alone = measured.weigh(operation.name, is_scalar=True)
            if alone is not None:
                return calls * alone * scalar_s
            measured = None
        by_lane = self._constants.by_lane if measured is None else measured.by_lane
        is_scalar = together == 1 or operation.name in by_lane
        weight = None if measured is None else measured.weigh(operation.name, is_scalar=is_scalar)
        if weight is None:
            usual = self._constants.functions if kind == "special" else {}
            weight = usual.get(operation.name, 1.0)
        if self._calls_alone(operation):
            return self._device.register_lanes * weight * vector_s
        return operation.lanes * weight * (scalar_s if is_scalar else vector_s)


def _time_accesses(
    device: CpuDevice,
    execution: Execution,
    patterns: Sequence[AccessPattern],
    constants: WorkItemConstants,
) -> float:
    """Give the time of loads and stores that the nearest cache answers."""
    register_bytes = 4 * device.lanes
    instruction_s = register_bytes * device.levels[0].load_s_per_byte * device.cores
    usual_s = constants.gather_adds_per_lane * device.add_s
    gather_s = device.costs.get("gather_lane_s", usual_s)
    own = leave_out_repeated(patterns)
    if instruction_s > device.lanes * usual_s:
        # The runtime loads lane by lane whatever the pattern, the size and the condition.
        lane_s = instruction_s / device.lanes
        return sum(
            one.executions * _repeat(one, execution) * _count_numbers(one.access) * lane_s
            for one in own
        )
    total = 0.0
    for one in own:
        is_asked = execution.width > 1 and one.is_masked and not device.has_masks
        apart = _count_apart(one, device)
        if execution.width > 1 and one.lanes is LanePattern.SCATTERED and not apart:
            own_s = _count_parts(one, _SCALAR_BYTES) * gather_s
            own_s *= constants.masked_gather if is_asked else 1.0
        else:
            one_s = instruction_s
            if one.lanes is LanePattern.UNIFORM:
                one_s = min(instruction_s, 2 * device.add_s)
            own_s = _count_instructions(one, execution.width, register_bytes) * one_s
            own_s *= max(1, apart)
        total += one.executions * _repeat(one, execution) * own_s
    return total


def _count_apart(pattern: AccessPattern, device: CpuDevice) -> int:
    """Give the registers that hold what one of lanes side by side would; 0 where lanes go alone.

    LLVM's vectoriser loads all that lies between lanes of a loop over work-items.
    """
    is_load = pattern.access.kind is AccessKind.LOAD
    is_near = device.width == 1 and is_load and 1 <= pattern.stride <= _MOST_APART
    return pattern.stride if is_near else 0


def _time_element(device: CpuDevice, constants: WorkItemConstants) -> float:
    """Give the time of an element of a work-item's own array: a lane that lies anywhere.

    Measured (`benchmarks/operation_costs.py`): 2.3 to 2.5 additions for a load on Intel's runtime
    and PoCL, 4.5 to 5 for an update.
    """
    lane_s = 4 * device.levels[0].load_s_per_byte * device.cores
    return max(lane_s, constants.gather_adds_per_lane * device.add_s)


def _repeat(pattern: AccessPattern, execution: Execution) -> float:
    """Give how often a vector does an access for once that each of its lanes does."""
    is_scattered = execution.width > 1 and pattern.lanes is LanePattern.SCATTERED
    return pattern.issued if pattern.recorded and is_scattered else 1 / execution.efficiency


def _count_numbers(access: MemoryAccess) -> float:
    """Give the loads of up to 32 bits: numbers of a vector go one by one, bytes of one too."""
    return max(access.lanes, access.bytes / _ELEMENT_BYTES)


def _count_parts(pattern: AccessPattern, part_bytes: int) -> float:
    return max(1.0, pattern.access.bytes / part_bytes)


def _count_instructions(pattern: AccessPattern, width: int, register_bytes: int) -> float:
    """Give the instructions per work-item of an access whose lanes lie together."""
    size = pattern.access.bytes
    together = 1 if pattern.lanes is LanePattern.UNIFORM else width
    instructions = -(-size * together // register_bytes) / width
    if pattern.lanes is LanePattern.INTERLEAVED:
        instructions *= 1 + log2(size / _ELEMENT_BYTES)
    return instructions
