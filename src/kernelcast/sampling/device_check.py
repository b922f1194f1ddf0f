"""Checks a device: whether it builds and runs a kernel, and whether its timer tells the truth."""

import time
from collections.abc import Callable

import numpy as np

from kernelcast.records.device import DeviceDescription, TimerCheck
from kernelcast.records.errors import BrokenDeviceError, KernelcastError
from kernelcast.sampling.building import build_program
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.probes import Probe

_WORK_ITEMS = 4096
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


def check_device(
    description: DeviceDescription,
    device: cl.Device,
    *,
    context: cl.Context | None = None,
    build: Callable[[], cl.Program] | None = None,
) -> TimerCheck:
    """Build a kernel, run it for some milliseconds, check its result and its timer.

    Parameters
    ----------
    context : pyopencl.Context, optional
        Of the device; a new one when left out.
    build : callable, optional
        Gives `Probe.SOURCE` built in that context.

    Raises
    ------
    BrokenDeviceError
        If the device cannot do it; holds the driver's reason.
    """
    try:
        context = context or cl.Context([device])
        program = build() if build else build_program(context, device, Probe.SOURCE, ())
        return _try(context, device, program)
    except (cl.Error, KernelcastError) as error:
        msg = f"{description.id}: {error}"
        raise BrokenDeviceError(msg) from error


def _try(context: cl.Context, device: cl.Device, program: cl.Program) -> TimerCheck:
    kernel = cl.Kernel(program, "kc_trial")
    queue = cl.CommandQueue(
        context, device, properties=cl.command_queue_properties.PROFILING_ENABLE
    )
    out = np.empty(_WORK_ITEMS, dtype=np.float32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, size=out.nbytes)
    steps = _FIRST_STEPS
    _run(queue, kernel, buffer, steps)  # the first launch compiles
    event_s, host_s = _run(queue, kernel, buffer, steps)
    while host_s < _LONG_ENOUGH_S and steps < _MOST_STEPS:
        steps *= 4
        event_s, host_s = _run(queue, kernel, buffer, steps)
    cl.enqueue_copy(queue, out, buffer)
    if not np.allclose(out, 2.0, rtol=1e-4):
        msg = f"the device computes wrongly: {out[:3]} where 2.0 was expected"
        raise BrokenDeviceError(msg)
    for _ in range(_TRIALS):
        agrees = abs(event_s - host_s) <= _TOLERANCE * host_s
        if agrees or event_s < _NOT_A_TIME * host_s:
            break
        event_s, host_s = _run(queue, kernel, buffer, steps)
    return TimerCheck(event_s=event_s, host_s=host_s, agrees=agrees)


def _run(
    queue: cl.CommandQueue, kernel: cl.Kernel, buffer: cl.Buffer, steps: int
) -> tuple[float, float]:
    kernel.set_args(buffer, np.int32(steps))
    queue.finish()
    start = time.perf_counter()
    event = cl.enqueue_nd_range_kernel(queue, kernel, (_WORK_ITEMS,), None)
    queue.finish()
    host_s = time.perf_counter() - start
    try:
        return float(event.profile.end - event.profile.start) * 1e-9, host_s
    except cl.Error:  # profiling is refused or not available: the timer does not agree
        return 0.0, host_s
