"""Asks the analytic model that fits a machine."""

from kernelcast.analytic.cpu.estimate import estimate_cpu
from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.launches.modelling.gpu_code import add_code
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem


def estimate_analytically(
    launch: Problem | ModelledLaunch, machine: MachineDescription, problem: Problem | None = None
) -> AnalyticEstimate:
    """Estimate the time of a launch by the model of GPUs or of CPUs.

    Parameters
    ----------
    launch : Problem or ModelledLaunch
        A problem is analysed first, from its source alone.
    problem : Problem, optional
        What a `ModelledLaunch` was made of, for the code that a compiler makes of it for a GPU.

    Raises
    ------
    InputError
        If there is no model of such a machine, it lacks a number, or an address depends on data
        and was not recorded.
    """
    if isinstance(launch, Problem):
        problem = launch
        launch = model_launch(problem)
    if machine.kind is DeviceKind.CPU:
        return estimate_cpu(launch, machine)
    if machine.kind is DeviceKind.GPU:
        return estimate_gpu(
            launch if problem is None else add_code(launch, problem, machine), machine
        )
    msg = f"{machine.id} is of kind {machine.kind}; there are models of CPUs and of GPUs"
    raise InputError(msg)
