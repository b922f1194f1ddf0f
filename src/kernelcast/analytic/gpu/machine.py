"""GPUs in the numbers that the model takes: work-groups at once, rates, constants of limiters."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from kernelcast.expressions.accesses import ModelledLaunch
from kernelcast.records.device import Trait
from kernelcast.records.errors import DeviceLimitError, InputError
from kernelcast.records.machine import (
    CacheFacts,
    InstructionFacts,
    MachineDescription,
    refuse_missing,
)
from kernelcast.records.occupancy import UnitLimits, compute_p_sat


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    name: str
    register_granularity: int
    """32-bit registers per work-item are allocated in multiples of this."""
    schedulers: int
    """Parts of a compute unit that keep their own registers; a warp lives in one of them."""
    max_registers: int
    local_granularity_bytes: int
    """Local memory is allocated in multiples of this."""
    l1_banks_bytes: int
    """Bytes that all banks of the L1 cache deliver in a cycle."""
    lanes_per_pass: int
    """Work-items whose addresses are looked at together."""
    issued_lanes: int
    """Work-items of a compute unit for which an instruction is issued in a cycle."""
    dispatch_cycles: float
    """Cycles of a die between the starts of two work-groups, where the description has no cost."""


# NVIDIA: occupancy calculator of the CUDA toolkit, compute capability 7.0 to 9.0; registers are
# allocated per warp in units of 256, thus 8 per work-item. Starts of work-groups follow from
# gpu-small-kernels with 32 and 64 work-items: A40 1.2, L40 1.3, H200 1.2 cycles.
NVIDIA = Architecture(
    name="nvidia", register_granularity=8, schedulers=4, max_registers=255,
    local_granularity_bytes=256, l1_banks_bytes=128, lanes_per_pass=32,
    issued_lanes=128, dispatch_cycles=1.2,
)  # fmt: skip
# AMD's ISA documents: CDNA has four SIMDs of 256 registers for each of 64 lanes (the 512 of CDNA 2
# and 3 are shared with the accumulation registers), allocated in units of 8. Starts as above, of
# the MI210.
CDNA = Architecture(
    name="cdna", register_granularity=8, schedulers=4, max_registers=256,
    local_granularity_bytes=512, l1_banks_bytes=64, lanes_per_pass=16,
    issued_lanes=64, dispatch_cycles=4.1,
)  # fmt: skip
# RDNA 2: two SIMDs per compute unit, 1024 registers for each of 32 lanes, units of 16; starts as
# above: RX 6900 XT.
RDNA = Architecture(
    name="rdna", register_granularity=16, schedulers=2, max_registers=256,
    local_granularity_bytes=512, l1_banks_bytes=128, lanes_per_pass=32,
    issued_lanes=64, dispatch_cycles=1.1,
)  # fmt: skip
_AMD_WORDS = ("amd", "instinct", "radeon", "gfx")


def find_architecture(machine: MachineDescription) -> Architecture:
    """Tell a GPU's family from its name and its warp width."""
    width = machine.warp_width.value if machine.warp_width else None
    text = f"{machine.id} {machine.name} {machine.platform}".lower()
    if width == 64:
        return CDNA
    return RDNA if any(word in text for word in _AMD_WORDS) else NVIDIA


Number = TypeVar("Number", int, float)


def time_stream(loaded: float, stored: float, load_rate: float, copy_rate: float) -> float:
    """Compute the least time of bytes that DRAM moves, by its measured rates."""
    moved = loaded + stored
    # Streams reach the copy's rate from a third of stores on, the triad's share.
    mixed = min(3 * stored / moved, 1.0) if moved > 0 else 0.0
    return moved * ((1 - mixed) / load_rate + mixed / copy_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMachine:
    architecture: Architecture
    compute_units: int
    warp_width: int
    """Compute units of the chip, work-items that issue together."""
    clock_hz: float | None
    l1_bytes: int
    l1_line_bytes: int
    l1_sector_bytes: int
    """Capacity of one unit's L1 cache, bytes allocated at once, bytes fetched at once."""
    l2_bytes: int
    l2_units: int
    """Capacity of one L2 cache and the compute units that share it."""
    dram_fetch_bytes: int
    """Bytes that a miss of the L2 cache fetches."""
    unit: UnitLimits
    l3_bytes: int = 0
    """Capacity of the cache behind L2 that all units share, 0 where there is none."""
    l1_bytes_per_s: float | None = None
    dram_load_bytes_per_s: float | None = None
    dram_copy_bytes_per_s: float | None = None
    """Bandwidths of all units together."""
    notes: tuple[str, ...] = ()

    @property
    def l1_cycle_bytes(self) -> int:
        """Bytes that an L1 cache sends a cycle: all its banks', or half of that."""
        banks = self.architecture.l1_banks_bytes
        if not self.l1_bytes_per_s or not self.clock_hz:
            return banks
        measured = self.l1_bytes_per_s / (self.compute_units * self.clock_hz)
        # Turing's, and NVIDIA's for graphics since, have half as many load units: measured over the
        # banks' bandwidth is 0.98 and more on V100, A100 and H100, 0.5 on A40 and L40.
        return banks // 2 if measured < 0.6 * banks else banks

    @property
    def l2_total_bytes(self) -> float:
        return self.l2_bytes * self.compute_units / self.l2_units


def read_machine(description: MachineDescription) -> GpuMachine:
    family = find_architecture(description)
    l1, l2, l3 = (description.cache(name) or CacheFacts(name=name) for name in ("L1", "L2", "L3"))
    # What the driver reports is in every description, whichever microbenchmark made it.
    units = _need(description.compute_units, "compute_units", description, "clock")
    width = _need(description.warp_width, "warp_width", description, "clock")
    granule = family.register_granularity
    notes: list[str] = []
    memory = description.memory("global")
    loads = memory.load_bytes_per_s if memory else {}
    return GpuMachine(
        architecture=family,
        compute_units=units,
        warp_width=width,
        clock_hz=read_value(description.clock_hz),
        l1_bytes=_need(l1.size_bytes, "L1 size", description, "caches"),
        l1_line_bytes=_assume(l1.line_bytes, 128, "L1 line bytes", notes),
        l1_sector_bytes=_assume(l1.sector_bytes, 32, "L1 sector bytes", notes),
        l2_bytes=_need(l2.size_bytes, "L2 size", description, "caches"),
        l2_units=_assume(l2.shared_by, units, "compute units of an L2 cache", notes),
        dram_fetch_bytes=_assume(l2.sector_bytes, 64, "L2 sector bytes", notes),
        l3_bytes=(read_value(l3.size_bytes) or 0) if l3.load_bytes_per_s else 0,
        unit=UnitLimits(
            vendor=family.name,
            name=description.name,
            warp_sizes=(width,),
            max_work_group_size=read_value(description.max_work_group_size) or 0,
            max_work_groups=read_value(description.max_work_groups_per_unit) or 0,
            max_warps=(read_value(description.max_work_items_per_unit) or 0) // width,
            # 32-bit registers of a compute unit of all families.
            registers=_assume(description.registers, 65536, "registers of a compute unit", notes),
            max_registers=-(-family.max_registers // granule) * granule,
            register_granule=granule * width,
            register_partitions=family.schedulers,
            local_bytes=read_value(description.local_memory_bytes) or 0,
            work_group_local_bytes=0,
            local_granule_bytes=family.local_granularity_bytes,
        ),
        l1_bytes_per_s=read_value(l1.load_bytes_per_s),
        dram_load_bytes_per_s=max((one.value for one in loads.values()), default=None),
        dram_copy_bytes_per_s=read_value(memory.copy_bytes_per_s) if memory else None,
        notes=tuple(notes),
    )


def read_value(trait: Trait[Number] | None) -> Number | None:
    return trait.value if trait else None


def _need(
    trait: Trait[Number] | None, what: str, description: MachineDescription, only: str
) -> Number:
    if trait is None:
        refuse_missing(description.id, what, only)
    return trait.value


def _assume(trait: Trait[int] | None, default: int, what: str, notes: list[str]) -> int:
    if trait is not None:
        return trait.value
    notes.append(f"{what}: not in the machine description, {default} assumed")
    return default


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    work_groups: int
    warps_per_work_group: int
    notes: tuple[str, ...] = ()


def compute_occupancy(launch: ModelledLaunch, machine: GpuMachine) -> Occupancy:
    """Count the work-groups that fit into a compute unit at once."""
    size, unit, notes = launch.ndrange.work_group_size, machine.unit, []
    if launch.registers is None:
        notes.append("registers per work-item not known: they limit nothing")
        uses_local = launch.local_bytes and unit.local_bytes
        if not (unit.max_work_groups or unit.max_warps or uses_local):
            notes.append("no limit of a compute unit is known: one work-group assumed")
            unit = replace(unit, max_work_groups=1)
    # OpenCL compilers give a kernel at least 32; the occupancy of smaller ones is no larger.
    registers = None if launch.registers is None else max(launch.registers, 32)
    try:
        work_groups, _ = compute_p_sat(
            unit,
            work_group_size=size,
            registers_per_work_item=registers,
            local_memory_bytes=launch.local_bytes,
        )
    except DeviceLimitError as error:
        raise InputError(f"{launch.kernel}: {error}") from error
    return Occupancy(
        work_groups=work_groups,
        warps_per_work_group=-(-size // machine.warp_width),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimiterConstants:
    """How limiters overlap, and numbers of machines that no machine description holds."""

    name: str
    exposed_wavefronts: float
    """Part of the L1 cache's wavefront cycles during which a compute unit does not take part in
    DRAM transfers: loads return in order, so hits wait behind misses. Counts for the part of the
    loads that hits, half of it where no place for work-items stays empty."""
    exposed_lines: float
    """Cycles of the same kind for each line that a warp's load looks up."""
    overlap_power: float
    """How arithmetic, issue and memory overlap, see `Limits`, where the machine description has no
    ``overlap_power`` of its own."""
    is_paper: bool = False
    """Whether only the paper's limiters count: the largest of FP, L1, L2 and DRAM, without the
    sectors that fill L1 (one a cycle), with bank conflicts by half-warps (section 4.2), and no
    saturation, latency, translation, tail, launch and the rest."""
    bandwidths: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Bytes per second of L2 and DRAM by machine id, in place of the description's."""


# Fitted to the run times of 20 local sizes of a 25-point stencil on a V100; overlap_power is the
# median of five GPUs' rooflines (benchmarks/results/gpu_families).
FITTED = LimiterConstants(
    name="kernelcast",
    exposed_wavefronts=0.965,
    exposed_lines=0.447,
    overlap_power=2.4,
)
# Ernst et al., JPDC 2022, with the bandwidths of its implementation.
PAPER_2022 = LimiterConstants(
    name="paper-2022",
    exposed_wavefronts=0.0,
    exposed_lines=0.0,
    overlap_power=math.inf,
    is_paper=True,
    bandwidths={"v100": (2500e9, 790e9), "a100": (4500e9, 1400e9)},
)


ELEMENT_BYTES = 8
"""Bytes that a work-item of the published saturation curves has in flight."""
_MIXED = 0.05
"""Part of stores from which a stream is as slow as a copy: the bus turns around anyway."""


Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Work-items of 8 bytes each per compute unit, ascending, and the bytes per second that they reach:
proportional below the first point, flat above the last one."""


_NO_ITEMS = 1e-9
"""So few work-items that no launch falls below them."""
_BYTES_PER_CYCLE = 128
_LAUNCH_S = 2.4e-6
"""The published machine descriptions that know it say 1.6 to 3.3 us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRates:
    machine: GpuMachine
    constants: LimiterConstants
    clock_hz: float
    """Cycles of an L1 cache per second, also where the description lacks the clock."""
    l2_bytes_per_s: float | None
    dram_load: Curve
    dram_copy: Curve
    """Bandwidth of the DRAM, of loads alone, and of as many loads as stores."""
    l3_bytes_per_s: float | None
    """Of the cache behind L2, by which all goes between L2 and DRAM."""
    latency_s: Mapping[str, float]
    """Of a dependent load that hits each level, ``L1`` to ``L3`` and ``DRAM``; 0 where it is not
    known."""
    instructions: Mapping[str, InstructionFacts]
    costs: Mapping[str, float]
    launch_s: float
    translation: tuple[float, float]
    """Pages of 2 MiB that a work-group may use at once before a compute unit loses translations of
    addresses, and seconds of each that it misses then."""
    notes: tuple[str, ...]
    overlap_power: float

    def dram_bytes_per_s(self, items: float, store_share: float) -> float:
        """Look up the DRAM's bandwidth with so many work-items of 8 bytes on a compute unit."""
        mixed = min(store_share / _MIXED, 1.0)
        load, copy = (
            float(np.interp(items, (0.0, *reached), (0.0, *rates)))
            for reached, rates in (self.dram_load, self.dram_copy)
        )
        return (1 - mixed) * load + mixed * copy

    def peak(self, instruction: str) -> float:
        """Look up what all compute units reach of an instruction, 0 where it is not known."""
        facts = self.instructions.get(instruction)
        return (read_value(facts.peak_per_s) if facts else None) or 0.0

    def ridge_work_items(self, instruction: str) -> float:
        """Find the work-items per unit that reach the peak: measured, else by Little's law."""
        facts = self.instructions.get(instruction)
        if facts is None:
            return 0.0
        if facts.ridge_work_items is not None:
            return facts.ridge_work_items.value
        latency_s = read_value(facts.completion_latency_s.get(1)) or 0.0
        return self.peak(instruction) / self.machine.compute_units * latency_s


def read_rates(machine: MachineDescription, constants: LimiterConstants) -> GpuRates:
    notes: list[str] = []
    gpu = read_machine(machine)
    caches = {one.name: one for one in machine.caches}
    l2, l3 = caches.get("L2"), caches.get("L3")
    l2_rate, dram_rate = constants.bandwidths.get(machine.id, (None, None))
    if l2_rate is None:
        l2_rate = read_value(l2.load_bytes_per_s if l2 else None) or None
    if l2_rate is None:
        notes.append(
            "bandwidth of L2: not in the machine description, its limiter is left out; "
            "`kernelcast calibrate --only caches` measures it"
        )
    memory = machine.memory("global")
    latencies = {name: caches[name].latency_s if name in caches else None
                 for name in ("L1", "L2", "L3")}  # fmt: skip
    latencies["DRAM"] = memory.latency_s if memory and not constants.is_paper else None
    launches = (machine.costs.get(name) for name in ("launch_in_batch_s", "launch_s"))
    known = [one.value for one in launches if one is not None]
    if not known:
        notes.append(f"launch_s: not in the machine description, {_LAUNCH_S:g} s assumed")
    load = dram_rate or gpu.dram_load_bytes_per_s or gpu.dram_copy_bytes_per_s
    copy = dram_rate or gpu.dram_copy_bytes_per_s or load
    if not load or not copy:
        refuse_missing(machine.id, "the bandwidth of global memory", "bandwidth")

    def read_curve(name: str, peak: float) -> Curve:
        curve, enough = machine.curve(f"saturation/global/{name}"), _NO_ITEMS
        if dram_rate:
            pass
        elif curve is not None:
            return curve.x, curve.y
        elif memory is not None and memory.latency_s is not None:
            enough = peak * memory.latency_s.value / ELEMENT_BYTES / gpu.compute_units
            notes.append(f"saturation of {name}: not measured, from latency by Little's law")
        else:
            about = "not measured and no latency known, taken as saturated"
            notes.append(f"saturation of {name}: {about}")
        return (enough,), (peak,)

    dram_load, dram_copy = read_curve("load", load), read_curve("copy", copy)
    clock_hz = gpu.clock_hz
    if clock_hz is None:
        if gpu.l1_bytes_per_s is None:
            raise InputError(
                f"machine {machine.id}: neither clock_hz nor the bandwidth of L1 is known; "
                "`kernelcast calibrate --only clock` or `--only caches` measures it, or write it "
                "into the machine file"
            )
        notes.append(
            "clock: not in the machine description, taken from the bandwidth of L1 at "
            f"{_BYTES_PER_CYCLE} bytes a cycle"
        )
        clock_hz = gpu.l1_bytes_per_s / gpu.compute_units / _BYTES_PER_CYCLE
    pages, miss = (machine.costs.get(f"translation_{name}") for name in ("pages_count", "miss_s"))
    if pages is None or miss is None:
        notes.append("address translation: not known of this machine, left out")
    # The paper's constants stay the paper's.
    own = None if constants.is_paper else machine.costs.get("overlap_power")
    return GpuRates(
        machine=gpu,
        constants=constants,
        clock_hz=clock_hz,
        l2_bytes_per_s=l2_rate,
        dram_load=dram_load,
        dram_copy=dram_copy,
        l3_bytes_per_s=read_value(l3.load_bytes_per_s if l3 else None),
        latency_s={name: one.value if one else 0.0 for name, one in latencies.items()},
        instructions={one.name: one for one in machine.instructions},
        costs={name: one.value for name, one in machine.costs.items()},
        launch_s=min(known, default=_LAUNCH_S),
        translation=(pages.value, miss.value) if pages and miss else (math.inf, 0.0),
        overlap_power=constants.overlap_power if own is None else own.value,
        notes=tuple(notes),
    )
