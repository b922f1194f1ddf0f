"""A launch's time before anything of it ran: source, calibrated device, and a shipped model."""

import math
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
from kernelcast.records.device import DeviceDescription, DeviceKind
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


def foretell(problem: Problem, device: DeviceDescription) -> StaticAnswer | None:
    """Tell the time of a launch from its source alone.

    Parameters
    ----------
    problem : Problem
        The launch.
    device : DeviceDescription
        A CPU device that was calibrated here.

    Returns
    -------
    StaticAnswer or None
        None where the device was not calibrated or is no CPU, which the shipped models know
        nothing of, and where the source does not tell all addresses.

    Raises
    ------
    CompileError
        If the source cannot be parsed.
    """
    # The models take longer to import than a file to read.
    from kernelcast.launches.modelling.launches import choose_local_size

    analyse(problem.kernel)  # that a source cannot be parsed is no missing answer
    try:
        found = foretell_own(problem, choose_local_size(problem.ndrange)[0], device.id)
    except KernelcastError:
        return None
    return None if found is None else found.learned


def foretell_seconds(problem: Problem, device: DeviceDescription) -> float | None:
    """Tell the time of a launch in seconds, as `foretell` does."""
    found = foretell(problem, device)
    return None if found is None else math.exp(found.log_seconds)


def foretell_own(problem: Problem, ndrange: NDRange, device_id: str) -> Foretold | None:
    """Tell the time of a launch on a device that was calibrated here; None of others.

    Parameters
    ----------
    problem : Problem
        The launch.
    ndrange : NDRange
        Its index space, local size chosen.
    device_id : str
        The device.

    Raises
    ------
    KernelcastError
        If the analytic model has no answer.
    """
    machine = find_own_machine(device_id)
    if machine is None:
        return None
    if machine.kind is not DeviceKind.CPU:
        found = model_own_launch(problem, ndrange, device_id)
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
