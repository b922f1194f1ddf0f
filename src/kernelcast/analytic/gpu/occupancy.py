"""How many work-groups a compute unit holds at once, by what its description says."""

from dataclasses import dataclass, replace

from kernelcast.analytic.gpu.machine import GpuMachine
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.errors import DeviceLimitError, InputError
from kernelcast.records.occupancy import Limiter, compute_p_sat

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
    size, unit, notes = launch.ndrange.work_group_size, machine.unit, []
    if launch.registers is None:
        notes.append("registers per work-item not known: they limit nothing")
        uses_local = launch.local_bytes and unit.local_bytes
        if not (unit.max_work_groups or unit.max_warps or uses_local):
            notes.append("no limit of a compute unit is known: one work-group assumed")
            unit = replace(unit, max_work_groups=1)
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
