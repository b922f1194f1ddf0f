"""Takes the caller's own arguments of a launch, and refuses what the driver would misread."""

import hashlib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import (
    Argument,
    ElementType,
    HeldBuffer,
    LocalArgument,
    ScalarArgument,
)
from kernelcast.records.errors import SignatureError
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.parameters import Parameter
from kernelcast.sampling.scratch import KernelArgument
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import is_image
from kernelcast.sampling.user_objects import check_context

_MOST_HELD_BYTES = 2**26
_PIECE_BYTES = 2**20
_BYTE = ElementType("uint8")
_NO_SEQUENCES = (str, bytes, Mapping, np.ndarray, cl.MemoryObjectHolder, cl.LocalMemory)


def read_arguments(values: Any) -> tuple[KernelArgument, ...]:  # noqa: ANN401 - whatever was given
    """Give what is set as a kernel's arguments: buffers in the place of arrays.

    Parameters
    ----------
    values : sequence
        As the caller gave them.

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


def describe_arguments(
    session: DeviceSession,
    parameters: Sequence[Parameter],
    values: Sequence[KernelArgument],
    decisive: Collection[int],
) -> tuple[Argument, ...]:
    """Describe a caller's arguments without a change to them.

    Parameters
    ----------
    session : DeviceSession
        Of their context.
    parameters : sequence of Parameter
        Of the kernel, as many as values.
    values : sequence
        As `read_arguments` gives them.
    decisive : collection of int
        Positions of buffers on whose content the kernel's work depends: launches with other
        contents are other launches.

    Returns
    -------
    tuple of Argument
        Buffers as `HeldBuffer`; of structures and images nothing but what tells them apart.
    """
    return tuple(
        _describe(session, parameter, value, is_decisive=place in decisive)
        for place, (parameter, value) in enumerate(zip(parameters, values, strict=True))
    )


def _describe(
    session: DeviceSession, parameter: Parameter, value: KernelArgument, *, is_decisive: bool
) -> Argument:
    element = ElementType.from_opencl(parameter.type_name.rstrip("* ")) or _BYTE
    if value is None:
        return HeldBuffer(element=element, count=0)
    if isinstance(value, cl.LocalMemory):
        return LocalArgument(bytes=value.size)
    if isinstance(value, cl.Buffer):
        return hold_buffer(session, value, element, is_decisive=is_decisive)
    if isinstance(value, np.integer | np.floating):
        return ScalarArgument(element=ElementType(value.dtype.name), values=(value.item(),))
    raw = _name_bytes(value)
    if element.lanes > 1 and len(raw) == element.bytes:
        lanes = np.frombuffer(raw, dtype=element.dtype)[: element.lanes]
        return ScalarArgument(element=element, values=tuple(lanes.tolist()))
    return HeldBuffer(element=_BYTE, count=0, digest=hashlib.sha256(raw).hexdigest())


def _name_bytes(value: KernelArgument) -> bytes:
    """Give what tells structures, images and samplers apart."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tobytes()
    if isinstance(value, cl.Image):
        told = (value.format, value.width, value.height, value.depth)
        return repr(told).encode()
    return bytes(value) if isinstance(value, bytes) else type(value).__name__.encode()


def hold_buffer(
    session: DeviceSession, buffer: cl.Buffer, element: ElementType, *, is_decisive: bool
) -> HeldBuffer:
    """Describe a caller's buffer; its content is copied once if it is asked for.

    Parameters
    ----------
    session : DeviceSession
        Of the buffer's context.
    buffer : pyopencl.Buffer
        The buffer.
    element : ElementType
        Of the kernel's parameter.
    is_decisive : bool
        Whether the kernel's work depends on the content. Of one so large that to copy it might
        take longer than to sample, pieces all over tell contents apart.
    """
    read = _Content(session, buffer)
    is_small = buffer.size <= _MOST_HELD_BYTES
    digest = ""
    if is_decisive:
        digest = (
            hashlib.sha256(read().data).hexdigest() if is_small else digest_buffer(session, buffer)
        )
    if buffer.size % element.bytes:  # the last bytes count where overruns are looked for
        element = _BYTE
    return HeldBuffer(
        element=element,
        count=buffer.size // element.bytes,
        digest=digest,
        read=read if is_small else None,
    )


class _Content:
    """Copies what a buffer holds at the first call."""

    __slots__ = ("_buffer", "_content", "_session")

    def __init__(self, session: DeviceSession, buffer: cl.Buffer) -> None:
        self._session, self._buffer = session, buffer
        self._content: npt.NDArray[np.generic] | None = None

    def __call__(self) -> npt.NDArray[np.generic]:
        if self._content is None:
            self._content = _copy(self._session, self._buffer, 0, self._buffer.size)
        return self._content


def digest_buffer(session: DeviceSession, buffer: cl.Buffer) -> str:
    """Give what tells the content of a caller's buffer apart, as `hold_buffer` notes it.

    Piece by piece in the same memory: to get that much anew takes longer than to read and hash it.
    """
    found, piece = hashlib.sha256(), np.empty(min(_PIECE_BYTES, buffer.size), dtype=np.uint8)
    for start in _list_starts(buffer.size):
        part = piece[: buffer.size - start]
        cl.enqueue_copy(session.queue, part, buffer, src_offset=start)
        found.update(part.data)
    return found.hexdigest()


def _list_starts(size: int) -> list[int]:
    """Give where pieces begin: one behind the other, or all over a buffer that is too large."""
    if size <= _MOST_HELD_BYTES:
        return [*range(0, size, _PIECE_BYTES)]
    starts = np.linspace(0, size - _PIECE_BYTES, _MOST_HELD_BYTES // _PIECE_BYTES)
    return [int(one) for one in starts]


def _copy(
    session: DeviceSession, buffer: cl.Buffer, start: int, size: int
) -> npt.NDArray[np.generic]:
    content = np.empty(size, dtype=np.uint8)
    cl.enqueue_copy(session.queue, content, buffer, src_offset=start)
    return content


def check_argument(parameter: Parameter, argument: KernelArgument, session: DeviceSession) -> None:
    """Refuse an argument that does not fit its parameter, or cannot be kept unchanged.

    Raises
    ------
    SignatureError
        If it is of another kind or type.
    InputError
        If it belongs to another context.
    """
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
