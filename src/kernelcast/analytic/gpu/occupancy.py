"""How many work-groups a compute unit holds at once, by every limit."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import InputError

# OpenCL compilers give a kernel at least this many; the occupancy of smaller ones is no larger.
_LEAST_REGISTERS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Work-groups that a compute unit holds at once."""

    work_groups: int
    limiter: str
    limits: Mapping[str, int]
    warps_per_work_group: int
    notes: tuple[str, ...] = ()


def compute_occupancy(launch: ModelledLaunch, machine: GpuMachine) -> Occupancy:
    """Count the work-groups that fit into a compute unit at once."""
    size = launch.ndrange.work_group_size
    if machine.max_work_group_size and size > machine.max_work_group_size:
        msg = (
            f"local size {launch.ndrange.known_local_size}: {size} work-items, {machine.name} "
            f"takes at most {machine.max_work_group_size}; give a smaller local size"
        )
        raise InputError(msg)
    warps = -(-size // machine.warp_width)
    notes: list[str] = []
    limits: dict[str, int] = {}
    if machine.max_work_items_per_unit:
        limits["work-items"] = machine.max_work_items_per_unit // (warps * machine.warp_width)
    if machine.max_work_groups_per_unit:
        limits["work-groups"] = machine.max_work_groups_per_unit
    if launch.registers is None:
        notes.append("registers per work-item not known: they limit nothing")
    else:
        # Warps live in one scheduler's part of the register file each.
        family = machine.architecture
        unit = family.register_granularity
        needed = -(-max(launch.registers, _LEAST_REGISTERS) // unit) * unit
        part = machine.registers // family.schedulers
        fits = needed < family.max_registers + unit
        places = family.schedulers * (part // (needed * machine.warp_width))
        limits["registers"] = places // warps if fits else 0
    if launch.local_bytes and machine.local_memory_bytes:
        unit = machine.architecture.local_granularity_bytes
        needed = -(-launch.local_bytes // unit) * unit
        limits["local memory"] = machine.local_memory_bytes // needed
    if not limits:
        limits["work-groups"] = 1
        notes.append("no limit of a compute unit is known: one work-group assumed")
    limiter = min(limits, key=limits.__getitem__)
    if limits[limiter] < 1:
        raise InputError(_explain_misfit(limiter, launch, machine))
    return Occupancy(
        work_groups=limits[limiter],
        limiter=limiter,
        limits=limits,
        warps_per_work_group=warps,
        notes=tuple(notes),
    )


def _explain_misfit(limiter: str, launch: ModelledLaunch, machine: GpuMachine) -> str:
    needs = {
        "work-items": f"{launch.ndrange.work_group_size} work-items",
        "registers": f"{launch.registers} registers for each of its "
        f"{launch.ndrange.work_group_size} work-items",
        "local memory": f"{launch.local_bytes} bytes of local memory",
    }[limiter]
    room = {
        "work-items": machine.max_work_items_per_unit,
        "registers": machine.registers,
        "local memory": machine.local_memory_bytes,
    }[limiter]
    return (
        f"{launch.kernel}: a work-group needs {needs}, a compute unit of {machine.name} has "
        f"{room} ({limiter}); give a smaller local size or use less of it"
    )
