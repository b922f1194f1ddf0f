"""Reads what a launch took from the events of the program that has made it."""

from typing import TypeAlias

from kernelcast.records.errors import EventTimesError, InputError
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.user_objects import name_device, session_of

UserEvent: TypeAlias = cl.Event

_KERNELS = frozenset({cl.command_type.NDRANGE_KERNEL, cl.command_type.TASK})


def read_event_times(given: object, device_id: str, queue: object = None) -> float:
    """Wait for the events of a launch; give the seconds from its first start to its last end.

    Events are of the launch, or a list or tuple of those that it was cut into.

    Raises
    ------
    InputError
        If they are none, of other commands, another device or context, if the launch has failed, or
        its queue keeps no times.
    EventTimesError
        If the device's events are known to tell wrong times.
    """
    listed = list(given) if isinstance(given, list | tuple) else [given]
    events = [one for one in listed if isinstance(one, cl.Event)]
    if len(events) < len(listed) or not events:
        what = next((type(x).__name__ for x in listed if not isinstance(x, cl.Event)), "no event")
        msg = (
            f"measured time: {what} given; give a number of seconds, or the launch's pyopencl.Event"
        )
        raise InputError(msg)
    times = [_read_times(one, device_id, queue) for one in events]
    return (max(end for _, end in times) - min(start for start, _ in times)) * 1e-9


def _read_times(event: cl.Event, device_id: str, queue: object) -> tuple[int, int]:
    """Give when a launch has started and ended, in nanoseconds of its device's timer."""
    if event.command_type not in _KERNELS:
        msg = "event: of a copy or another command than a kernel's launch; give the launch's event"
        raise InputError(msg)
    try:
        own = event.command_queue
    except cl.Error as error:  # Intel's runtime does not keep it
        msg = "event: its queue is gone; keep the pyopencl.CommandQueue as long as its events"
        raise InputError(msg) from error
    where = name_device(own)
    if where != device_id:
        msg = f"event: of a launch on {where}, not on {device_id}; give the launch's own event"
        raise InputError(msg)
    if isinstance(queue, cl.CommandQueue) and own.context != queue.context:
        msg = "event: of another context than the launch's queue; give the launch's own event"
        raise InputError(msg)
    try:
        event.wait()
    except cl.Error as error:
        msg = f"event: the launch has failed, so it took no time to learn from ({error})"
        raise InputError(msg) from error
    if not own.properties & cl.command_queue_properties.PROFILING_ENABLE:
        msg = (
            "event: its queue keeps no times; make the queue with "
            "pyopencl.command_queue_properties.PROFILING_ENABLE, or give seconds"
        )
        raise InputError(msg)
    if not session_of(own).uses_event_timer:
        msg = (
            f"event: those of {device_id} tell wrong times, as the column timer of `kernelcast "
            "devices` says; finish the queue before and after the launch, and give the seconds "
            "between by the host's clock"
        )
        raise EventTimesError(msg)
    try:
        return event.profile.start, event.profile.end
    except cl.Error as error:
        msg = f"event: the driver does not tell its times ({error}); give seconds"
        raise InputError(msg) from error
