"""What one compute unit can hold, by vendor: plain numbers, each with its public source."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeUnitLimits:
    """Limits of one NVIDIA streaming multiprocessor.

    Parameters
    ----------
    name : str
        Compute capability, such as ``"cc 8.0"``.
    warp_size : int
        Work-items per warp.
    max_work_group_size : int
        Work-items of the largest work-group.
    max_work_groups, max_warps : int
        Slots of the SM.
    registers, registers_per_work_group : int
        32-bit registers of the SM, and the most that one work-group may take.
    registers_per_work_item_max : int
        32-bit registers the instruction set can address.
    register_allocation_unit : int
        Registers are handed out in multiples of this, to a warp (cc 2.0 and later) or to a
        work-group (cc 1.x).
    register_partitions : int
        Equal parts of the register file; a warp takes its registers from one of them.
    register_check_granularity : int
        Warps a work-group is rounded up to when its launch is checked against
        `registers_per_work_group`.
    warp_allocation_granularity : int
        Warps a work-group is rounded up to when it takes its slots.
    local_memory_bytes, local_memory_per_work_group_bytes : int
        Local memory of the SM, in bytes, and the most that one work-group may take of it.
    local_memory_allocation_bytes : int
        Local memory is handed out in multiples of this, in bytes.
    reserved_local_memory_bytes : int
        What the driver adds to every work-group, in bytes.
    source : str
        Where the numbers are published.
    allocates_registers_by_work_group : bool
        Whether registers go to whole work-groups (cc 1.x).
    coarse_register_counts : tuple of int
        Registers per work-item that take twice the allocation unit (Fermi's irregularity).
    compute_units_sharing : int
        OpenCL compute units that share these limits.
    """

    name: str
    warp_size: int
    max_work_group_size: int
    max_work_groups: int
    max_warps: int
    registers: int
    registers_per_work_group: int
    registers_per_work_item_max: int
    register_allocation_unit: int
    register_partitions: int
    register_check_granularity: int
    warp_allocation_granularity: int
    local_memory_bytes: int
    local_memory_per_work_group_bytes: int
    local_memory_allocation_bytes: int
    reserved_local_memory_bytes: int
    source: str
    allocates_registers_by_work_group: bool = False
    coarse_register_counts: tuple[int, ...] = ()
    compute_units_sharing: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AmdLimits:
    """Limits of one AMD compute unit (GCN, CDNA) or work-group processor (RDNA).

    Parameters
    ----------
    name : str
        Processor, such as ``"gfx90a"``.
    wavefront_sizes : tuple of int
        Work-items per wavefront, the compiler's default first.
    simds, max_waves_per_simd : int
        SIMDs that one work-group is spread over, and wavefront slots of each.
    vector_registers, vector_register_granule : int
        VGPRs of a SIMD lane and the multiple they are handed out in, for a wavefront of the
        smallest size; both halve for one of twice that size.
    vector_registers_max : int
        VGPRs a work-item can address.
    scalar_registers, scalar_register_granule, scalar_registers_max : int
        SGPRs of a SIMD, the multiple they are handed out in, the most a wavefront can take;
        all 0 where SGPRs do not limit (RDNA).
    max_work_groups : int
        Barriers of the unit: the most work-groups of more than one wavefront.
    max_work_group_size : int
        Work-items of the largest work-group.
    local_memory_bytes, local_memory_per_work_group_bytes : int
        LDS of the unit, in bytes, and the most that one work-group may take of it.
    local_memory_allocation_bytes : int
        LDS is handed out in multiples of this, in bytes.
    source : str
        Where the numbers are published.
    compute_units_sharing : int
        OpenCL compute units that share these limits.
    """

    name: str
    wavefront_sizes: tuple[int, ...]
    simds: int
    max_waves_per_simd: int
    vector_registers: int
    vector_register_granule: int
    vector_registers_max: int
    scalar_registers: int
    scalar_register_granule: int
    scalar_registers_max: int
    max_work_groups: int
    max_work_group_size: int
    local_memory_bytes: int
    local_memory_per_work_group_bytes: int
    local_memory_allocation_bytes: int
    source: str
    compute_units_sharing: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IntelLimits:
    """Limits of one Intel subslice, dual subslice or Xe-core.

    Parameters
    ----------
    name : str
        Architecture, such as ``"Xe-HPG"``.
    eus, threads_per_eu : int
        Execution units (vector engines) of the unit, and thread slots of each.
    sub_group_sizes : tuple of int
        Work-items per EU thread, the one assumed when unknown first.
    register_file_bytes : int
        Registers of one EU thread in the default mode, in bytes.
    has_large_registers : bool
        Whether a kernel can be built for twice the registers and half the threads.
    barriers : int
        Work-groups with barriers that can be active.
    max_work_group_size : int
        Work-items of the largest work-group.
    local_memory_bytes : int
        Shared local memory of the unit, in bytes.
    local_memory_sizes_bytes : tuple of int
        Amounts a work-group can get, in bytes, ascending.
    source : str
        Where the numbers are published.
    """

    name: str
    eus: int
    threads_per_eu: int
    sub_group_sizes: tuple[int, ...]
    register_file_bytes: int
    has_large_registers: bool
    barriers: int
    max_work_group_size: int
    local_memory_bytes: int
    local_memory_sizes_bytes: tuple[int, ...]
    source: str

    @property
    def max_threads(self) -> int:
        """EU threads the unit can hold."""
        return self.eus * self.threads_per_eu

    @property
    def compute_units_sharing(self) -> int:
        """OpenCL compute units that share these limits: Intel's driver reports EUs."""
        return self.eus


DeviceLimits: TypeAlias = ComputeUnitLimits | AmdLimits | IntelLimits
