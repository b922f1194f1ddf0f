"""How many work-groups a compute unit holds at once, by what its description says."""

from dataclasses import dataclass

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import DeviceLimitError, InputError
from kernelcast.records.occupancy import Limiter, UnitLimits, compute_p_sat

# OpenCL compilers give a kernel at least this many; the occupancy of smaller ones is no larger.
_LEAST_REGISTERS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Work-groups that a compute unit holds at once."""

    work_groups: int
    limiter: Limiter
    warps_per_work_group: int
    notes: tuple[str, ...] = ()


def compute_occupancy(launch: ModelledLaunch, machine: GpuMachine) -> Occupancy:
    """Count the work-groups that fit into a compute unit at once."""
    size, family, notes = launch.ndrange.work_group_size, machine.architecture, []
    slots = machine.max_work_groups_per_unit or 0
    if launch.registers is None:
        notes.append("registers per work-item not known: they limit nothing")
        uses_local = launch.local_bytes and machine.local_memory_bytes
        if not (slots or machine.max_work_items_per_unit or uses_local):
            notes.append("no limit of a compute unit is known: one work-group assumed")
            slots = 1
    unit = UnitLimits(
        vendor=family.name,
        name=machine.name,
        warp_sizes=(machine.warp_width,),
        max_work_group_size=machine.max_work_group_size or 0,
        max_work_groups=slots,
        max_warps=(machine.max_work_items_per_unit or 0) // machine.warp_width,
        registers=machine.registers,
        max_registers=-(-family.max_registers // family.register_granularity)
        * family.register_granularity,
        register_granule=family.register_granularity * machine.warp_width,
        register_partitions=family.schedulers,
        local_bytes=machine.local_memory_bytes or 0,
        work_group_local_bytes=0,
        local_granule_bytes=family.local_granularity_bytes,
    )
    registers = None if launch.registers is None else max(launch.registers, _LEAST_REGISTERS)
    try:
        work_groups, limiter = compute_p_sat(
            unit,
            work_group_size=size,
            registers_per_work_item=registers,
            local_memory_bytes=launch.local_bytes,
        )
    except DeviceLimitError as error:
        raise InputError(f"{launch.kernel}: {error}") from error
    return Occupancy(
        work_groups=work_groups,
        limiter=limiter,
        warps_per_work_group=-(-size // machine.warp_width),
        notes=tuple(notes),
    )
