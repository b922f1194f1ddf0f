"""What the analytic models know of a device: rates, caches, latencies, costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from kernelcast.records.device import DeviceKind, Trait
from kernelcast.records.errors import InputError

SCHEMA = "kernelcast-machine-1"

INSTRUCTIONS = ("fp32", "fp32_fma", "int32", "fp64", "fp64_fma", "native_special", "special")
"""Kinds of instructions that are measured; the paper's SP, MADD, INT, DP, SF and software-sf."""

SPACES = ("global", "local", "constant", "private")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionFacts:
    """Throughput and latency of one kind of instruction (microbenchmarks paper, III to V)."""

    name: str
    peak_per_s: Trait[float] | None = None
    """Operations per second of the whole device; a multiply-add is two."""
    ridge_work_items: Trait[int] | None = None
    """Concurrent work-items per compute unit from which the rate is within 5 % of the peak."""
    issue_latency_s: Mapping[int, Trait[float]] = field(default_factory=dict)
    completion_latency_s: Mapping[int, Trait[float]] = field(default_factory=dict)
    """Seconds per instruction and warp (CPUs: work-item), by independent ones (eq. 4, 5)."""

    def __post_init__(self) -> None:
        _check_name("instruction", self.name, INSTRUCTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheFacts:
    name: str
    size_bytes: Trait[int] | None = None
    reported_size_bytes: Trait[int] | None = None
    """Capacity of one cache: the best figure, and what the system says beside a measured one."""
    line_bytes: Trait[int] | None = None
    ways: Trait[int] | None = None
    sector_bytes: Trait[int] | None = None
    shared_by: Trait[int] | None = None
    """Compute units that share one cache."""
    latency_s: Trait[float] | None = None
    """Of a dependent load that hits it."""
    load_bytes_per_s: Trait[float] | None = None
    copy_bytes_per_s: Trait[float] | None = None
    """Bandwidth from it, all compute units together."""
    write_policy: str = ""
    """``write-back``, ``write-through`` or empty if it is not known."""
    is_inclusive: bool | None = None
    is_victim: bool | None = None
    """Whether it holds what nearer levels hold, or only what they evicted."""
    is_full_duplex: bool | None = None
    """Whether loads from it and stores to it go on at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFacts:
    """One address space as a kernel meets it (microbenchmarks paper, VI)."""

    space: str
    load_bytes_per_s: Mapping[int, Trait[float]] = field(default_factory=dict)
    """Bandwidth of loads, by the bytes of an element."""
    copy_bytes_per_s: Trait[float] | None = None
    latency_s: Trait[float] | None = None
    """Of a dependent load beyond all caches."""

    def __post_init__(self) -> None:
        _check_name("memory", self.space, SPACES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    name: str
    """What was varied and what measured: ``roofline/fp32``, ``walk/global``."""
    x_name: str
    y_name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    """Points: medians with their 95 % intervals."""

    def __post_init__(self) -> None:
        lengths = {len(self.x), len(self.y)} | {len(one) for one in (self.low, self.high) if one}
        if len(lengths) > 1:
            msg = f"curve {self.name}: columns of {sorted(lengths)} points; give all the same"
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDescription:
    id: str
    name: str
    """The device's; a shipped description has its own id."""
    kind: DeviceKind
    platform: str = ""
    driver: str = ""
    calibrated_on: str = ""
    """Date (ISO 8601); empty for shipped descriptions."""
    compute_units: Trait[int] | None = None
    warp_width: Trait[int] | None = None
    max_work_group_size: Trait[int] | None = None
    local_memory_bytes: Trait[int] | None = None
    registers: Trait[int] | None = None
    """Local memory and registers are those of a compute unit."""
    max_work_groups_per_unit: Trait[int] | None = None
    max_work_items_per_unit: Trait[int] | None = None
    clock_hz: Trait[float] | None = None
    """Only where it is measured or published."""
    instructions: tuple[InstructionFacts, ...] = ()
    caches: tuple[CacheFacts, ...] = ()
    memories: tuple[MemoryFacts, ...] = ()
    costs: Mapping[str, Trait[float]] = field(default_factory=dict)
    """Everything else that takes time or moves data; names end in their unit: ``launch_s``,
    ``barrier_s``, ``work_group_dispatch_s``, ``atomic_global_same_per_s``,
    ``transfer_to_device_bytes_per_s`` and so on."""
    not_obtained: Mapping[str, str] = field(default_factory=dict)
    curves: tuple[Curve, ...] = ()

    def instruction(self, name: str) -> InstructionFacts | None:
        return next((one for one in self.instructions if one.name == name), None)

    def cache(self, name: str) -> CacheFacts | None:
        return next((cach for cach in self.caches if cach.name == name), None)

    def memory(self, space: str) -> MemoryFacts | None:
        return next((memory for memory in self.memories if memory.space == space), None)

    def curve(self, name: str) -> Curve | None:
        return next((curve for curve in self.curves if curve.name == name), None)

    def require_kind(self, kind: DeviceKind) -> None:
        """Refuse to describe a device of another kind."""
        if self.kind is not kind:
            model = f"the {kind.upper()} model needs a {kind.upper()}"
            raise InputError(f"machine {self.id} is of kind {self.kind}; {model}")


_FLOATS = ("fp32_fma", "fp32_add", "fp32_mul")


def read_peaks(machine: MachineDescription | None) -> dict[str, float]:
    """Read what a device can do at most, as far as it is known: ``compute_units``, ``cache_bytes``,
    ``bandwidth_bytes_per_s`` of loads from global memory, of the best element size, and
    ``flops_per_s`` in single precision."""
    if machine is None:
        return {}
    memory = machine.memory("global")
    kinds = (machine.instruction(name) for name in _FLOATS)
    found: dict[str, list[float]] = {
        "compute_units": [machine.compute_units.value] if machine.compute_units else [],
        "cache_bytes": [one.size_bytes.value for one in machine.caches if one.size_bytes],
        "bandwidth_bytes_per_s": (
            [one.value for one in memory.load_bytes_per_s.values()] if memory else []
        ),
        "flops_per_s": [one.peak_per_s.value for one in kinds if one and one.peak_per_s],
    }
    return {name: float(max(values)) for name, values in found.items() if values}


def refuse_missing(machine: str, what: str, benchmark: str) -> NoReturn:
    """Say that a number of a machine is missing, and which microbenchmark measures it."""
    raise InputError(
        f"{machine}: {what} is not known; measure it with `kernelcast calibrate --only "
        f"{benchmark}`, or write it into the machine description"
    )


def _check_name(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise InputError(f"{kind} {name!r} is not known; those that are: {', '.join(known)}")
