"""Tries a device: whether it runs a kernel, whether its events tell the time, what a launch costs.

The same launches tell how many processors of the host share the work of a CPU device.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from kernelcast.records.device import DeviceDescription, DeviceKind, TimerCheck
from kernelcast.records.errors import BrokenDeviceError, KernelcastError
from kernelcast.sampling.building import build_program
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.probes import TRIAL_SOURCE

_WORK_ITEMS, _LOCAL_SIZE = 4096, 64
_FIRST_STEPS = 64
_LONG_ENOUGH_S = 5e-3
_MOST_STEPS = 2**24
# The host clock also sees the launch itself: up to a third of a short kernel on slow drivers.
_TOLERANCE = 0.35
# It sees other programs too, which keep the waiting thread from the processor; a timer that is
# wrong agrees in no trial.
_TRIALS = 4
# An event's time that is less than this share of the host's is none: llvmpipe gives 1 ns.
_NOT_A_TIME = 0.05
_EMPTY_LAUNCHES = 9
SETTLING = 16
# Share of a launch for which its cores work: less is done elsewhere, more by others too.
_LEAST_WORK, _MOST_WORK = 0.4, 1.6


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTrial:
    """What launches of a trivial kernel tell of a device."""

    event_s: float
    host_s: float
    agrees: bool
    """As of `TimerCheck`."""
    steps: int
    """Of the kernel, with which it runs for some milliseconds."""
    settled_s: float
    """Best time of a shorter one, of `SETTLING` of its steps, in seconds."""
    launch_overhead_s: float
    """Time of a launch that does next to nothing, in seconds."""
    asleep_s: float = 0.0
    """How much of it is no processor time of this process."""
    cores: int | None = None
    """Processors of the host that share the work; None where processor time does not tell."""

    @property
    def timer(self) -> TimerCheck:
        """How events compare with the host's clock."""
        return TimerCheck(event_s=self.event_s, host_s=self.host_s, agrees=self.agrees)


def try_device(
    description: DeviceDescription,
    device: cl.Device,
    *,
    context: cl.Context | None = None,
    build: Callable[[], cl.Program] | None = None,
) -> DeviceTrial:
    """Build a kernel, run it for some milliseconds, check its result and its timer.

    Parameters
    ----------
    context : pyopencl.Context, optional
        Of the device; a new one when left out.
    build : callable, optional
        Returns `TRIAL_SOURCE` built in that context.

    Raises
    ------
    BrokenDeviceError
        If the device cannot do it; holds the driver's reason.
    """
    try:
        context = context or cl.Context([device])
        program = build() if build else build_program(context, device, TRIAL_SOURCE, ())
        return _try(description, context, device, program)
    except (cl.Error, KernelcastError) as error:
        msg = f"{description.id}: {error}"
        raise BrokenDeviceError(msg) from error


class TrialTimes(NamedTuple):
    """One launch by events, by the host's clock, and in processor time of this process."""

    event_s: float
    host_s: float
    worked_s: float


def prepare_trial(
    queue: cl.CommandQueue, program: cl.Program, buffer: cl.Buffer | None = None
) -> Callable[[int], TrialTimes]:
    """Prepare launches of the trivial kernel; the steps of its loop are left open."""
    kernel = cl.Kernel(program, "kc_trial")
    target = buffer or cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=4 * _WORK_ITEMS)

    def run(steps: int) -> TrialTimes:
        kernel.set_args(target, np.int32(steps))
        queue.finish()
        start_s, start_worked_s = time.perf_counter(), time.process_time()
        # Enough work-groups for all threads; PoCL left to choose would make one of them all.
        event = cl.enqueue_nd_range_kernel(queue, kernel, (_WORK_ITEMS,), (_LOCAL_SIZE,))
        queue.finish()
        host_s, worked_s = time.perf_counter() - start_s, time.process_time() - start_worked_s
        try:
            event_s = float(event.profile.end - event.profile.start) * 1e-9
        except cl.Error:  # profiling is refused or not available: the timer does not agree
            event_s = 0.0
        return TrialTimes(event_s, host_s, worked_s)

    return run


def _try(
    description: DeviceDescription, context: cl.Context, device: cl.Device, program: cl.Program
) -> DeviceTrial:
    queue = cl.CommandQueue(
        context, device, properties=cl.command_queue_properties.PROFILING_ENABLE
    )
    out = np.empty(_WORK_ITEMS, dtype=np.float32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, size=out.nbytes)
    run = prepare_trial(queue, program, buffer)

    steps = _FIRST_STEPS
    run(steps)  # the first launch compiles
    empty = [run(0) for _ in range(_EMPTY_LAUNCHES)]
    last = run(steps)
    while last.host_s < _LONG_ENOUGH_S and steps < _MOST_STEPS:
        steps *= 4
        last = run(steps)
    cl.enqueue_copy(queue, out, buffer)
    if not np.allclose(out, 2.0, rtol=1e-4):
        msg = f"the device computes wrongly: {out[:3]} where 2.0 was expected"
        raise BrokenDeviceError(msg)

    cores = None
    if description.kind is DeviceKind.CPU and hasattr(os, "sched_getaffinity"):  # Linux
        cores = min(description.compute_units, len(os.sched_getaffinity(0)))
    share = 0.0
    for _ in range(_TRIALS):
        agrees = abs(last.event_s - last.host_s) <= _TOLERANCE * last.host_s
        is_decided = agrees or last.event_s < _NOT_A_TIME * last.host_s
        if cores is not None:
            share = max(share, last.worked_s / (cores * last.host_s))
        if is_decided and (cores is None or share >= _LEAST_WORK):
            break
        last = run(steps)
    if not _LEAST_WORK <= share <= _MOST_WORK:
        cores = None
    believed = [one.event_s if agrees else one.host_s for one in empty]
    asleep = [
        seconds - one.worked_s / (cores or 1) for seconds, one in zip(believed, empty, strict=True)
    ]
    return DeviceTrial(
        event_s=last.event_s,
        host_s=last.host_s,
        agrees=agrees,
        steps=steps,
        settled_s=min(run(steps // SETTLING).host_s for _ in range(_EMPTY_LAUNCHES)),
        launch_overhead_s=median(believed),
        asleep_s=max(median(asleep), 0.0),
        cores=cores,
    )
