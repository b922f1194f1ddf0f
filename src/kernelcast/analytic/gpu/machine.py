"""GPUs in the numbers that the model takes, and how many work-groups their units hold at once."""

from dataclasses import dataclass, replace
from typing import TypeVar

from kernelcast.expressions.accesses import ModelledLaunch
from kernelcast.records.device import Trait
from kernelcast.records.errors import DeviceLimitError, InputError
from kernelcast.records.machine import CacheFacts, MachineDescription, refuse_missing
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
    issues_all_in_turn: bool = False
    """Whether loads, addresses and branches take the slots of arithmetic."""
    spreads_loads: bool = False
    """Whether the loads of a work-item spread over its life, in the order of the program, even
    where registers hold all of them."""


# NVIDIA: occupancy calculator of the CUDA toolkit, compute capability 7.0 to 9.0; registers are
# allocated per warp in units of 256, thus 8 per work-item. Starts of work-groups follow from
# gpu-small-kernels with 32 and 64 work-items: A40 1.2, L40 1.3, H200 1.2 cycles.
NVIDIA = Architecture(
    name="nvidia", register_granularity=8, schedulers=4, max_registers=255,
    local_granularity_bytes=256, l1_banks_bytes=128, lanes_per_pass=32,
    issued_lanes=128, dispatch_cycles=1.2, issues_all_in_turn=True,
)  # fmt: skip
# AMD's ISA documents: CDNA has four SIMDs of 256 registers for each of 64 lanes (the 512 of CDNA 2
# and 3 are shared with the accumulation registers), allocated in units of 8. Starts as above, of
# the MI210.
CDNA = Architecture(
    name="cdna", register_granularity=8, schedulers=4, max_registers=256,
    local_granularity_bytes=512, l1_banks_bytes=64, lanes_per_pass=16,
    issued_lanes=64, dispatch_cycles=4.1, spreads_loads=True,
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
    id: str
    name: str
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
        id=description.id,
        name=description.name,
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
