"""What Python programs call to run one kernel over several devices."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelcast.balancing.balancer import Balancer
from kernelcast.balancing.host_arguments import HostArguments, make_host_arguments
from kernelcast.balancing.settings import BalanceSettings, DevicePlace
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.balance import BalanceReport
from kernelcast.records.estimates import Estimate, Interval
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

if TYPE_CHECKING:  # pyopencl is loaded where it is needed
    from kernelcast.launches.live import Launch


def balance(
    kernel: "Kernel | Launch",
    ndrange: NDRange | Sequence[int] = (),
    args: Sequence[Any] = (),
    devices: Sequence[str | DevicePlace] = (),
    *,
    estimates: Mapping[str, Estimate | Interval] | None = None,
    settings: BalanceSettings | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> BalanceReport:
    """Run one kernel over several devices, so that all finish at about the same time.

    All devices are opened and build the kernel first. Most of the work is divided by estimates,
    the rest by the speeds that are measured meanwhile. A device without an estimate runs small
    parts first, which tell its speed and count as done.

    Parameters
    ----------
    kernel : Kernel or Launch
        Name, source, build options; or a launch of pyopencl objects, for which `ndrange` and `args`
        are left out.
    ndrange : NDRange or sequence of int
        The index space, or its global size alone.
    args : sequence
        The kernel's arguments in order: NumPy arrays, pyopencl's buffers or arrays, which take the
        results; NumPy scalars; `LocalArgument` or `pyopencl.LocalMemory` for local memory. Finish
        what your queues do to buffers before.
    devices : sequence of str or DevicePlace
        Ids or beginnings of ids; all devices when left out. CPU devices share the machine's cores
        evenly unless a `DevicePlace` says which each shall have.
    estimates : mapping of str to Estimate or Interval, optional
        What the whole launch takes on each device alone, by the device's id, such as
        `Predictor.estimate` tells.
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
        If no device is left to finish. Then, and after every other error, arrays and buffers hold
        what they held before.
    """
    report("looking for devices")
    with Balancer(devices, settings) as balancer:
        return balancer.balance(kernel, ndrange, args, estimates=estimates, report=report)


def balance_problem(
    path: str | Path,
    devices: Sequence[str | DevicePlace] = (),
    *,
    parameters: Mapping[str, int | float] | None = None,
    settings: BalanceSettings | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[BalanceReport, HostArguments]:
    """Run a problem file over several devices; return the arguments with their results too."""
    problem = read_problem(path, parameters=parameters)
    chosen = settings or BalanceSettings()
    report("filling the buffers")
    arguments = make_host_arguments(problem, seed=chosen.seed)
    report("looking for devices")
    with Balancer(devices, chosen) as balancer:
        found = balancer.balance(problem.kernel, problem.ndrange, arguments, report=report)
    return found, arguments
