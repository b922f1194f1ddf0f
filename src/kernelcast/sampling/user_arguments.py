"""Takes the caller's own arguments of a launch, and refuses what the driver would misread."""

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import c_bool, c_int32, c_size_t
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import xxhash

from kernelcast.records.arguments import (
    Argument,
    ElementType,
    HeldBuffer,
    LocalArgument,
    Parameter,
    ScalarArgument,
)
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, SignatureError
from kernelcast.sampling.opencl import cl, map_memory, unmap_memory
from kernelcast.sampling.scratch import KernelArgument, can_be_copied
from kernelcast.sampling.session import DeviceSession
from kernelcast.sampling.signature import is_image
from kernelcast.sampling.user_objects import ask_context, session_of

_BYTE = ElementType("uint8")
_FORGOTTEN = 0
_NO_SEQUENCES = (str, bytes, Mapping, np.ndarray, cl.LocalMemory)


# Where pyopencl's objects (2024.2.7 to 2026.1.4) hold a memory object's handle, and from there
# whether it was not released; nanobind says in each Python object where the C++ object begins.
_HANDLE_PLACE, _MEMORY_FLAG, _POOLED_FLAG = 16, -8, 16


def was_released(memory: cl.MemoryObjectHolder) -> bool:
    """Tell whether `release` was called, without the driver, which may end the process, and without
    another release, by which alone pyopencl shows it."""
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


def find_memory(value: Any) -> tuple[Any, int] | None:  # noqa: ANN401 - whatever was given
    """Find the memory of an argument, and its first byte there; None of what has none."""
    if isinstance(value, cl.MemoryObjectHolder):
        return value, 0
    module = sys.modules.get("pyopencl.array")  # without which there are no arrays
    if module is None or not isinstance(value, module.Array):
        return None
    return value.base_data, value.offset


def check_context(parameter: Parameter, value: object, session: DeviceSession) -> None:
    if isinstance(value, cl.MemoryObjectHolder):
        own = ask_context(value, cl.mem_info.CONTEXT)
    elif isinstance(value, cl.Sampler):
        own = ask_context(value, cl.sampler_info.CONTEXT)
    else:
        return
    if own != session.context:  # a context that the driver has forgotten is not the session's
        raise InputError(
            f"argument {parameter}: a {type(value).__name__} of another context given; create it "
            "in the queue's context"
        )


def list_arguments(values: Any) -> Sequence[Any]:  # noqa: ANN401 - whatever was given
    is_one = isinstance(values, _NO_SEQUENCES) or find_memory(values) is not None
    if is_one or not isinstance(values, Iterable):
        raise SignatureError(
            f"arguments: {type(values).__name__} given; give a sequence of the kernel's arguments "
            "in order, such as (buffer, numpy.int32(5))"
        )
    return values if isinstance(values, Sequence) else tuple(values)


def take_argument(name: object, value: Any) -> KernelArgument:  # noqa: ANN401 - whatever was given
    """Take an argument, `name` in messages, with a reference of our own to memory."""
    held = find_memory(value)
    if held is None:
        return value
    memory, offset = held
    given = type(memory).__name__ if value is memory else f"array of {type(memory).__name__}"
    if not isinstance(memory, cl.MemoryObjectHolder):
        what = "no memory" if memory is None else type(memory).__name__
        msg = f"argument {name}: an array of {what} given; give one that lies in a Buffer"
        raise SignatureError(msg)
    if was_released(memory):
        raise InputError(
            f"argument {name}: {given} given whose memory was released, by its release(); give one "
            "that is kept until the launch is answered"
        )
    # Another thread may release the caller's while we work.
    own = cast("cl.Buffer", cl.MemoryObject.from_int_ptr(memory.int_ptr))
    if not offset:
        return own
    try:
        return own.get_sub_region(offset, own.size - offset)
    except cl.Error as error:
        raise SignatureError(
            f"argument {name}: an array that begins at byte {offset:,} of its buffer, where the "
            f"device lets no sub-buffer begin ({error}); give a copy of it (array.copy())"
        ) from error


def find_overlaps(
    session: DeviceSession, values: Sequence[KernelArgument]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """Find which arguments share memory, see `HeldBuffer.overlaps`; refuse overlapping parts of a
    buffer that the driver has forgotten: no copy would be like that."""
    spans: dict[int, tuple[int, int, int]] = {}
    for place, value in enumerate(values):
        if not isinstance(value, cl.Buffer):
            continue
        try:
            parent = cast("cl.Buffer | None", value.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT))
            first = 0 if parent is None else cast("int", value.get_info(cl.mem_info.OFFSET))
            spans[place] = (parent or value).int_ptr, first, first + value.size
        except cl.LogicError:  # Intel's runtime (2026.22), of a parent that was released
            with session.lock:
                mapped = map_memory(session.queue, value, 1, cl.map_flags.READ)
                start = mapped.ctypes.data
                unmap_memory(session.queue, mapped)
            spans[place] = _FORGOTTEN, start, start + value.size
    overlaps = {}
    for place, (memory, first, end) in spans.items():
        shared = tuple(
            (other, first - start)
            for other, (owner, start, stop) in spans.items()
            if other < place and owner == memory and start < end and first < stop
        )
        if shared and memory == _FORGOTTEN:
            raise InputError(
                f"arguments {shared[0][0]} and {place}: parts that overlap given, of a buffer that "
                "was released; keep that buffer as long as its parts are used"
            )
        if shared:
            overlaps[place] = shared
    return overlaps


def copy_to_host(
    values: Sequence[Any], elements: Mapping[int, ElementType]
) -> tuple[list[Any], Callable[[Iterable[int]], None]]:
    """Copy what the caller's buffers hold, as elements by position or bytes; give the arguments
    with arrays for buffers, and what copies some of these back."""
    held = [take_argument(place, value) for place, value in enumerate(values)]
    copies: dict[int, tuple[DeviceSession, npt.NDArray[np.generic]]] = {}
    for place, value in enumerate(held):
        if isinstance(value, cl.LocalMemory):
            held[place] = LocalArgument(bytes=value.size)
        elif isinstance(value, cl.MemoryObjectHolder):
            if not isinstance(value, cl.Buffer):
                msg = f"argument {place}: {type(value).__name__} given; give a pyopencl.Buffer"
                raise InputError(msg)
            session = session_of(
                cl.CommandQueue(cast("cl.Context", value.get_info(cl.mem_info.CONTEXT)))
            )
            element = elements.get(place, _BYTE)
            is_whole = value.size % element.dtype.itemsize == 0
            array = np.empty(value.size, np.uint8).view(element.dtype if is_whole else np.uint8)
            copies[place] = session, array
            with session.lock:
                cl.enqueue_copy(session.queue, array, value)
    if copies:
        for place, ((other, _), *_) in find_overlaps(copies[min(copies)][0], held).items():
            msg = f"arguments {other} and {place} share memory; give buffers that lie apart"
            raise InputError(msg)

    def write_back(places: Iterable[int]) -> None:
        for place in copies.keys() & set(places):
            session, array = copies[place]
            with session.lock:
                cl.enqueue_copy(session.queue, held[place], array)

    return [copies[n][1] if n in copies else one for n, one in enumerate(held)], write_back


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArgumentPlace:
    """What a kernel takes as one of its arguments; made once by `find_place`, asked each time."""

    parameter: Parameter
    element: ElementType | None
    """Of a value, or of what a pointer points to; None where it has no name of OpenCL C's."""
    types: tuple[type, ...]
    """Of objects that fit; none where a value is passed."""
    wanted: str
    is_decisive: bool
    """Whether the kernel's work depends on the buffer's content, by which launches differ then."""

    def describe(self, session: DeviceSession, value: KernelArgument) -> Argument:
        """Describe a caller's argument; of structures and images, only what tells them apart."""
        parameter, element = self.parameter, self.element
        if isinstance(value, cl.SVMPointer):
            raise SignatureError(
                f"argument {parameter}: shared virtual memory given; its content cannot be kept "
                "unchanged while sampling. Give a pyopencl.Buffer"
            )
        is_image = isinstance(value, cl.MemoryObjectHolder) and not isinstance(value, cl.Buffer)
        if is_image and not parameter.is_const and not can_be_copied(value):
            raise SignatureError(
                f"argument {parameter}: an image that the kernel may write, and that cannot be "
                "copied; give a 2-D or 3-D image of its own memory, or a pyopencl.Buffer"
            )
        if self.types:
            fits = isinstance(value, self.types)
        elif isinstance(value, np.ndarray | np.void):  # lanes
            fits = element is not None and value.nbytes == element.bytes
        else:
            fits = isinstance(value, np.generic) and (
                element is not None and element.lanes == 1 and value.dtype == element.dtype
            )
        if not fits:
            given = type(value).__name__
            raise SignatureError(f"argument {parameter}: {given} given; give a {self.wanted}")
        check_context(parameter, value, session)
        if isinstance(value, cl.Buffer):
            return hold_buffer(session, value, element or _BYTE, is_decisive=self.is_decisive)
        if isinstance(value, np.integer | np.floating):
            return ScalarArgument(
                element=element or ElementType(value.dtype.name), values=(value.item(),)
            )
        if value is None:
            return HeldBuffer(element=element or _BYTE, count=0)
        if isinstance(value, cl.LocalMemory):
            return LocalArgument(bytes=value.size)
        raw = type(value).__name__.encode()  # what tells structures, images and samplers apart
        if isinstance(value, np.generic | np.ndarray | bytes):
            raw = value if isinstance(value, bytes) else value.tobytes()
            if parameter.value_bytes not in (0, len(raw)):
                raise SignatureError(
                    f"argument {parameter}: {len(raw)} bytes given; give all "
                    f"{parameter.value_bytes}"
                )
        elif isinstance(value, cl.Image):
            raw = repr((value.format, value.width, value.height, value.depth)).encode()
        if element is not None and element.lanes > 1 and len(raw) == element.bytes:
            lanes = np.frombuffer(raw, dtype=element.dtype)[: element.lanes]
            return ScalarArgument(element=element, values=tuple(lanes.tolist()))
        return HeldBuffer(element=_BYTE, count=0, digest=hashlib.sha256(raw).hexdigest())


def find_place(parameter: Parameter, *, is_decisive: bool) -> ArgumentPlace:
    """Find out what a kernel takes: pyopencl hands over an int32 as a float's bits."""
    element = ElementType.from_opencl(parameter.type_name.rstrip("* "))
    types: tuple[type, ...] = ()
    if not parameter.is_known:
        types = (
            cl.MemoryObjectHolder,
            cl.LocalMemory,
            cl.Sampler,
            np.generic,
            np.ndarray,
            type(None),
        )
        wanted = "pyopencl.Buffer, LocalMemory or NumPy scalar"
    elif parameter.address_space == "local":
        types, wanted = (cl.LocalMemory,), "pyopencl.LocalMemory"
    elif is_image(parameter):
        types, wanted = (cl.Image,), "pyopencl.Image"
    elif parameter.type_name == "sampler_t":
        types, wanted = (cl.Sampler,), "pyopencl.Sampler"
    elif parameter.type_name.endswith("*"):
        types, wanted = (cl.Buffer, type(None)), "pyopencl.Buffer or pyopencl.array.Array"
    elif element is None:  # a structure: as the driver judges, if it has bytes at all
        types = (np.generic, np.ndarray, bytes, cl.MemoryObjectHolder)
        wanted = "structure as a NumPy scalar (numpy.void)"
    else:
        wanted = f"numpy.{element.dtype.name}"
        if element.lanes > 1:
            wanted = f"vector of {element.lanes} {wanted} of pyopencl.cltypes"
    return ArgumentPlace(
        parameter=parameter, element=element, types=types, wanted=wanted, is_decisive=is_decisive
    )


def hold_buffer(
    session: DeviceSession, buffer: cl.Buffer, element: ElementType, *, is_decisive: bool
) -> HeldBuffer:
    """Describe a caller's buffer; its content is copied once if it is asked for."""
    digest = ""
    if is_decisive:
        with session.lock:
            digest = digest_buffer(session, buffer)

    @cache
    def read() -> npt.NDArray[np.generic]:
        content = np.empty(buffer.size, dtype=np.uint8)
        cl.enqueue_copy(session.queue, content, buffer)
        return content

    if buffer.size % element.bytes:  # the last bytes count where overruns are looked for
        element = _BYTE
    return HeldBuffer(
        element=element,
        count=buffer.size // element.bytes,
        digest=digest,
        read=read if buffer.size <= MOST_HELD_BYTES else None,
    )


MOST_HELD_BYTES: Final = 2**26
"""Of larger buffers, pieces all over tell contents apart: to read all might take longer than to
sample."""
_PIECE_BYTES = 2**20


def digest_buffer(session: DeviceSession, buffer: cl.Buffer) -> str:
    """Hash a buffer, or pieces all over it if it is too large to read all."""
    size, is_mapped = buffer.size, session.description.kind is DeviceKind.CPU
    is_whole = size <= MOST_HELD_BYTES
    most = size if is_mapped and is_whole else min(size, _PIECE_BYTES)
    starts = range(0, size, most)
    if not is_whole:
        starts = np.linspace(0, size - most, MOST_HELD_BYTES // most).astype(int).tolist()
    found = hashlib.sha256() if size <= 2**20 else xxhash.xxh3_128()
    # In the same memory: to get that much anew takes longer than to read and hash it.
    copy = np.empty(0 if is_mapped else most, dtype=np.uint8)
    for start in starts:
        length = min(most, size - start)
        if is_mapped:
            mapped = map_memory(session.queue, buffer, length, cl.map_flags.READ, first_byte=start)
            try:
                found.update(mapped.data)
            finally:
                unmap_memory(session.queue, mapped)
        else:
            cl.enqueue_copy(session.queue, copy[:length], buffer, src_offset=start)
            found.update(copy[:length].data)
    return found.hexdigest()
