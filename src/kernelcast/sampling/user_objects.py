"""Takes the caller's own kernel and queue: what they are made of, and whether they fit together."""

import threading
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, cast

from cachetools import LRUCache

from kernelcast.records.errors import EventTimesError, InputError
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.discovery import describe_device, read_dialect
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession, open_session

UserKernel: TypeAlias = cl.Kernel
UserQueue: TypeAlias = cl.CommandQueue
UserProgram: TypeAlias = cl.Program
UserDevice: TypeAlias = cl.Device
UserEvent: TypeAlias = cl.Event

_sessions: LRUCache[tuple[int, int], DeviceSession] = LRUCache(8)
_sessions_lock = threading.Lock()


def check_objects(kernel: object, queue: object) -> None:
    if not isinstance(kernel, cl.Kernel):
        msg = (
            f"kernel: {type(kernel).__name__} given; give a pyopencl.Kernel, such as "
            "pyopencl.Kernel(program, name). kernelcast.estimate_problem takes problem files"
        )
    elif not isinstance(queue, cl.CommandQueue):
        msg = (
            f"queue: {type(queue).__name__} given; give a pyopencl.CommandQueue of the kernel's "
            "context and the device to predict for"
        )
    elif (context := ask_context(queue, cl.command_queue_info.CONTEXT)) is None:
        msg = (
            "queue: its context is gone; keep the pyopencl.Context alive as long as its queues "
            "are used"
        )
    elif ask_context(kernel, cl.kernel_info.CONTEXT) != context:
        msg = (
            f"kernel {kernel.function_name}: the queue belongs to another context; give a queue "
            "of the context that the kernel's program was made in"
        )
    else:
        return
    raise InputError(msg)


def ask_context(
    owner: cl.Kernel | cl.CommandQueue | cl.MemoryObjectHolder | cl.Sampler,
    info: cl.kernel_info | cl.command_queue_info | cl.mem_info | cl.sampler_info,
) -> cl.Context | None:
    """Give the context of an object; None where the driver does not know it any more."""
    try:
        return cast("cl.Context", owner.get_info(info))  # type: ignore[arg-type]  # each its own
    except cl.Error:
        return None


def session_of(queue: cl.CommandQueue, folder: Path | None = None) -> DeviceSession:
    """Give the session of a queue's context and device; the last few are kept."""
    context, device = queue.context, queue.device
    key = (context.int_ptr, device.int_ptr)
    with _sessions_lock:
        session = _sessions.get(key)
        if session is None:
            session = open_session(describe_device(device), device, folder, context=context)
            _sessions[key] = session
    return session


def name_device(queue: object) -> str:
    """Give the id of a queue's device; nothing where it is no queue or the driver cannot tell."""
    with suppress(cl.Error):
        return describe_device(queue.device).id if isinstance(queue, cl.CommandQueue) else ""
    return ""


def read_kernel(
    kernel: cl.Kernel,
    device: cl.Device,
    *,
    source: str | None,
    options: str | Sequence[str] | None,
) -> Kernel:
    """Take source and build options from a kernel's program, unless they are given."""
    name = kernel.function_name
    if source is not None and not isinstance(cast("object", source), str):
        msg = f"kernel {name}: source: {type(source).__name__} given; give OpenCL C as a str"
        raise InputError(msg)
    program, text = None, source
    with suppress(cl.Error):  # Intel's runtime (2026.22) forgets one that nobody holds
        program = cast("cl.Program | None", kernel.get_info(cl.kernel_info.PROGRAM))
    if program is not None and not text:
        text = ""
        with suppress(cl.Error):  # the standard leaves open what programs made of binaries answer
            text = str(program.get_info(cl.program_info.SOURCE) or "").strip("\0")
        if not text.strip():  # else whole, so that messages name the caller's lines
            text = ""
            with suppress(TypeError):  # of a wrapper that was never told
                # A program from pyopencl's binary cache has none; the kernel's wrapper remembers.
                text = getattr(kernel, "_source", None)
    if not text:
        reason = "holds no source, as programs made from binaries do"
        if program is None:
            reason = "is gone, and its source with it: keep the pyopencl.Program beside its kernel"
        raise InputError(
            f"kernel {name}: its program {reason}; or give the OpenCL C as source=..., and what it "
            "is built with as build_options=..."
        )
    if options is None and program is not None:
        info = cl.program_build_info.OPTIONS
        options = cast("str", program.get_build_info(device, info))  # type: ignore[no-untyped-call]  # pyopencl leaves it untyped
    listed = options.split() if isinstance(options, str) else options or ()
    dialect = read_dialect(device)
    return _make_kernel(name=name, source=text, build_options=tuple(listed), dialect=dialect)


_make_kernel = lru_cache(maxsize=64)(Kernel)  # its digest is made once
_KEPT = "_kernelcast_name"


def name_kernel(kernel: cl.Kernel, queue: cl.CommandQueue) -> tuple[object, Hashable]:
    """Give a kernel's program and name on a device, kept by the object: runtimes do not rebuild a
    program that has kernels, and asking takes a tenth of an answer."""
    place = queue.context.int_ptr, queue.device.int_ptr
    kept = vars(kernel).get(_KEPT)
    if kept is None or kept[0] != place:
        program, key, options = None, None, None
        with suppress(cl.Error):
            program = kernel.program
            key = program.int_ptr
            options = program.get_build_info(queue.device, cl.program_build_info.OPTIONS)
        kept = place, program, (key, kernel.function_name, options, place)
        vars(kernel)[_KEPT] = kept
    return kept[1:]


def read_event_times(given: object, device_id: str, queue: object = None) -> float:
    """Wait for a launch's events; give the seconds from first start to last end."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    events = [one for one in listed if isinstance(one, cl.Event)]
    if len(events) < len(listed) or not events:
        what = next((type(x).__name__ for x in listed if not isinstance(x, cl.Event)), "no event")
        raise InputError(
            f"measured time: {what} given; give a number of seconds, or the launch's pyopencl.Event"
        )
    times = [_read_times(one, device_id, queue) for one in events]
    return (max(end for _, end in times) - min(start for start, _ in times)) * 1e-9


def _read_times(event: cl.Event, device_id: str, queue: object) -> tuple[int, int]:
    """Give when a launch has started and ended, in nanoseconds of its device's timer."""
    if event.command_type not in {cl.command_type.NDRANGE_KERNEL, cl.command_type.TASK}:
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
        raise InputError(
            "event: its queue keeps no times; make the queue with "
            "pyopencl.command_queue_properties.PROFILING_ENABLE, or give seconds"
        )
    if not session_of(own).uses_event_timer:
        raise EventTimesError(
            f"event: those of {device_id} tell wrong times, as the column timer of `kernelcast "
            "devices` says; finish the queue before and after the launch, and give the seconds "
            "between by the host's clock"
        )
    try:
        return event.profile.start, event.profile.end
    except cl.Error as error:
        msg = f"event: the driver does not tell its times ({error}); give seconds"
        raise InputError(msg) from error
