"""How long the core itself takes: protocol, and a table of our own from calibration."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Protocol

from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.errors import InputError
from kernelcast.records.operations import MemorySpace, NumberClass, Operation, OperationKind


@dataclass(frozen=True, slots=True, kw_only=True)
class InCoreTerms:
    """Time of the core with all data in the nearest cache, in cycles per cache line of work.

    Parameters
    ----------
    overlapping : float
        Arithmetic and stores, which go on while lines are transferred: T_OL.
    non_overlapping : float
        Loads, which do not: T_nOL.
    provider : str
        Where it comes from.
    latency : float
        Time of the operations that each iteration waits for; 0 if iterations are independent.
    coverage : float
        Share of the instructions whose cost is known, 0 to 1. The terms are lower bounds below 1.
    notes : tuple of str
        What was assumed or is missing.

    Raises
    ------
    InputError
        If a term is negative, or the coverage is no share.
    """

    overlapping: float
    non_overlapping: float
    provider: str
    latency: float = 0.0
    coverage: float = 1.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if min(self.overlapping, self.non_overlapping, self.latency) < 0:
            msg = (
                f"in-core terms {self.overlapping} || {self.non_overlapping}, latency "
                f"{self.latency}; expected cycles, none below 0"
            )
            raise InputError(msg)
        if not 0 <= self.coverage <= 1:
            msg = f"coverage {self.coverage}; expected a share from 0 to 1"
            raise InputError(msg)

    @property
    def hidden(self) -> float:
        """What transfers can hide: arithmetic, or a chain of it that is longer."""
        return max(self.overlapping, self.latency)

    @property
    def cycles(self) -> float:
        """Time with all data in the nearest cache."""
        return max(self.hidden, self.non_overlapping)


class InCoreProvider(Protocol):
    """Knows the time of a loop body on a core."""

    @property
    def executes_all_sides(self) -> bool:
        """Whether it is certain that branches are masked; else they may be jumped over as well."""

    def predict(self, nest: LoopNest, iterations: float) -> InCoreTerms:
        """Give the terms of so many iterations, those of one cache line of work.

        Raises
        ------
        InputError
            If the nest is not one that the provider can tell of.
        """


class InstructionTable:
    """In-core terms from measured throughputs and latencies per kind of instruction.

    Parameters
    ----------
    machine : CpuMachine
        A calibrated machine, or one whose description holds its instructions.

    Notes
    -----
    Throughputs are those of vector instructions. Floating-point instructions share their ports, so
    their times add up; integer instructions have others. Products and sums count one by one, also
    where a compiler makes one instruction of both.
    """

    name = "table"
    executes_all_sides = False

    def __init__(self, machine: CpuMachine) -> None:
        self._machine = machine

    def predict(self, nest: LoopNest, iterations: float) -> InCoreTerms:
        """Give the terms of so many iterations.

        Raises
        ------
        InputError
            If the bandwidth of the nearest cache is not known.
        """
        times = _Times(self._machine)
        for operation, count in nest.executed.operations.items():
            times.add(operation, count)
        # What only some iterations execute only they wait for.
        counts = {str(one): min(1.0, count) for one, count in nest.executed.operations.items()}
        latency = sum(counts.get(name, 1.0) * times.wait(name) for name in nest.chain)
        return InCoreTerms(
            overlapping=iterations * max(times.ports.values(), default=0.0),
            non_overlapping=iterations * self._load_cycles(nest),
            latency=iterations * latency,
            provider=self.name,
            coverage=times.coverage,
            notes=tuple(times.notes),
        )

    def _load_cycles(self, nest: LoopNest) -> float:
        """Give the cycles per iteration of its loads from the nearest cache."""
        nearest = self._machine.caches[0].name
        loaded = nest.executed.memory_bytes(MemorySpace.GLOBAL, is_store=False)
        rate = self._machine.streams.reached(nearest, 1.0, 0.0, 1)
        if rate is None and loaded:
            msg = (
                f"{self._machine.name}: the load bandwidth of {nearest} is not known; measure it "
                "with `kernelcast calibrate --only caches`"
            )
            raise InputError(msg)
        return loaded / rate.bytes_per_s * self._machine.clock_hz if rate else 0.0


class _Times:
    """Adds up what operations cost one core, and what of it nobody knows."""

    def __init__(self, machine: CpuMachine) -> None:
        self.ports: dict[NumberClass, float] = defaultdict(float)
        self.notes: list[str] = []
        self._machine = machine
        self._counted = 0.0
        self._unknown = 0.0

    @property
    def coverage(self) -> float:
        """Share of operations whose cost is known."""
        return 1 - self._unknown / self._counted if self._counted else 1.0

    def add(self, operation: Operation, count: float) -> None:
        """Count an operation of each iteration."""
        kind = instruction_of(operation)
        if kind is None:
            return
        lanes = count * operation.lanes
        self._counted += lanes
        facts = self._machine.instructions.get(kind)
        if facts is None or facts.peak_per_s is None:
            self._unknown += lanes
            self.notes.append(
                f"{operation}: the throughput of {kind} is not known; {lanes:g} per iteration are "
                "left out and the time is a lower bound (kernelcast calibrate --only "
                f"instructions-{kind})"
            )
            return
        if operation.kind is OperationKind.DIVIDE and operation.number is NumberClass.FLOAT:
            self.notes.append("divisions are taken to cost what native special functions cost")
        flops = 2 if operation.kind is OperationKind.FUSED else 1
        per_cycle = facts.peak_per_s.value / (self._machine.cores * self._machine.clock_hz)
        self.ports[operation.number] += flops * lanes / per_cycle

    def wait(self, name: str) -> float:
        """Give the cycles of an operation that the next iteration waits for."""
        kind = _CHAINED.get(name, name)
        facts = self._machine.instructions.get(kind)
        latency = facts.completion_latency_s.get(1) if facts else None
        if latency is None:
            self.notes.append(
                f"each iteration waits for {name}, whose latency is not known; the time is a lower "
                f"bound (kernelcast calibrate --only instructions-{kind})"
            )
            return 0.0
        return latency.value * self._machine.clock_hz


_AS_INTEGER = frozenset({
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.DIVIDE, OperationKind.LOGIC,
    OperationKind.COMPARE, OperationKind.SELECT, OperationKind.CONVERT,
})  # fmt: skip
_AS_FLOAT = {
    OperationKind.ADD: "fp{}", OperationKind.MULTIPLY: "fp{}", OperationKind.COMPARE: "fp{}",
    OperationKind.SELECT: "fp{}", OperationKind.CONVERT: "fp{}", OperationKind.FUSED: "fp{}_fma",
    OperationKind.DIVIDE: "native_special", OperationKind.SPECIAL: "special",
    OperationKind.SPECIAL_NATIVE: "native_special",
}  # fmt: skip
_CHAINED = {
    str(Operation(kind=kind, number=NumberClass.FLOAT, bits=bits)): pattern.format(bits)
    for kind, pattern in _AS_FLOAT.items()
    for bits in (32, 64)
} | {
    str(Operation(kind=kind, number=NumberClass.INTEGER, bits=bits)): "int32"
    for kind in _AS_INTEGER
    for bits in (32, 64)
}
"""Kinds of instructions by the texts of operations, as a nest's chain names them."""


def instruction_of(operation: Operation) -> str | None:
    """Give the kind of instruction that an operation is; None for what costs nothing here.

    Examples
    --------
    >>> add = Operation(kind=OperationKind.ADD, number=NumberClass.FLOAT, bits=64)
    >>> instruction_of(add)
    'fp64'
    """
    if operation.number is NumberClass.INTEGER:
        return "int32" if operation.kind in _AS_INTEGER else None
    pattern = _AS_FLOAT.get(operation.kind)
    return pattern.format(64 if operation.bits == 64 else 32) if pattern else None
