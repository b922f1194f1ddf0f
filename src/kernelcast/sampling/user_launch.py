"""Launches made of the caller's own pyopencl objects."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import Access, ElementType, HeldBuffer
from kernelcast.records.errors import InputError, SignatureError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.building import Parameter, read_build_options
from kernelcast.sampling.discovery import describe_device
from kernelcast.sampling.launch import OpenCLLaunch, check_launch
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch import KernelArgument
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_count, infer_access
from kernelcast.sampling.trial import try_device

UserKernel: TypeAlias = cl.Kernel
UserQueue: TypeAlias = cl.CommandQueue

_SESSIONS_KEPT = 8
_MOST_HELD_BYTES = 2**26
_sessions: OrderedDict[tuple[int, int], DeviceSession] = OrderedDict()
_sessions_lock = threading.Lock()


def session_of(queue: cl.CommandQueue) -> DeviceSession:
    """Give the session of a queue's context and device; the last few are kept.

    Measurements run on a queue of our own in the same context.
    """
    context, device = queue.context, queue.device
    key = (context.int_ptr, device.int_ptr)
    with _sessions_lock:
        session = _sessions.get(key)
        if session is None:
            description = describe_device(device)
            timer = try_device(description, device)
            session = DeviceSession(description, context, device, uses_event_timer=timer.agrees)
            _sessions[key] = session
            while len(_sessions) > _SESSIONS_KEPT:
                _sessions.popitem(last=False)
        _sessions.move_to_end(key)
    return session


def read_kernel(
    kernel: cl.Kernel, device: cl.Device, *, source: str | None, options: Sequence[str] | None
) -> Kernel:
    """Take source and build options from a kernel's program.

    Parameters
    ----------
    kernel : pyopencl.Kernel
        The kernel.
    device : pyopencl.Device
        The device it was built for.
    source : str or None
        OpenCL C, where the program has none (it was made from a binary).
    options : sequence of str or None
        Build options, where the program's own are not wanted.

    Raises
    ------
    InputError
        If the program has no source and none is given, or was released already.
    """
    try:
        program = cast("cl.Program", kernel.get_info(cl.kernel_info.PROGRAM))
    except cl.Error as error:
        msg = (
            f"kernel {kernel.function_name}: its program has been released; keep the "
            "pyopencl.Program alive as long as its kernels are used"
        )
        raise InputError(msg) from error
    text = source or str(program.get_info(cl.program_info.SOURCE)).strip("\0 \n")
    if not text:
        # A program from pyopencl's binary cache has none; the kernel's wrapper remembers it.
        text = getattr(kernel, "_source", None) or ""
    if not text:
        msg = (
            f"kernel {kernel.function_name}: its program holds no source, as programs made from "
            "binaries do; give it as source=..."
        )
        raise InputError(msg)
    if options is None:
        options = read_build_options(program, device)
    return Kernel(name=kernel.function_name, source=text, build_options=tuple(options))


def list_buffer_bytes(values: Sequence[object]) -> dict[int, int]:
    """Give the bytes of a caller's buffers by their positions among the arguments."""
    return {n: one.size for n, one in enumerate(values) if isinstance(one, cl.Buffer)}


def hold_buffer(session: DeviceSession, value: object) -> HeldBuffer | None:
    """Describe a caller's buffer by its content, which is copied once if it is asked for.

    Parameters
    ----------
    session : DeviceSession
        Of the buffer's context.
    value : object
        An argument of the kernel.

    Returns
    -------
    HeldBuffer or None
        None for what is no buffer, or so large that to copy it might take longer than to sample.
    """
    if not isinstance(value, cl.Buffer) or value.size > _MOST_HELD_BYTES:
        return None

    @cache
    def read() -> npt.NDArray[np.generic]:
        content = np.empty(value.size, dtype=np.uint8)
        cl.enqueue_copy(session.queue, content, value)
        return content

    return HeldBuffer(read)


def prepare_user_launch(
    session: DeviceSession,
    kernel: Kernel,
    ndrange: NDRange,
    arguments: Sequence[KernelArgument],
    *,
    inferred: Sequence[Access | None],
) -> OpenCLLaunch:
    """Prepare a launch of the caller's buffers and scalars.

    Returns
    -------
    OpenCLLaunch
        A context manager; releases the scratch copies at its end.

    Raises
    ------
    SignatureError
        If the arguments do not fit the kernel, or are of a kind that cannot be kept unchanged.
    DeviceError
        If the launch does not fit the device.
    """
    built = session.whole_kernel(kernel)
    compiled, parameters = built.kernel, built.parameters
    check_count(kernel.name, parameters, len(arguments))
    accesses: list[Access | None] = []
    for parameter, argument, known in zip(parameters, arguments, inferred, strict=True):
        _check_kind(str(parameter), argument)
        _check_type(parameter, argument)
        is_buffer = isinstance(argument, cl.Buffer)
        accesses.append(infer_access(parameter, known) if is_buffer else None)
    chosen = choose_local_size(session, compiled, ndrange)
    check_launch(session, compiled, kernel, chosen)
    return OpenCLLaunch(session, kernel, chosen, arguments, accesses)


def _check_type(parameter: Parameter, argument: KernelArgument) -> None:
    """Refuse numbers for memory, memory for numbers, and numbers of another type.

    pyopencl hands over the bytes of whatever it is given: an int32 becomes a float of other value.
    """
    wanted = ElementType.from_opencl(parameter.type_name)
    is_value = parameter.address_space == "private" and not parameter.type_name.endswith("*")
    given = type(argument).__name__
    if not parameter.is_known:
        return
    if not is_value:
        if isinstance(argument, np.generic | np.ndarray | int | float):
            msg = f"argument {parameter}: {given} given; give a pyopencl.Buffer or LocalMemory"
            raise SignatureError(msg)
    elif wanted is None or (isinstance(argument, np.ndarray | np.void)):
        return  # a structure, a vector or a sampler: as the driver judges
    elif not isinstance(argument, np.generic) or argument.dtype != wanted.dtype or wanted.lanes > 1:
        msg = f"argument {parameter}: {given} given; give a {_name_type(wanted)}"
        raise SignatureError(msg)


def _name_type(element: ElementType) -> str:
    """Name the type of a value as Python programs write it."""
    if element.lanes == 1:
        return f"numpy.{element.dtype.name}"
    return f"vector of {element.lanes} numpy.{element.dtype.name} of pyopencl.cltypes"


def _check_kind(parameter: str, argument: KernelArgument) -> None:
    """Refuse what could be written without our noticing."""
    if isinstance(argument, cl.SVMPointer):
        msg = (
            f"argument {parameter}: shared virtual memory given; its content cannot be kept "
            "unchanged while sampling. Give a pyopencl.Buffer"
        )
        raise SignatureError(msg)
    if isinstance(argument, cl.MemoryObjectHolder) and not isinstance(argument, cl.Buffer):
        flags = argument.get_info(cl.mem_info.FLAGS)
        if not int(flags) & int(cl.mem_flags.READ_ONLY):  # type: ignore[call-overload]
            msg = (
                f"argument {parameter}: an image that the kernel may write; give one created "
                "with mem_flags.READ_ONLY, or a pyopencl.Buffer"
            )
            raise SignatureError(msg)
