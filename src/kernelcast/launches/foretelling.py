"""A launch's time before anything of it ran: source, calibrated device, and a shipped model."""

from dataclasses import dataclass, replace

from kernelcast.features.analysis import analyse
from kernelcast.features.vector.catalogue import combine
from kernelcast.features.vector.sharing import CounterSource
from kernelcast.features.vector.static import StaticSource
from kernelcast.launches.feature_counts import count_from_source
from kernelcast.launches.features import KernelFeatures
from kernelcast.launches.own_machine import find_own_machine, model_own_launch
from kernelcast.models.static.model import StaticAnswer
from kernelcast.models.static.stored import load_shipped, name_runtime
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """What is known of a launch's time before anything of it ran.

    Parameters
    ----------
    analytic : AnalyticEstimate
        By the analytic model of the device.
    learned : StaticAnswer or None
        By the shipped model that corrects it; None where it knows nothing of such devices.
    """

    analytic: AnalyticEstimate
    learned: StaticAnswer | None = None


def foretell_own(
    problem: Problem, ndrange: NDRange, device_id: str, *, stand_in: str = ""
) -> Foretold | None:
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
        found = model_own_launch(problem, ndrange, device_id, stand_in=stand_in)
        return None if found is None else Foretold(analytic=found)
    return foretell_by(problem, ndrange, machine)


def foretell_on(features: KernelFeatures, machine: MachineDescription) -> StaticAnswer | None:
    """Tell the time of a launch whose source was read on a device that is described."""
    try:
        return foretell_by(features.problem, features.ndrange, machine).learned
    except KernelcastError:
        return None


def foretell_by(problem: Problem, ndrange: NDRange, machine: MachineDescription) -> Foretold:
    """Ask the analytic model of a CPU that is described, and correct it.

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
    from kernelcast.launches.modelling.estimating import estimate_analytically
    from kernelcast.launches.modelling.launches import model_launch

    problem = replace(problem, ndrange=ndrange)
    facts = analyse(problem.kernel).facts
    counters = count_from_source(facts, problem, problem.ndrange)
    analytic = estimate_analytically(model_launch(problem, counters=counters), machine)
    vector = combine(
        StaticSource(facts=facts, problem=problem),
        CounterSource(counters=counters, facts=facts),
        analytic,
    )
    try:
        learned = load_shipped(name_runtime(machine.platform)).predict(vector.as_dict())
    except InputError:
        learned = None
    return Foretold(analytic=analytic, learned=learned)
