"""A launch's time before anything of it ran, by its source and the description of its device."""

from dataclasses import replace

from kernelcast.analytic.cpu.estimate import estimate_work, study_work
from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.features.analysis import analyse
from kernelcast.features.counting.bindings import bind_scalars
from kernelcast.features.counting.open_loops import doubt_counts
from kernelcast.features.counting.sampled_groups import choose_work_groups
from kernelcast.features.counting.static import count_statically
from kernelcast.features.counting.summary import WARP_WIDTHS, summarise
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.launches.own_machine import find_own_machine, model_own_launch
from kernelcast.launches.persistence_check import refuse_persistent
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.arguments import BufferArgument
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem


def foretell_own(
    problem: Problem, ndrange: NDRange, device_id: str, *, stand_in: str = ""
) -> AnalyticEstimate | None:
    """Tell the time of a launch on a device that is described; None of others.

    Parameters
    ----------
    problem : Problem
        The launch.
    ndrange : NDRange
        Its index space, local size chosen.
    device_id : str
        The device.
    stand_in : str
        Name of the shipped description that counts if the device was not calibrated.

    Raises
    ------
    KernelcastError
        If the analytic model has no answer.
    """
    machine = find_own_machine(device_id, stand_in=stand_in)
    if machine is None:
        return None
    if machine.kind is not DeviceKind.CPU:
        return model_own_launch(problem, ndrange, device_id, stand_in=stand_in)
    return foretell_by(problem, ndrange, machine)


def foretell_by(
    problem: Problem, ndrange: NDRange, machine: MachineDescription
) -> AnalyticEstimate:
    """Ask the analytic model of a CPU that is described.

    Parameters
    ----------
    problem : Problem
        The launch.
    ndrange : NDRange
        Its index space, local size chosen.
    machine : MachineDescription
        A calibrated CPU device.

    Raises
    ------
    KernelcastError
        If the analytic model has no answer.
    """
    refuse_persistent(problem.kernel)
    facts, device = analyse(problem.kernel).facts, read_device(machine)
    scalars = bind_scalars(facts, problem.arguments)
    sample = count_statically(
        facts, ndrange, scalars, [*dict.fromkeys(choose_work_groups(ndrange))]
    )
    # Vectors are no wider than the narrowest warps.
    counters = summarise(facts, sample, warp_widths=WARP_WIDTHS[:1])
    work = study_work(model_launch(replace(problem, ndrange=ndrange), counters=counters), device)
    buffers = {
        parameter.name: argument.bytes
        for parameter, argument in zip(facts.parameters, problem.arguments, strict=True)
        if isinstance(argument, BufferArgument)
    }
    estimate = estimate_work(work, device, ndrange, buffers)
    doubt = doubt_counts(facts, counters).half_width
    return replace(estimate, doubt=doubt) if doubt else estimate
