"""What the source adds to samples of a launch on a GPU: idle borders, DRAM volumes."""

from collections.abc import Sequence

from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.features.active_groups import find_active_box
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.launches.machines import find_stand_in
from kernelcast.launches.own_machine import find_own_machine
from kernelcast.records.arguments import Argument
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.problem import Problem
from kernelcast.sampling.backend import Sampled


def find_active_groups(
    kernel: Kernel, ndrange: NDRange, arguments: Sequence[Argument]
) -> GroupBox | None:
    """Find the work-groups that do anything; None where that is not known, or none does."""
    try:
        facts = analyse(kernel).facts
        return find_active_box(facts, ndrange, bind_scalars(facts, arguments))
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return None


def find_least_rate(launch: ModelledLaunch, machine: MachineDescription) -> float:
    """Find the least seconds per work-group by what the whole launch moves through DRAM, else 0."""
    from kernelcast.analytic.gpu.machine import DramRoof, read_machine
    from kernelcast.analytic.gpu.volumes import compute_volumes

    gpu = read_machine(machine)
    load, copy = gpu.dram_load_bytes_per_s, gpu.dram_copy_bytes_per_s
    if load is None or copy is None or not all(one.guard.is_exact for one in launch.accesses):
        return 0.0
    volumes = compute_volumes(launch, gpu)
    loaded, stored = volumes.dram_load_bytes, volumes.dram_store_bytes
    if not stored > 0 or loaded + stored < gpu.l2_total_bytes:
        return 0.0
    roof = DramRoof(load_bytes_per_s=load, copy_bytes_per_s=copy)
    return roof.least_s(loaded, stored) / volumes.work_groups


def read_least_rate(launch: Sampled, kernel: Kernel, arguments: Sequence[Argument]) -> float:
    """Find the same of a sampled launch by the description of its device; 0 without one."""
    try:
        machine = find_own_machine(launch.device.id) or find_stand_in(launch.device)
        if machine is None:
            return 0.0
        # The models take longer to import than samples to take.
        from kernelcast.launches.modelling.launches import model_launch

        problem = Problem(
            name=kernel.name, kernel=kernel, ndrange=launch.ndrange, arguments=tuple(arguments)
        )
        return find_least_rate(model_launch(problem), machine)
    except Exception:  # noqa: BLE001 - a help: nothing about it may cost the answer
        return 0.0
