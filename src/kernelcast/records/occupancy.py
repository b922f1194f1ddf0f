"""How many work-groups are active at once per compute unit (P_sat), from public limits.

The limits of known devices, with their sources, are in `kernelcast/data/occupancy.yaml`; P_sat of a
device that has none there has to be measured, or follows from its machine description.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from kernelcast.records.errors import DeviceLimitError


class Limiter(StrEnum):
    """What keeps one more work-group from becoming active; ties go to the first in this order."""

    WORK_GROUPS = "work_groups"
    WARPS = "warps"
    REGISTERS = "registers"
    LOCAL_MEMORY = "local_memory"


_ADVICE = {
    Limiter.WORK_GROUPS: "give a smaller local size",
    Limiter.WARPS: "give a smaller local size",
    Limiter.REGISTERS: "give a smaller local size or build the kernel with fewer registers",
    Limiter.LOCAL_MEMORY: "use less local memory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLimits:
    """Limits of one hardware unit, 0 where none is known; `data/occupancy.yaml` tells each."""

    vendor: str
    name: str
    devices: str = ""
    warp_sizes: tuple[int, ...]
    max_work_group_size: int
    max_work_groups: int = 0
    max_warps: int
    warp_granule: int = 1
    barriers: int = 0
    takes_barriers_if_used: bool = False
    registers: int = 0
    work_group_registers: int = 0
    max_registers: int = 0
    register_granule: int = 1
    register_partitions: int = 1
    register_check_warps: int = 1
    allocates_registers_by_work_group: bool = False
    coarse_registers: tuple[int, ...] = ()
    warp_registers: int = 0
    has_large_registers: bool = False
    scalar_registers: int = 0
    max_scalar_registers: int = 0
    scalar_register_granule: int = 1
    local_bytes: int
    work_group_local_bytes: int
    local_granule_bytes: int = 1
    local_sizes_bytes: tuple[int, ...] = ()
    reserved_local_bytes: int = 0
    compute_units_sharing: int = 1


@cache
def load_limits() -> dict[str, UnitLimits]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (files("kernelcast") / "data" / "occupancy.yaml").read_text(encoding="utf-8")
    vendors = yaml.load(text, loader)
    found = {}
    for vendor, rows in vendors.items():
        for names, row in rows.items():
            given: dict[str, Any] = {
                key: tuple(v) if isinstance(v, list) else v for key, v in row.items()
            }
            # A row of AMD's is of several gfx numbers.
            for name in names.split() if vendor == "amd" else [names]:
                found[name] = UnitLimits(vendor=vendor, name=name, **given)
    return found


def find_limits(
    platform_vendor: str, device_name: str, compute_capability: tuple[int, int] | None = None
) -> UnitLimits | None:
    """Find what a compute unit holds, by capability on any platform or else by name; None for
    processors, unknown devices and Mesa's, which counts units in its own way."""
    if compute_capability is not None:
        return load_limits().get("cc {}.{}".format(*compute_capability))
    given = platform_vendor.strip().lower()
    is_amd = given.startswith(("advanced micro devices", "amd"))
    vendor = "amd" if is_amd else "intel" if given.startswith("intel") else ""
    name = re.sub(r"\((r|tm)\)|[®™]", "", device_name.strip().lower())
    number = re.search(r"\bgfx[0-9a-f]+", name)
    if is_amd and number:
        return load_limits().get(number.group())
    known = (one for one in load_limits().values() if one.vendor == vendor and one.devices)
    return next((one for one in known if re.search(one.devices, name)), None)


def compute_p_sat(
    limits: UnitLimits,
    *,
    work_group_size: int,
    registers_per_work_item: int | None = None,
    local_memory_bytes: int = 0,
    sub_group_size: int | None = None,
    scalar_registers_per_sub_group: int | None = None,
    uses_barriers: bool | None = None,
) -> tuple[int, Limiter]:
    """Compute how many work-groups fit by slots, warps, registers and local memory, where known.

    Registers are 32 bits wide, AMD's with the accumulation VGPRs; local memory: static and passed.
    """
    size = sub_group_size or limits.warp_sizes[0]
    if size not in limits.warp_sizes:
        raise DeviceLimitError(
            f"{limits.name}: sub-group size {size} given, the device has "
            f"{' or '.join(map(str, limits.warp_sizes))}; give one of these or None"
        )
    registers, scalars = registers_per_work_item, scalar_registers_per_sub_group
    for what, given, largest, advice in (
        ("the work-group size", work_group_size, limits.max_work_group_size,
         "give a smaller local size"),
        ("local memory per work-group, in bytes,", local_memory_bytes,
         limits.work_group_local_bytes, "use less local memory"),
        ("the number of registers per work-item", registers,
         limits.max_registers, "give the number the compiler reports"),
        ("the number of scalar registers per sub-group", scalars if limits.scalar_registers else 0,
         limits.max_scalar_registers, "give the number the compiler reports"),
    ):  # fmt: skip
        if largest and given and given > largest:
            raise DeviceLimitError(
                f"{limits.name}: {what} is {given}, the device allows {largest}; {advice}"
            )
    warps = -(-work_group_size // size)
    slots = _round_up(warps, limits.warp_granule)
    counts: dict[Limiter, int] = {}
    by_slots = limits.max_work_groups or limits.max_warps
    if limits.barriers and (uses_barriers if limits.takes_barriers_if_used else warps > 1):
        by_slots = min(by_slots, limits.barriers)
    if by_slots:
        counts[Limiter.WORK_GROUPS] = by_slots
    if limits.max_warps:
        counts[Limiter.WARPS] = limits.max_warps // slots
    by_registers = _count_by_registers(limits, registers, scalars, size, slots)
    if by_registers:
        counts[Limiter.REGISTERS] = min(by_registers)
    used_bytes = local_memory_bytes + limits.reserved_local_bytes
    if used_bytes and limits.local_bytes:
        sizes = limits.local_sizes_bytes or (_round_up(used_bytes, limits.local_granule_bytes),)
        taken_bytes = next(one for one in sizes if one >= used_bytes)
        counts[Limiter.LOCAL_MEMORY] = limits.local_bytes // taken_bytes
    limiter = min(counts, key=counts.__getitem__)
    if counts[limiter] == 0:
        raise DeviceLimitError(
            f"{limits.name}: a work-group of {work_group_size} work-items with "
            f"{'unknown' if registers is None else registers} registers each and "
            f"{local_memory_bytes} bytes of local memory does not fit into an empty "
            f"compute unit, limited by {limiter.value}; {_ADVICE[limiter]}"
        )
    return counts[limiter], limiter


def _count_by_registers(
    limits: UnitLimits, registers: int | None, scalars: int | None, size: int, warps: int
) -> list[int]:
    """Count the work-groups that each kind of registers allows, of those that are known."""
    counts = []
    granule, partitions = limits.register_granule, limits.register_partitions
    if registers is not None and limits.warp_registers:
        # A kernel that needs more is taken to be built for large registers where the architecture
        # has them; elsewhere it spills.
        is_large = limits.has_large_registers and registers * size > limits.warp_registers
        counts.append(limits.max_warps // (2 if is_large else 1) // warps)
    elif registers and limits.allocates_registers_by_work_group:
        counts.append(limits.registers // _round_up(registers * size * warps, granule))
    elif registers:
        granule *= 2 if registers in limits.coarse_registers else 1
        taken = _round_up(registers * size, granule)
        checked = taken * _round_up(warps, limits.register_check_warps)
        is_refused = 0 < limits.work_group_registers < checked
        fitting = limits.registers // partitions // taken * partitions
        counts.append(0 if is_refused else fitting // warps)
    if scalars and limits.scalar_registers:
        taken = _round_up(scalars, limits.scalar_register_granule)
        counts.append(limits.scalar_registers // taken * partitions // warps)
    return counts


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
