"""What the analytic models say of a launch on a device of this machine."""

from functools import lru_cache
from pathlib import Path

from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.machines import list_machines
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.problem import Problem
from kernelcast.records.recorded_addresses import RecordedAddresses
from kernelcast.records.software_counters import SoftwareCounters


def find_own_machine(device_id: str) -> MachineDescription | None:
    """Give the description of a device that was calibrated here; None if it was not.

    Raises
    ------
    MachineFileError
        If the file is damaged.
    """
    known = (one for one in list_machines() if one.name == device_id and not one.is_shipped)
    found = next(known, None)
    return None if found is None else _read_once(found.path, found.path.stat().st_mtime_ns)


@lru_cache(maxsize=16)
def _read_once(path: Path, changed_ns: int) -> MachineDescription:
    """Read a file, unless it is as it was: that takes longer than to estimate a launch."""
    del changed_ns
    return read_machine(path)


def model_own_launch(  # noqa: PLR0913 - a launch, its device, what is known, what is wanted
    problem: Problem,
    ndrange: NDRange,
    device_id: str,
    *,
    counters: SoftwareCounters | None = None,
    recorded: RecordedAddresses | None = None,
    with_rivals: bool = False,
) -> AnalyticEstimate | None:
    """Estimate a launch by the analytic model of its device.

    Parameters
    ----------
    problem : Problem
        The launch.
    ndrange : NDRange
        Its index space, local size chosen.
    device_id : str
        The device.
    counters : SoftwareCounters, optional
        Counted on the device; derived from the source when left out.
    recorded : RecordedAddresses, optional
        Addresses of sampled work-groups, where they depend on data.
    with_rivals : bool
        Whether to add what other models say, for rows that validations compare: the quantity
        ``mwp_cwp_s``, Hong and Kim's time. An answer does without.

    Returns
    -------
    AnalyticEstimate or None
        None if the device was not calibrated.

    Raises
    ------
    KernelcastError
        If the model has no answer.
    """
    machine = find_own_machine(device_id)
    if machine is None:
        return None
    # The models take longer to import than a file to read.
    from kernelcast.launches.modelling.estimating import estimate_analytically
    from kernelcast.launches.modelling.launches import model_launch

    launch = model_launch(problem, ndrange, counters=counters, recorded=recorded)
    found = estimate_analytically(launch, machine)
    if not with_rivals:
        return found
    from kernelcast.launches.modelling.mwp_cwp import add_mwp_cwp

    return add_mwp_cwp(found, launch, machine, counters)
