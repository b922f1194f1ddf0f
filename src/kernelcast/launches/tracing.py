"""Traces of one problem on several devices, each device in a process of its own."""

from collections.abc import Callable, Iterator, Sequence

from kernelcast.launches.settings import DEFAULT_TIMEOUT_S
from kernelcast.launches.trace_task import TraceSettings, TraceTask
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.problem import Problem
from kernelcast.records.work_group_trace import TraceAnswer, WorkGroupTrace
from kernelcast.workers import Task, run_isolated

_LONGEST_TIMEOUT_S = 1e6
_TRACE = Task(entry="kernelcast.launches.trace_task:trace_problem", returns=WorkGroupTrace)


def trace_on_devices(
    problem: Problem,
    devices: Sequence[DeviceDescription],
    *,
    settings: TraceSettings,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[TraceAnswer]:
    """Trace one problem on devices one after the other.

    Parameters
    ----------
    settings : TraceSettings
        Method, number of work-groups.
    timeout_s : float
        Time limit of each device, in seconds.
    report : callable, optional
        Is told of each device and stage.

    Yields
    ------
    TraceAnswer
        A device that fails has its error in it.

    Raises
    ------
    InputError
        If the time limit is out of its range.
    """
    if not 0 < timeout_s <= _LONGEST_TIMEOUT_S:
        msg = f"timeout {timeout_s} s: give a number above 0, at most {_LONGEST_TIMEOUT_S:,.0f}"
        raise InputError(msg)
    for device in devices:
        yield _ask(problem, device, settings, timeout_s, report)


def _ask(
    problem: Problem,
    device: DeviceDescription,
    settings: TraceSettings,
    timeout_s: float,
    report: Callable[[str], None],
) -> TraceAnswer:
    trace: WorkGroupTrace | None = None
    cause: KernelcastError | None = None
    try:
        trace = run_isolated(
            _TRACE,
            TraceTask(problem=problem.on(device), device_id=device.id, settings=settings),
            timeout_s=timeout_s,
            subject=device.id,
            report=lambda stage: report(f"{device.id}: {stage}"),
        )
    except KernelcastError as error:
        cause = error
    return TraceAnswer(
        device=device.name,
        device_id=device.id,
        problem=problem.name,
        kernel=problem.kernel.name,
        trace=trace,
        error=cause,
    )
