"""AMD: limits by gfx name, and the rule of the compiler's own occupancy estimate."""

import re
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
class AmdLimits:
    """Limits of one AMD compute unit (GCN, CDNA) or work-group processor (RDNA)."""

    name: str
    """Processor, such as ``"gfx90a"``."""
    wavefront_sizes: tuple[int, ...]
    """Work-items per wavefront, the compiler's default first."""
    simds: int
    """SIMDs that one work-group is spread over."""
    max_waves_per_simd: int
    """Wavefront slots of each."""
    vector_registers: int
    """VGPRs of a SIMD lane, for a wavefront of the smallest size; half for one of twice that
    size."""
    vector_register_granule: int
    """They are handed out in multiples of this; half as well."""
    vector_registers_max: int
    """VGPRs a work-item can address."""
    scalar_registers: int
    """SGPRs of a SIMD; this and the next two are 0 where SGPRs do not limit (RDNA)."""
    scalar_register_granule: int
    """They are handed out in multiples of this."""
    scalar_registers_max: int
    """The most a wavefront can take."""
    max_work_groups: int
    """Barriers of the unit: the most work-groups of more than one wavefront."""
    max_work_group_size: int
    """Work-items of the largest work-group."""
    local_memory_bytes: int
    """LDS of the unit."""
    local_memory_per_work_group_bytes: int
    """The most that one work-group may take of it."""
    local_memory_allocation_bytes: int
    """LDS is handed out in multiples of this, in bytes."""
    source: str
    """Where the numbers are published."""
    compute_units_sharing: int = 1
    """OpenCL compute units that share these limits."""


# Registers, waves, barriers, SIMDs: LLVM, llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp
# (namespace IsaInfo). LDS of GCN 1 (64 KiB per unit, 32 KiB per work-group) and the LDS multiple
# that the hardware keeps to: Mesa, src/amd/common/ac_gpu_info.c.
_SOURCE = "LLVM AMDGPUBaseInfo.cpp (IsaInfo); Mesa ac_gpu_info.c"
_KIB = 1024

_GFX6 = AmdLimits(
    name="gfx6", wavefront_sizes=(64,), simds=4, max_waves_per_simd=10, vector_registers=256,
    vector_register_granule=4, vector_registers_max=256, scalar_registers=512,
    scalar_register_granule=8, scalar_registers_max=104, max_work_groups=16,
    max_work_group_size=1024, local_memory_bytes=64 * _KIB,
    local_memory_per_work_group_bytes=32 * _KIB, local_memory_allocation_bytes=256, source=_SOURCE,
)  # fmt: skip
_GFX7 = replace(
    _GFX6, local_memory_per_work_group_bytes=64 * _KIB, local_memory_allocation_bytes=512
)  # fmt: skip
# 112 with VCC, flat scratch and the XNACK mask, which take SGPRs too.
_GFX8 = replace(_GFX7, scalar_registers=800, scalar_register_granule=16, scalar_registers_max=112)
# One file of 512 for VGPRs and accumulation VGPRs together.
_CDNA2 = replace(
    _GFX8, max_waves_per_simd=8, vector_registers=512, vector_register_granule=8,
    vector_registers_max=512,
)  # fmt: skip
_CDNA4 = replace(
    _CDNA2, local_memory_bytes=160 * _KIB, local_memory_per_work_group_bytes=160 * _KIB,
    local_memory_allocation_bytes=1280,
)  # fmt: skip
# RDNA runs a work-group on a WGP: two compute units with two SIMDs each, and one LDS of 128 KiB.
# AMD's OpenCL runtime reports WGPs as compute units (ROCclr: maxComputeUnits_ / 2 when
# enableWgpMode_).
_RDNA1 = replace(
    _GFX7, wavefront_sizes=(32, 64), max_waves_per_simd=20, vector_registers=1024,
    vector_register_granule=8, scalar_registers=0, scalar_register_granule=0,
    scalar_registers_max=0, max_work_groups=32, local_memory_bytes=128 * _KIB,
)  # fmt: skip
_RDNA2 = replace(
    _RDNA1, max_waves_per_simd=16, vector_register_granule=16, local_memory_allocation_bytes=1024,
)  # fmt: skip
# "1.5xVGPRs" in LLVM: the larger RDNA 3 chips and RDNA 4.
_RDNA3_LARGE = replace(_RDNA2, vector_registers=1536, vector_register_granule=24)

_FAMILIES: tuple[tuple[AmdLimits, tuple[str, ...]], ...] = (
    (_GFX6, ("600", "601", "602")),
    (_GFX7, ("700", "701", "702", "703", "704", "705")),
    (_GFX8, ("801", "802", "803", "805", "810")),
    (_GFX8, ("900", "902", "904", "906", "908", "909", "90c")),
    (_CDNA2, ("90a", "940", "941", "942")),
    (_CDNA4, ("950",)),
    (_RDNA1, ("1010", "1011", "1012", "1013")),
    (_RDNA2, ("1030", "1031", "1032", "1033", "1034", "1035", "1036")),
    (_RDNA2, ("1102", "1103", "1150", "1152", "1153")),
    (_RDNA3_LARGE, ("1100", "1101", "1151", "1200", "1201")),
)
AMD_LIMITS: dict[str, AmdLimits] = {
    f"gfx{number}": replace(family, name=f"gfx{number}")
    for family, numbers in _FAMILIES
    for number in numbers
}

# What drivers called a chip before they reported gfx names (LLVM, AMDGPUUsage, processors).
_CODE_NAMES = {
    "tahiti": "gfx600", "pitcairn": "gfx601", "capeverde": "gfx601", "hainan": "gfx602",
    "oland": "gfx602", "spectre": "gfx700", "hawaii": "gfx701", "bonaire": "gfx704",
    "carrizo": "gfx801", "tonga": "gfx802", "fiji": "gfx803", "ellesmere": "gfx803",
    "baffin": "gfx803",
}  # fmt: skip


def find_amd_limits(device_name: str) -> AmdLimits | None:
    """Find the limits of a device by the name its driver reports.

    Examples
    --------
    >>> find_amd_limits("gfx90a:sramecc+:xnack-").name
    'gfx90a'
    """
    name = device_name.strip().lower()
    found = re.search(r"\bgfx[0-9a-f]+", name)
    return AMD_LIMITS.get(found.group() if found else _CODE_NAMES.get(name, ""))


def count_amd_groups(limits: AmdLimits, resources: KernelResources) -> GroupCounts:
    """Count the work-groups that fit into one compute unit or WGP, by limiter."""
    size = resources.sub_group_size or limits.wavefront_sizes[0]
    _check_amd(limits, resources, size)
    waves = -(-resources.work_group_size // size)
    max_waves = limits.simds * limits.max_waves_per_simd
    counts = [
        # A work-group of one wavefront needs no barrier.
        (Limiter.WORK_GROUPS, limits.max_work_groups if waves > 1 else max_waves),
        (Limiter.WARPS, max_waves // waves),
    ]
    by_registers = _count_waves_by_registers(limits, resources, size)
    if by_registers:
        counts.append((Limiter.REGISTERS, limits.simds * min(by_registers) // waves))
    if resources.local_memory_bytes:
        taken_bytes = round_up(resources.local_memory_bytes, limits.local_memory_allocation_bytes)
        counts.append((Limiter.LOCAL_MEMORY, limits.local_memory_bytes // taken_bytes))
    return GroupCounts(
        by_limiter=tuple(counts),
        warps_per_group=waves,
        max_warps=max_waves,
        assumed=_name_unknowns(limits, resources),
    )


def _count_waves_by_registers(
    limits: AmdLimits, resources: KernelResources, size: int
) -> list[int]:
    """Wavefronts per SIMD that the known kinds of registers allow."""
    waves = []
    if resources.registers_per_work_item:
        wider = size // min(limits.wavefront_sizes)
        granule = limits.vector_register_granule // wider
        taken = round_up(resources.registers_per_work_item, granule)
        waves.append(limits.vector_registers // wider // taken)
    if limits.scalar_registers and resources.scalar_registers_per_sub_group:
        taken = round_up(resources.scalar_registers_per_sub_group, limits.scalar_register_granule)
        waves.append(limits.scalar_registers // taken)
    return waves


def _name_unknowns(limits: AmdLimits, resources: KernelResources) -> tuple[str, ...]:
    unknown = []
    if resources.registers_per_work_item is None:
        unknown.append("registers_per_work_item")
    if limits.scalar_registers and resources.scalar_registers_per_sub_group is None:
        unknown.append("scalar_registers_per_sub_group")
    if len(limits.wavefront_sizes) > 1 and resources.sub_group_size is None:
        unknown.append("sub_group_size")
    return tuple(unknown)


def _check_amd(limits: AmdLimits, resources: KernelResources, size: int) -> None:
    if size not in limits.wavefront_sizes:
        msg = (
            f"{limits.name}: sub-group size {size} given, a wavefront has "
            f"{' or '.join(map(str, limits.wavefront_sizes))} work-items; give one of these or None"
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
        "the number of VGPRs per work-item",
        resources.registers_per_work_item or 0,
        limits.vector_registers_max,
        "give the number the compiler reports",
    )
    if limits.scalar_registers:
        check_fits(
            limits.name,
            "the number of SGPRs per wavefront",
            resources.scalar_registers_per_sub_group or 0,
            limits.scalar_registers_max,
            "give the number the compiler reports",
        )
