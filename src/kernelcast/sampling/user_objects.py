"""Takes the caller's own kernel and queue: what they are made of, and whether they fit together."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from ctypes import c_bool, c_int32, c_size_t
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, cast

from cachetools import LRUCache

from kernelcast.records.dialect import Dialect
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.building import read_build_options
from kernelcast.sampling.discovery import describe_device, read_dialect
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.parameters import Parameter
from kernelcast.sampling.session import DeviceSession, session_in

UserKernel: TypeAlias = cl.Kernel
UserQueue: TypeAlias = cl.CommandQueue
UserProgram: TypeAlias = cl.Program

_sessions: LRUCache[tuple[int, int], DeviceSession] = LRUCache(8)
_sessions_lock = threading.Lock()


def check_objects(kernel: object, queue: object) -> None:
    """Check that a kernel and a queue are what they should be, and of one context.

    Raises
    ------
    InputError
        If they are something else, of two contexts, or of a context that is gone.
    """
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
    elif (context := _ask_context(queue, cl.command_queue_info.CONTEXT)) is None:
        msg = (
            "queue: its context is gone; keep the pyopencl.Context alive as long as its queues "
            "are used"
        )
    elif _ask_context(kernel, cl.kernel_info.CONTEXT) != context:
        msg = (
            f"kernel {kernel.function_name}: the queue belongs to another context; give a queue "
            "of the context that the kernel's program was made in"
        )
    else:
        return
    raise InputError(msg)


# Where pyopencl's objects (2024.2.7 to 2026.1.4) hold a memory object's handle, and from there
# whether it was not released; nanobind says in each Python object where the C++ object begins.
_HANDLE_PLACE, _MEMORY_FLAG, _POOLED_FLAG = 16, -8, 16


def was_released(memory: cl.MemoryObjectHolder) -> bool:
    """Tell whether `release` was called of a memory object; no driver is asked.

    A driver that is asked for a handle that is gone ends the process, and pyopencl shows its note
    of a release by nothing but another one, which would release what was not.
    """
    handle, kind = memory.int_ptr, type(memory)
    offset = c_int32.from_address(id(memory) + object.__basicsize__).value
    if not 0 < offset < kind.__basicsize__:
        return False
    content = id(memory) + offset  # or a pointer to it
    for start in (content, c_size_t.from_address(content).value):
        place = start + _HANDLE_PLACE
        if c_size_t.from_address(place).value == handle:
            flag = _MEMORY_FLAG if isinstance(memory, cl.MemoryObject) else _POOLED_FLAG
            return not c_bool.from_address(place + flag).value
    return False


def check_context(parameter: Parameter, value: object, session: DeviceSession) -> None:
    """Refuse memory and samplers of another context than the queue's."""
    if isinstance(value, cl.MemoryObjectHolder):
        own = _ask_context(value, cl.mem_info.CONTEXT)
    elif isinstance(value, cl.Sampler):
        own = _ask_context(value, cl.sampler_info.CONTEXT)
    else:
        return
    if own != session.context:  # a context that the driver has forgotten is not the session's
        msg = (
            f"argument {parameter}: a {type(value).__name__} of another context given; create it "
            "in the queue's context"
        )
        raise InputError(msg)


def _ask_context(
    owner: cl.Kernel | cl.CommandQueue | cl.MemoryObjectHolder | cl.Sampler,
    info: cl.kernel_info | cl.command_queue_info | cl.mem_info | cl.sampler_info,
) -> cl.Context | None:
    """Give the context of an object; None where the driver does not know it any more."""
    try:
        return cast("cl.Context", owner.get_info(info))  # type: ignore[arg-type]  # each its own
    except cl.Error:
        return None


def session_of(queue: cl.CommandQueue, folder: Path | None = None) -> DeviceSession:
    """Give the session of a queue's context and device; the last few are kept.

    Measurements run on a queue of our own in the same context. Programs, and what is found out
    about the device, are kept for other processes in the folder.
    """
    context, device = queue.context, queue.device
    key = (context.int_ptr, device.int_ptr)
    with _sessions_lock:
        session = _sessions.get(key)
        if session is None:
            session = session_in(context, describe_device(device), device, folder)
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
    """Take source and build options from a kernel's program.

    Parameters
    ----------
    source : str or None
        OpenCL C, where the program has none (it was made from a binary) or is gone.
    options : str, sequence of str or None
        Build options, where the program's own are not wanted; none of a program that is gone.

    Raises
    ------
    InputError
        If the program has no source, or is gone, and none is given.
    """
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
        msg = (
            f"kernel {name}: its program {reason}; or give the OpenCL C as source=..., and what it "
            "is built with as build_options=..."
        )
        raise InputError(msg)
    if options is None:
        options = () if program is None else read_build_options(program, device)
    elif isinstance(options, str):
        options = options.split()
    return _make_kernel(name, text, tuple(options), read_dialect(device))


@lru_cache(maxsize=64)
def _make_kernel(name: str, source: str, options: tuple[str, ...], dialect: Dialect) -> Kernel:
    """Make a kernel, whose digest is then known the next time."""
    return Kernel(name=name, source=source, build_options=options, dialect=dialect)
