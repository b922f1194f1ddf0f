"""Takes the caller's own arguments of a launch, and refuses what the driver would misread."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import Access, ElementType, HeldBuffer
from kernelcast.records.errors import SignatureError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.sampling.building import Parameter
from kernelcast.sampling.launch import OpenCLLaunch, check_launch
from kernelcast.sampling.local_size import choose_local_size
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch import KernelArgument
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import check_count, infer_access, is_image
from kernelcast.sampling.user_objects import check_context

_MOST_HELD_BYTES = 2**26
_NO_SEQUENCES = (str, bytes, Mapping, np.ndarray, cl.MemoryObjectHolder, cl.LocalMemory)


def read_arguments(values: Any) -> tuple[KernelArgument, ...]:  # noqa: ANN401 - whatever was given
    """Give what is set as a kernel's arguments: buffers in the place of arrays.

    Raises
    ------
    SignatureError
        If they are no sequence, or an array has no buffer that a kernel could be given.
    """
    if isinstance(values, _NO_SEQUENCES) or _is_array(values) or not isinstance(values, Iterable):
        msg = (
            f"arguments: {type(values).__name__} given; give a sequence of the kernel's arguments "
            "in order, such as (buffer, numpy.int32(5))"
        )
        raise SignatureError(msg)
    return tuple(_take_buffer(place, value) for place, value in enumerate(values))


def _is_array(value: object) -> bool:
    """Tell pyopencl's arrays; nobody has one who has not imported their module."""
    module = sys.modules.get("pyopencl.array")
    return module is not None and isinstance(value, module.Array)


def _take_buffer(place: int, value: Any) -> KernelArgument:  # noqa: ANN401 - whatever was given
    """Give the buffer of an array, from its first element on, and of a memory pool's handle."""
    offset = 0
    if _is_array(value):
        offset, value = value.offset, value.base_data
        if not isinstance(value, cl.MemoryObjectHolder):
            what = "no memory" if value is None else type(value).__name__
            msg = f"argument {place}: an array of {what} given; give one that lies in a Buffer"
            raise SignatureError(msg)
    if isinstance(value, cl.MemoryObjectHolder) and not isinstance(value, cl.Buffer):
        if value.get_info(cl.mem_info.TYPE) != cl.mem_object_type.BUFFER:
            return value
        value = cl.Buffer.from_int_ptr(value.int_ptr)
    if not offset:
        return value
    try:
        return value.get_sub_region(offset, value.size - offset)
    except cl.Error as error:
        msg = (
            f"argument {place}: an array that begins at byte {offset:,} of its buffer, where the "
            f"device lets no sub-buffer begin ({error}); give a copy of it (array.copy())"
        )
        raise SignatureError(msg) from error


def list_buffer_bytes(values: Sequence[object]) -> dict[int, int]:
    """Give the bytes of buffers by their positions among the arguments; None has none."""
    return {
        place: one.size if isinstance(one, cl.Buffer) else 0
        for place, one in enumerate(values)
        if one is None or isinstance(one, cl.Buffer)
    }


def hold_buffer(session: DeviceSession, value: object) -> HeldBuffer | None:
    """Describe a caller's buffer by its content, which is copied once if it is asked for.

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


def check_argument(parameter: Parameter, argument: KernelArgument, session: DeviceSession) -> None:
    """Refuse an argument that does not fit its parameter, or cannot be kept unchanged."""
    _check_kind(str(parameter), argument)
    wanted = _name_other_kind(parameter, argument)
    if wanted:
        msg = f"argument {parameter}: {type(argument).__name__} given; give a {wanted}"
        raise SignatureError(msg)
    check_context(str(parameter), argument, session)


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


def _name_other_kind(parameter: Parameter, argument: KernelArgument) -> str:
    """Name what a parameter takes where the argument is something else; nothing where it fits.

    pyopencl hands over the bytes of whatever it is given: an int32 becomes a float of other value.
    """
    if not parameter.is_known:
        is_some = cl.MemoryObjectHolder, cl.LocalMemory, cl.Sampler, np.generic, np.ndarray
        fits = argument is None or isinstance(argument, is_some)
        return "" if fits else "pyopencl.Buffer, LocalMemory or NumPy scalar"
    if parameter.address_space == "local":
        return "" if isinstance(argument, cl.LocalMemory) else "pyopencl.LocalMemory"
    if is_image(parameter):
        return "" if isinstance(argument, cl.Image) else "pyopencl.Image"
    if parameter.type_name == "sampler_t":
        return "" if isinstance(argument, cl.Sampler) else "pyopencl.Sampler"
    if parameter.type_name.endswith("*"):
        fits = argument is None or isinstance(argument, cl.Buffer)
        return "" if fits else "pyopencl.Buffer or pyopencl.array.Array"
    wanted = ElementType.from_opencl(parameter.type_name)
    return _name_other_value(wanted, argument)


def _name_other_value(wanted: ElementType | None, argument: KernelArgument) -> str:
    if wanted is None:  # a structure: as the driver judges, if it has bytes at all
        fits = isinstance(argument, np.generic | np.ndarray | bytes | cl.MemoryObjectHolder)
        return "" if fits else "structure as a NumPy scalar (numpy.void)"
    if isinstance(argument, np.ndarray | np.void):
        return "" if argument.nbytes == wanted.bytes else _name_type(wanted)
    fits = isinstance(argument, np.generic) and argument.dtype == wanted.dtype and wanted.lanes == 1
    return "" if fits else _name_type(wanted)


def _name_type(element: ElementType) -> str:
    """Name the type of a value as Python programs write it."""
    if element.lanes == 1:
        return f"numpy.{element.dtype.name}"
    return f"vector of {element.lanes} numpy.{element.dtype.name} of pyopencl.cltypes"


def choose_user_ndrange(
    session: DeviceSession,
    kernel: Kernel,
    ndrange: NDRange,
    arguments: Sequence[KernelArgument],
) -> NDRange:
    """Check a launch of the caller's buffers and scalars, and choose its local size."""
    built = session.whole_kernel(kernel)
    check_count(kernel.name, built.parameters, len(arguments))
    for parameter, argument in zip(built.parameters, arguments, strict=True):
        check_argument(parameter, argument, session)
    chosen = choose_local_size(session, built.kernel, ndrange)
    check_launch(session, built.kernel, kernel, chosen)
    return chosen


def prepare_user_launch(
    session: DeviceSession,
    kernel: Kernel,
    ndrange: NDRange,
    arguments: Sequence[KernelArgument],
    *,
    inferred: Sequence[Access | None],
) -> OpenCLLaunch:
    """Prepare a launch that `choose_user_ndrange` has found right.

    Returns
    -------
    OpenCLLaunch
        A context manager; releases the scratch copies at its end.
    """
    parameters = session.whole_kernel(kernel).parameters
    accesses = [
        infer_access(parameter, known) if isinstance(argument, cl.Buffer) else None
        for parameter, argument, known in zip(parameters, arguments, inferred, strict=True)
    ]
    return OpenCLLaunch(session, kernel, ndrange, arguments, accesses)
