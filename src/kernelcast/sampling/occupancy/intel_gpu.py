"""Intel GPUs: limits by architecture, and the rule of Intel's GPU Occupancy Calculator."""

import re
from dataclasses import dataclass, replace

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.occupancy.resources import (
    GroupCounts,
    KernelResources,
    Limiter,
    check_group,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntelLimits:
    """Limits of one Intel subslice, dual subslice or Xe-core."""

    name: str
    """Architecture, such as ``"Xe-HPG"``."""
    eus: int
    """Execution units (vector engines) of the unit."""
    threads_per_eu: int
    """Thread slots of each."""
    sub_group_sizes: tuple[int, ...]
    """Work-items per EU thread, the one assumed when unknown first."""
    register_file_bytes: int
    """Registers of one EU thread in the default mode, in bytes."""
    has_large_registers: bool
    """Whether a kernel can be built for twice the registers and half the threads."""
    barriers: int
    """Work-groups with barriers that can be active."""
    max_work_group_size: int
    """Work-items of the largest work-group."""
    local_memory_bytes: int
    """Shared local memory of the unit, in bytes."""
    local_memory_sizes_bytes: tuple[int, ...]
    """Amounts a work-group can get, in bytes, ascending."""
    source: str
    """Where the numbers are published."""

    @property
    def max_threads(self) -> int:
        """EU threads the unit can hold."""
        return self.eus * self.threads_per_eu

    @property
    def compute_units_sharing(self) -> int:
        """OpenCL compute units that share these limits: Intel's driver reports EUs."""
        return self.eus


# Numbers and rule: Intel GPU Occupancy Calculator (oneAPI-samples, Tools/GPU-Occupancy-Calculator,
# device_info). Register file: 128 registers of 32 bytes per thread, 64 bytes on Xe-HPC
# (oneAPI GPU Optimization Guide, "Small Register Mode vs. Large Register Mode").
_SOURCE = "Intel GPU Occupancy Calculator; oneAPI GPU Optimization Guide"
_KIB = 1024

_GEN9 = IntelLimits(
    name="Gen9", eus=8, threads_per_eu=7, sub_group_sizes=(16, 8, 32), register_file_bytes=4 * _KIB,
    has_large_registers=False, barriers=32, max_work_group_size=256, local_memory_bytes=64 * _KIB,
    local_memory_sizes_bytes=tuple(n * _KIB for n in (1, 2, 4, 8, 16, 32, 64)), source=_SOURCE,
)  # fmt: skip
_GEN11 = replace(_GEN9, name="Gen11")
_XE_LP = replace(_GEN9, name="Xe-LP", eus=16, max_work_group_size=512)
# The calculator offers large registers on Xe-HPC only; the compiler offers them on Xe-HPG too.
_XE_HPG = replace(
    _XE_LP, name="Xe-HPG", threads_per_eu=8, has_large_registers=True, max_work_group_size=1024,
    local_memory_bytes=128 * _KIB,
)  # fmt: skip
_XE_HPC = replace(
    _XE_HPG, name="Xe-HPC", eus=8, sub_group_sizes=(16, 32), register_file_bytes=8 * _KIB,
    local_memory_sizes_bytes=tuple(n * _KIB for n in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128)),
)  # fmt: skip
INTEL_LIMITS: dict[str, IntelLimits] = {
    limits.name: limits for limits in (_GEN9, _GEN11, _XE_LP, _XE_HPG, _XE_HPC)
}

# Product names as the driver reports them, trademarks removed. Left out on purpose: the Atom
# parts HD 500/505 and UHD 600/605 (six threads per EU) and names that fit two architectures.
_PRODUCTS: tuple[tuple[str, IntelLimits], ...] = (
    (r"data center gpu max", _XE_HPC),
    (r"data center gpu flex|\barc (pro )?a\d", _XE_HPG),
    (r"\biris xe|\buhd graphics 7\d\d\b", _XE_LP),
    (r"\biris (plus |pro )?graphics p?[56]\d\d\b", _GEN9),
    (r"\biris plus graphics\b", _GEN11),
    (r"\bu?hd graphics p?[56][1-9]\d\b", _GEN9),
)
# Newer drivers name a product they do not know by its PCI id: "Intel(R) Graphics [0x9a49]".
_PCI_PREFIXES = {
    "19": _GEN9, "59": _GEN9, "3e": _GEN9, "9b": _GEN9, "8a": _GEN11, "9a": _XE_LP, "4c": _XE_LP,
    "46": _XE_LP, "49": _XE_LP, "a7": _XE_LP, "56": _XE_HPG, "0b": _XE_HPC,
}  # fmt: skip


def find_intel_limits(device_name: str) -> IntelLimits | None:
    """Find the limits of a GPU by the name its driver reports.

    Examples
    --------
    >>> find_intel_limits("Intel(R) Arc(TM) A770 Graphics").name
    'Xe-HPG'
    """
    name = re.sub(r"\((r|tm)\)|[®™]", "", device_name.lower())
    by_id = re.search(r"graphics \[0x([0-9a-f]{2})[0-9a-f]{2}\]", name)
    if by_id:
        return _PCI_PREFIXES.get(by_id.group(1))
    return next((limits for pattern, limits in _PRODUCTS if re.search(pattern, name)), None)


def count_intel_groups(limits: IntelLimits, resources: KernelResources) -> GroupCounts:
    """Count the work-groups that fit into one subslice or Xe-core, by limiter.

    Registers limit in one way only: a kernel that needs more than an EU thread has by default is
    taken to be built for large registers where the architecture has them, which halves the
    threads; elsewhere it spills.
    """
    size = resources.sub_group_size or limits.sub_group_sizes[0]
    _check_intel(limits, resources, size)
    threads = -(-resources.work_group_size // size)
    by_threads = limits.max_threads // threads
    slots = limits.barriers if resources.uses_barriers else limits.max_threads
    counts = [(Limiter.WORK_GROUPS, slots), (Limiter.WARPS, by_threads)]
    if resources.registers_per_work_item is not None:
        needed_bytes = resources.registers_per_work_item * size * 4
        is_large = limits.has_large_registers and needed_bytes > limits.register_file_bytes
        usable = limits.max_threads // 2 if is_large else limits.max_threads
        counts.append((Limiter.REGISTERS, usable // threads))
    if resources.local_memory_bytes:
        taken_bytes = next(
            n for n in limits.local_memory_sizes_bytes if n >= resources.local_memory_bytes
        )
        counts.append((Limiter.LOCAL_MEMORY, limits.local_memory_bytes // taken_bytes))
    fitting = min(count for _, count in counts)
    return GroupCounts(
        by_limiter=tuple(counts),
        warps_per_group=threads,
        max_warps=limits.max_threads,
        assumed=_name_unknowns(resources, could_meet_barriers=fitting > limits.barriers),
    )


def _name_unknowns(resources: KernelResources, *, could_meet_barriers: bool) -> tuple[str, ...]:
    unknown = []
    if resources.registers_per_work_item is None:
        unknown.append("registers_per_work_item")
    if resources.sub_group_size is None:
        unknown.append("sub_group_size")
    if resources.uses_barriers is None and could_meet_barriers:
        unknown.append("uses_barriers")
    return tuple(unknown)


def _check_intel(limits: IntelLimits, resources: KernelResources, size: int) -> None:
    if size not in limits.sub_group_sizes:
        msg = (
            f"{limits.name}: sub-group size {size} given, the compiler makes "
            f"{', '.join(map(str, sorted(limits.sub_group_sizes)))}; give one of these or None"
        )
        raise DeviceLimitError(msg)
    check_group(
        limits.name,
        resources,
        most_work_items=limits.max_work_group_size,
        most_local_bytes=limits.local_memory_sizes_bytes[-1],
    )
