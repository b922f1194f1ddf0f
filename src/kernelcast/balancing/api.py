"""What Python programs call to run one kernel over several devices."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelcast.balancing.balancer import Balancer
from kernelcast.balancing.host_arguments import (
    HostArguments,
    make_host_arguments,
    read_host_arguments,
)
from kernelcast.balancing.places import choose_places
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.balance import BalanceReport
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange


def balance(
    kernel: Kernel,
    ndrange: NDRange | Sequence[int],
    args: Sequence[Any],
    devices: Sequence[str | DevicePlace] = (),
    *,
    settings: BalanceSettings | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> BalanceReport:
    """Run one kernel over several devices, so that all finish at about the same time.

    Each device runs a few parts of the index space, from which its speed is estimated; these
    count as done. Most of the work is divided by the estimates, the rest by the speeds that show.

    Parameters
    ----------
    kernel : Kernel
        Name, source, build options.
    ndrange : NDRange or sequence of int
        The index space, or its global size alone.
    args : sequence
        The kernel's arguments in order: NumPy arrays for buffers, which take the results; NumPy
        scalars; `LocalArgument` for local memory.
    devices : sequence of str or DevicePlace
        Ids or beginnings of ids; all devices when left out. CPU devices share the machine's cores
        evenly unless a `DevicePlace` says which each shall have.
    settings : BalanceSettings, optional
        How to balance.
    report : callable, optional
        Is told of each stage.

    Returns
    -------
    BalanceReport
        Shares, times as estimated and as they were, the timeline.

    Raises
    ------
    InputError
        If the kernel may not be split (atomic operations on global memory, work-groups that read
        what others write), or no device takes it.
    DeviceError
        If no device is left to finish. Then, and after every other error, the arrays hold what
        they held before.
    """
    space = ndrange if isinstance(ndrange, NDRange) else NDRange(global_size=tuple(ndrange))
    return _balance_once(kernel, space, read_host_arguments(args), devices, settings, report)


def balance_problem(
    path: str | Path,
    devices: Sequence[str | DevicePlace] = (),
    *,
    parameters: Mapping[str, int | float] | None = None,
    settings: BalanceSettings | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[BalanceReport, HostArguments]:
    """Run a problem file over several devices.

    Parameters
    ----------
    devices, settings, report
        As of `balance`.
    parameters : mapping of str to number, optional
        Values that replace those of the file's `parameters`.

    Returns
    -------
    arguments : HostArguments
        The arguments with their results.

    Raises
    ------
    InputError, DeviceError
        As `balance`.
    """
    problem = read_problem(path, parameters=parameters)
    chosen = settings or BalanceSettings()
    report("filling the buffers")
    arguments = make_host_arguments(problem, seed=chosen.seed)
    found = _balance_once(problem.kernel, problem.ndrange, arguments, devices, chosen, report)
    return found, arguments


def _balance_once(
    kernel: Kernel,
    ndrange: NDRange,
    arguments: HostArguments,
    devices: Sequence[str | DevicePlace],
    settings: BalanceSettings | None,
    report: Callable[[str], None],
) -> BalanceReport:
    report("looking for devices")
    places = choose_places(devices)
    with Balancer(places, settings) as balancer:
        return balancer.balance(kernel, ndrange, arguments, report=report)
