"""A launch's time before anything of it ran: source, calibrated device, and a shipped model."""

import math
from dataclasses import replace

from kernelcast.features.vector.catalogue import combine
from kernelcast.features.vector.sharing import CounterSource
from kernelcast.features.vector.static import StaticSource
from kernelcast.launches.features import KernelFeatures, read_source_features
from kernelcast.launches.own_machine import find_own_machine
from kernelcast.models.static.model import StaticAnswer
from kernelcast.models.static.stored import load_shipped, name_runtime
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem


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
    machine = find_own_machine(device.id)
    if machine is None or machine.kind is not DeviceKind.CPU:
        return None
    return foretell_on(read_source_features(problem), machine)


def foretell_seconds(problem: Problem, device: DeviceDescription) -> float | None:
    """Tell the time of a launch in seconds, as `foretell` does."""
    found = foretell(problem, device)
    return None if found is None else math.exp(found.log_seconds)


def foretell_on(features: KernelFeatures, machine: MachineDescription) -> StaticAnswer | None:
    """Tell the time of a launch whose source was read on a device that is described."""
    # The models take longer to import than a file to read.
    from kernelcast.launches.modelling.estimating import estimate_analytically
    from kernelcast.launches.modelling.launches import model_launch

    problem = replace(features.problem, ndrange=features.ndrange)
    try:
        launch = model_launch(problem, counters=features.counters)
        analytic = estimate_analytically(launch, machine)
    except KernelcastError:
        return None
    vector = combine(
        StaticSource(facts=features.facts, problem=problem),
        CounterSource(counters=features.counters, facts=features.facts),
        analytic,
    )
    return load_shipped(name_runtime(machine.platform)).predict(vector.as_dict())
