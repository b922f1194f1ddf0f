"""NVIDIA: limits by compute capability, and the rule of the occupancy calculator."""

from dataclasses import dataclass, replace

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.occupancy.resources import (
    GroupCounts,
    KernelResources,
    Limiter,
    check_fits,
    check_group,
    round_up,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NvidiaLimits:
    """Limits of one NVIDIA streaming multiprocessor."""

    name: str
    """Compute capability, such as ``"cc 8.0"``."""
    warp_size: int
    """Work-items per warp."""
    max_work_group_size: int
    """Work-items of the largest work-group."""
    max_work_groups: int
    """Slots of the SM."""
    max_warps: int
    """Slots of the SM."""
    registers: int
    """32-bit registers of the SM."""
    registers_per_work_group: int
    """The most that one work-group may take."""
    registers_per_work_item_max: int
    """32-bit registers the instruction set can address."""
    register_allocation_unit: int
    """Registers are handed out in multiples of this, to a warp (cc 2.0 and later) or to a
    work-group (cc 1.x)."""
    register_partitions: int
    """Equal parts of the register file; a warp takes its registers from one of them."""
    register_check_granularity: int
    """Warps a work-group is rounded up to when its launch is checked against
    `registers_per_work_group`."""
    warp_allocation_granularity: int
    """Warps a work-group is rounded up to when it takes its slots."""
    local_memory_bytes: int
    """Local memory of the SM."""
    local_memory_per_work_group_bytes: int
    """The most that one work-group may take of it."""
    local_memory_allocation_bytes: int
    """Local memory is handed out in multiples of this, in bytes."""
    reserved_local_memory_bytes: int
    """What the driver adds to every work-group, in bytes."""
    source: str
    """Where the numbers are published."""
    allocates_registers_by_work_group: bool = False
    """Whether registers go to whole work-groups (cc 1.x)."""
    coarse_register_counts: tuple[int, ...] = ()
    """Registers per work-item that take twice the allocation unit (Fermi's irregularity)."""
    compute_units_sharing: int = 1
    """OpenCL compute units that share these limits."""


# Slots, registers and memory: "Technical Specifications per Compute Capability" in the CUDA C++
# Programming Guide of the release that last had the architecture (1.x: 6.5; 2.x: 8.0;
# 3.x: 11.8; 5.x-7.2: 12.8; the rest: 13.0). Granularities: CUDA_Occupancy_calculator.xls and
# cuda_occupancy.h, which ships with the toolkit (7.0 for 1.x and 2.x, 13.0 for the rest).
_SOURCE = "CUDA C++ Programming Guide {}, technical specifications; cuda_occupancy.h of CUDA {}"
_KIB = 1024

_CC_1_3 = NvidiaLimits(
    name="cc 1.3", warp_size=32, max_work_group_size=512, max_work_groups=8, max_warps=32,
    registers=16 * _KIB, registers_per_work_group=16 * _KIB, registers_per_work_item_max=124,
    register_allocation_unit=512, register_partitions=1, register_check_granularity=1,
    warp_allocation_granularity=2, local_memory_bytes=16 * _KIB,
    local_memory_per_work_group_bytes=16 * _KIB, local_memory_allocation_bytes=512,
    reserved_local_memory_bytes=0, source=_SOURCE.format("6.5", "7.0"),
    allocates_registers_by_work_group=True,
)  # fmt: skip
_CC_2_0 = replace(
    _CC_1_3, name="cc 2.0", max_work_group_size=1024, max_warps=48, registers=32 * _KIB,
    registers_per_work_group=32 * _KIB, registers_per_work_item_max=63, register_allocation_unit=64,
    register_partitions=2, register_check_granularity=2, warp_allocation_granularity=1,
    local_memory_bytes=48 * _KIB, local_memory_per_work_group_bytes=48 * _KIB,
    local_memory_allocation_bytes=128, source=_SOURCE.format("8.0", "7.0"),
    allocates_registers_by_work_group=False,
    coarse_register_counts=(21, 22, 29, 30, 37, 38, 45, 46),
)  # fmt: skip
_CC_3_0 = replace(
    _CC_2_0, name="cc 3.0", max_work_groups=16, max_warps=64, registers=64 * _KIB,
    registers_per_work_group=64 * _KIB, register_allocation_unit=256, register_partitions=4,
    register_check_granularity=4, local_memory_allocation_bytes=256,
    source=_SOURCE.format("11.8", "13.0"), coarse_register_counts=(),
)  # fmt: skip
_CC_3_5 = replace(_CC_3_0, name="cc 3.5", registers_per_work_item_max=255)
_CC_5_0 = replace(
    _CC_3_5, name="cc 5.0", max_work_groups=32, local_memory_bytes=64 * _KIB,
    source=_SOURCE.format("12.8", "13.0"),
)  # fmt: skip
_CC_5_2 = replace(_CC_5_0, name="cc 5.2", local_memory_bytes=96 * _KIB)
_CC_7_0 = replace(_CC_5_2, name="cc 7.0", local_memory_per_work_group_bytes=96 * _KIB)
# From 8.0 on the driver keeps 1 KiB of every work-group's local memory for itself.
_CC_8_0 = replace(
    _CC_7_0, name="cc 8.0", local_memory_bytes=164 * _KIB,
    local_memory_per_work_group_bytes=163 * _KIB, local_memory_allocation_bytes=128,
    reserved_local_memory_bytes=_KIB, source=_SOURCE.format("13.0", "13.0"),
)  # fmt: skip
_CC_8_6 = replace(
    _CC_8_0, name="cc 8.6", max_work_groups=16, max_warps=48, local_memory_bytes=100 * _KIB,
    local_memory_per_work_group_bytes=99 * _KIB,
)  # fmt: skip
_CC_9_0 = replace(
    _CC_8_0, name="cc 9.0", local_memory_bytes=228 * _KIB,
    local_memory_per_work_group_bytes=227 * _KIB,
)  # fmt: skip

NVIDIA_LIMITS: dict[tuple[int, int], NvidiaLimits] = {
    (1, 3): _CC_1_3,
    (2, 0): _CC_2_0,
    (2, 1): replace(_CC_2_0, name="cc 2.1"),
    (3, 0): _CC_3_0,
    (3, 5): _CC_3_5,
    (3, 7): replace(_CC_3_5, name="cc 3.7", registers=128 * _KIB, local_memory_bytes=112 * _KIB),
    (5, 0): _CC_5_0,
    (5, 2): _CC_5_2,
    (5, 3): replace(_CC_5_0, name="cc 5.3", registers_per_work_group=32 * _KIB),
    # 6.0 has two partitions, yet its launch check rounds to four like 6.1 (cuda_occupancy.h).
    (6, 0): replace(_CC_5_0, name="cc 6.0", register_partitions=2),
    (6, 1): replace(_CC_5_2, name="cc 6.1"),
    (6, 2): replace(_CC_5_0, name="cc 6.2", registers_per_work_group=32 * _KIB),
    (7, 0): _CC_7_0,
    (7, 2): replace(_CC_7_0, name="cc 7.2", local_memory_per_work_group_bytes=48 * _KIB),
    (7, 5): replace(
        _CC_7_0,
        name="cc 7.5",
        max_work_groups=16,
        max_warps=32,
        local_memory_bytes=64 * _KIB,
        local_memory_per_work_group_bytes=64 * _KIB,
    ),
    (8, 0): _CC_8_0,
    (8, 6): _CC_8_6,
    (8, 7): replace(_CC_8_0, name="cc 8.7", max_work_groups=16, max_warps=48),
    (8, 9): replace(_CC_8_6, name="cc 8.9", max_work_groups=24),
    (9, 0): _CC_9_0,
    (10, 0): replace(_CC_9_0, name="cc 10.0"),
    (10, 3): replace(_CC_9_0, name="cc 10.3"),
    (11, 0): replace(_CC_9_0, name="cc 11.0", max_work_groups=24, max_warps=48),
    (12, 0): replace(_CC_8_6, name="cc 12.0", max_work_groups=24),
    (12, 1): replace(_CC_8_6, name="cc 12.1", max_work_groups=24),
}


def count_nvidia_groups(limits: NvidiaLimits, resources: KernelResources) -> GroupCounts:
    """Count the work-groups that fit into one SM, by limiter.

    Local memory is counted against the SM's largest partition: drivers give a kernel that much
    when it is what limits.
    """
    _check_nvidia(limits, resources)
    warps = -(-resources.work_group_size // limits.warp_size)
    slots = round_up(warps, limits.warp_allocation_granularity)
    counts = [
        (Limiter.WORK_GROUPS, limits.max_work_groups),
        (Limiter.WARPS, limits.max_warps // slots),
    ]
    registers = resources.registers_per_work_item
    if registers:
        counts.append((Limiter.REGISTERS, _count_by_registers(limits, registers, slots)))
    used_bytes = resources.local_memory_bytes + limits.reserved_local_memory_bytes
    if used_bytes:
        taken_bytes = round_up(used_bytes, limits.local_memory_allocation_bytes)
        counts.append((Limiter.LOCAL_MEMORY, limits.local_memory_bytes // taken_bytes))
    return GroupCounts(
        by_limiter=tuple(counts),
        warps_per_group=warps,
        max_warps=limits.max_warps,
        assumed=("registers_per_work_item",) if registers is None else (),
    )


def _count_by_registers(limits: NvidiaLimits, registers: int, warps: int) -> int:
    unit = limits.register_allocation_unit
    if limits.allocates_registers_by_work_group:
        taken = round_up(registers * limits.warp_size * warps, unit)
        return limits.registers // taken
    if registers in limits.coarse_register_counts:
        unit *= 2
    per_warp = round_up(registers * limits.warp_size, unit)
    checked = per_warp * round_up(warps, limits.register_check_granularity)
    if checked > limits.registers_per_work_group:
        return 0
    warps_per_partition = limits.registers // limits.register_partitions // per_warp
    return warps_per_partition * limits.register_partitions // warps


def _check_nvidia(limits: NvidiaLimits, resources: KernelResources) -> None:
    if resources.sub_group_size not in {None, limits.warp_size}:
        msg = (
            f"{limits.name}: sub-group size {resources.sub_group_size} given, a warp has "
            f"{limits.warp_size} work-items; give {limits.warp_size} or None"
        )
        raise DeviceLimitError(msg)
    check_group(
        limits.name,
        resources,
        most_work_items=limits.max_work_group_size,
        most_local_bytes=limits.local_memory_per_work_group_bytes,
    )
    check_fits(
        limits.name,
        "the number of registers per work-item",
        resources.registers_per_work_item or 0,
        limits.registers_per_work_item_max,
        "give the number the compiler reports",
    )
