"""How long the core itself takes: by a calibrated machine's table, or by OSACA's port model.

OSACA is an optional package. It knows the instructions of its data files and no others, and counts
an unknown one as free; here such a loop is reported as partly covered, its terms as lower bounds.
"""

import importlib
import importlib.util
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kernelcast.analytic.cpu.machine import CpuMachine
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.records.errors import InputError
from kernelcast.records.machine import refuse_missing
from kernelcast.records.operations import MemorySpace, NumberClass, Operation, OperationKind

_AS_INTEGER = frozenset({
    OperationKind.ADD, OperationKind.MULTIPLY, OperationKind.DIVIDE, OperationKind.LOGIC,
    OperationKind.COMPARE, OperationKind.SELECT, OperationKind.CONVERT,
})  # fmt: skip
_AS_FLOAT = {
    OperationKind.ADD: "fp{}", OperationKind.MULTIPLY: "fp{}", OperationKind.COMPARE: "fp{}",
    OperationKind.SELECT: "fp{}", OperationKind.CONVERT: "fp{}", OperationKind.FUSED: "fp{}_fma",
    OperationKind.DIVIDE: "native_special", OperationKind.SPECIAL: "special",
    OperationKind.SPECIAL_NATIVE: "native_special", OperationKind.LOGIC: "fp{}",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class InCoreTerms:
    """Time of the core with all data in the nearest cache, in cycles per cache line of work."""

    overlapping: float
    """Arithmetic and stores, which go on while lines are transferred: T_OL."""
    non_overlapping: float
    """Loads, which do not: T_nOL."""
    provider: str
    latency: float = 0.0
    """Time of the operations that each iteration waits for; 0 if iterations are independent."""
    coverage: float = 1.0
    """Share of the instructions whose cost is known. The terms are lower bounds below 1."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if min(self.overlapping, self.non_overlapping, self.latency) < 0:
            raise InputError(
                f"in-core terms {self.overlapping} || {self.non_overlapping}, latency "
                f"{self.latency}; expected cycles, none below 0"
            )

    @property
    def hidden(self) -> float:
        """What transfers can hide: arithmetic, or a chain of it that is longer."""
        return max(self.overlapping, self.latency)

    @property
    def cycles(self) -> float:
        return max(self.hidden, self.non_overlapping)


InCoreProvider: TypeAlias = Callable[[LoopNest, float], InCoreTerms]
"""Predicts the terms of so many iterations of a loop body, those of one cache line of work."""


def predict_by_table(machine: CpuMachine, nest: LoopNest, iterations: float) -> InCoreTerms:
    """Predict terms from measured throughputs and latencies per kind of vector instruction."""
    ports: dict[NumberClass, float] = defaultdict(float)
    notes: list[str] = []
    counted = unknown = 0.0
    for operation, count in nest.executed.operations.items():
        kind = instruction_of(operation)
        if kind is None:
            continue
        lanes = count * operation.lanes
        counted += lanes
        facts = machine.instructions.get(kind)
        if facts is None or facts.peak_per_s is None:
            unknown += lanes
            notes.append(
                f"{operation}: the throughput of {kind} is not known; {lanes:g} per iteration "
                "are left out and the time is a lower bound (kernelcast calibrate --only "
                f"instructions-{kind})"
            )
            continue
        if operation.kind is OperationKind.DIVIDE and operation.number is NumberClass.FLOAT:
            notes.append("divisions are taken to cost what native special functions cost")
        flops = 2 if operation.kind is OperationKind.FUSED else 1
        # Floating-point instructions share their ports; integer instructions have others.
        per_cycle = facts.peak_per_s.value / (machine.cores * machine.clock_hz)
        ports[operation.number] += flops * lanes / per_cycle
    # What only some iterations execute only they wait for.
    counts = {str(one): min(1.0, count) for one, count in nest.executed.operations.items()}
    latency = 0.0
    for name in nest.chain:
        kind = _CHAINED.get(name, name)
        facts = machine.instructions.get(kind)
        wait = facts.completion_latency_s.get(1) if facts else None
        if wait is not None:
            latency += counts.get(name, 1.0) * wait.value * machine.clock_hz
            continue
        notes.append(
            f"each iteration waits for {name}, whose latency is not known; the time is a lower "
            f"bound (kernelcast calibrate --only instructions-{kind})"
        )
    # Compute the cycles per iteration of its loads from the nearest cache.
    nearest = machine.caches[0].name
    loaded = nest.executed.count_memory(MemorySpace.GLOBAL, is_store=False, in_bytes=True)
    rate = machine.streams.reached(nearest, 1.0, 0.0, 1)
    if rate is None and loaded:
        refuse_missing(machine.name, f"the load bandwidth of {nearest}", "caches")
    return InCoreTerms(
        overlapping=iterations * max(ports.values(), default=0.0),
        non_overlapping=iterations * (loaded / rate[1] * machine.clock_hz if rate else 0.0),
        latency=iterations * latency,
        provider="table",
        coverage=1 - unknown / counted if counted else 1.0,
        notes=tuple(notes),
    )


def instruction_of(operation: Operation) -> str | None:
    """Name the kind of instruction that an operation is; None for what costs nothing here."""
    if operation.number is NumberClass.INTEGER:
        return "int32" if operation.kind in _AS_INTEGER else None
    pattern = _AS_FLOAT.get(operation.kind)
    return pattern.format(64 if operation.bits == 64 else 32) if pattern else None


_CHAINED = {
    str(one): instruction_of(one) or ""
    for number, kinds in ((NumberClass.FLOAT, _AS_FLOAT), (NumberClass.INTEGER, _AS_INTEGER))
    for bits in (32, 64)
    for one in (Operation(kind=kind, number=number, bits=bits) for kind in kinds)
}
"""Kinds of instructions by the texts of operations, as a nest's chain names them."""


def ask_osaca(assembly: str, *, architecture: str, iterations: float) -> InCoreProvider:
    """Analyse the innermost loop that a compiler made of a nest, its label and jump included, of
    which one pass executes so many iterations."""
    if iterations <= 0:
        msg = f"one pass of the loop executes {iterations} iterations; expected more than 0"
        raise InputError(msg)
    architecture = architecture.upper()
    with warnings.catch_warnings():
        # It uses names that newer releases of its parser generator call deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        model, instructions, chain = _analyse(assembly, architecture)
    # A load passes an address port, then a data path; transfers need the second one.
    paths = frozenset(model["load_throughput_default"][-1][1])
    pressure = {
        port: sum(float(one.port_pressure[place]) for one in instructions)
        for place, port in enumerate(model.get_ports())
    }
    loading = max((one for port, one in pressure.items() if port in paths), default=0.0)
    other = max((one for port, one in pressure.items() if port not in paths), default=0.0)
    unknown = [one.line.strip() for one in instructions if "tp_unknown" in one.flags]
    coverage = 1 - len(unknown) / len(instructions)
    note = ""
    if unknown:
        names = list(dict.fromkeys(unknown))
        shown = "; ".join(names[:4]) + ("; ..." if len(names) > 4 else "")
        note = (
            f"OSACA's data of {architecture} lacks {len(unknown)} instructions of the loop "
            f"({shown}): the in-core terms are lower bounds, coverage {100 * coverage:.0f} %"
        )

    def predict(nest: LoopNest, wanted: float) -> InCoreTerms:
        passes = wanted / iterations
        return InCoreTerms(
            overlapping=passes * other, non_overlapping=passes * loading, latency=passes * chain,
            provider="osaca", coverage=coverage, notes=(f"{nest.name}: {note}",) if note else (),
        )  # fmt: skip

    return predict


def require_osaca() -> None:
    """Check that OSACA is installed; raises `InputError` with the extra that has it if not."""
    if importlib.util.find_spec("osaca") is None:
        msg = "OSACA is not installed; install it with `pip install 'kernelcast[osaca]'`"
        raise InputError(msg)


def _analyse(assembly: str, architecture: str) -> tuple[Any, list[Any], float]:
    """Ask OSACA for its machine model, the instructions with their ports, and the longest chain."""
    require_osaca()
    tool = importlib.import_module("osaca.osaca")
    semantics = importlib.import_module("osaca.semantics")
    if architecture not in tool.SUPPORTED_ARCHS:
        known = ", ".join(sorted(tool.SUPPORTED_ARCHS))
        raise InputError(f"OSACA does not know architecture {architecture}; it knows {known}")
    syntax = tool.BaseParser.detect_ISA(assembly)[1]
    is_x86 = semantics.MachineModel.get_isa_for_arch(architecture) == "x86"
    parser = tool.get_asm_parser(architecture, syntax or "ATT" if is_x86 else None)
    try:
        lines = parser.parse_file(assembly)
    except Exception as error:  # its parsers raise whatever they meet
        raise InputError(f"OSACA cannot read the loop body for {architecture}: {error}") from error
    instructions = [one for one in lines if one.mnemonic is not None]
    if not instructions:
        msg = "the loop body holds no instructions; give the assembly of the innermost loop"
        raise InputError(msg)
    model = semantics.MachineModel(arch=architecture)
    meaning = semantics.ArchSemantics(parser, model)
    meaning.normalize_instruction_forms(lines)
    meaning.add_semantics(lines)
    # Its schedule gets better when it runs a second time, as the tool itself does.
    meaning.assign_optimal_throughput(lines)
    meaning.assign_optimal_throughput(lines)
    graph = semantics.KernelDG(lines, parser, model, meaning, 10, False)
    chains = graph.get_loopcarried_dependencies().values()
    return model, instructions, max((float(one["latency"]) for one in chains), default=0.0)
