"""A launch's time before anything of it ran, by its source and the description of its device."""

from kernelcast.launches.own_machine import find_own_machine, model_own_launch
from kernelcast.launches.persistence_check import refuse_persistent
from kernelcast.launches.static_answers import recall
from kernelcast.records.analytic_estimate import AnalyticEstimate
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
    return recall(problem.kernel, ndrange, machine).answer(problem, ndrange)
