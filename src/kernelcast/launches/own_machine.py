"""What the analytic models say of a launch on a device of this machine."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.machines import find_machine, machine_path
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import RecordedAddresses, SoftwareCounters


def find_own_machine(device_id: str, *, stand_in: str = "") -> MachineDescription | None:
    """Read the description of a device that was calibrated here, else the shipped `stand_in`."""
    path = machine_path(device_id)
    try:
        changed_ns = path.stat().st_mtime_ns
    except OSError:
        return find_machine(stand_in) if stand_in else None
    return _read_once(path, changed_ns)


def find_sound_machine(device_id: str) -> MachineDescription | None:
    """Give the same; None where it cannot be read, too: answers do without."""
    try:
        return find_own_machine(device_id)
    except (KernelcastError, OSError):
        return None


@lru_cache(maxsize=16)
def _read_once(path: Path, changed_ns: int) -> MachineDescription:
    """Read a file, unless it is as it was: that takes longer than to estimate a launch."""
    del changed_ns
    return read_machine(path)


def model_own_launch(
    problem: Problem,
    ndrange: NDRange,
    device_id: str,
    *,
    counters: SoftwareCounters | None = None,
    recorded: RecordedAddresses | None = None,
    with_rivals: bool = False,
    stand_in: str = "",
) -> AnalyticEstimate | None:
    """Estimate a launch by the analytic model of its device; rivals are for validations only."""
    machine = find_own_machine(device_id, stand_in=stand_in)
    if machine is None:
        return None
    # The models take longer to import than a file to read.
    from kernelcast.launches.modelling.estimating import estimate_analytically
    from kernelcast.launches.modelling.launches import model_launch

    launch = model_launch(problem, ndrange, counters=counters, recorded=recorded)
    found = estimate_analytically(launch, machine, problem)
    if machine.id == stand_in:
        note = (
            f"{device_id} was not calibrated: the shipped description of {machine.name} stands in"
        )
        found = replace(found, notes=(*found.notes, note))
    if not with_rivals:
        return found
    from kernelcast.launches.modelling.mwp_cwp import add_mwp_cwp

    return add_mwp_cwp(found, launch, machine, counters)


def foretell_own(
    problem: Problem, ndrange: NDRange, device_id: str, *, stand_in: str = ""
) -> AnalyticEstimate | None:
    """Estimate a launch before anything of it ran."""
    machine = find_own_machine(device_id, stand_in=stand_in)
    if machine is None or machine.kind is not DeviceKind.CPU:
        return model_own_launch(problem, ndrange, device_id, stand_in=stand_in)
    return foretell_by(problem, ndrange, machine)


def foretell_by(
    problem: Problem, ndrange: NDRange, machine: MachineDescription
) -> AnalyticEstimate:
    """Ask the analytic model of a CPU, and say how far loops that data end may change its time."""
    from kernelcast.features.counting.open_loops import doubt_counts
    from kernelcast.launches.modelling.estimating import estimate_analytically
    from kernelcast.launches.modelling.launches import model_kernel, model_launch

    kernel = model_kernel(problem)
    counters = kernel.count(ndrange)
    launch = model_launch(problem, ndrange, counters=counters)
    found = estimate_analytically(launch, machine, problem)
    doubt = doubt_counts(kernel.facts, counters).half_width
    return replace(found, doubt=doubt) if doubt else found
