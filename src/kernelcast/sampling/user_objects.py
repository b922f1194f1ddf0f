"""Takes the caller's own kernel, queue, arguments and events: what they are made of, and whether
they fit together; refuses what the driver would misread.
"""

import hashlib
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from ctypes import c_bool, c_int32, c_size_t
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import xxhash
from cachetools import LRUCache

from kernelcast.records.arguments import (
    Argument,
    ElementType,
    HeldBuffer,
    LocalArgument,
    Parameter,
    ScalarArgument,
)
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import EventTimesError, InputError, SignatureError
from kernelcast.records.kernel import Kernel
from kernelcast.sampling.arguments import is_image
from kernelcast.sampling.discovery import describe_device, read_dialect
from kernelcast.sampling.opencl import cl, mapped_memory
from kernelcast.sampling.scratch import KernelArgument, can_be_copied, locate
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
    program, text = None, source or ""
    with suppress(cl.Error):  # Intel's runtime (2026.22) forgets one that nobody holds
        program = cast("cl.Program | None", kernel.get_info(cl.kernel_info.PROGRAM))
    if program is not None and not text:
        with suppress(cl.Error):  # the standard leaves open what programs made of binaries answer
            text = str(program.get_info(cl.program_info.SOURCE) or "").strip("\0")
        if not text.strip():  # else whole, so that messages name the caller's lines
            with suppress(TypeError):  # of a wrapper that was never told
                # A program from pyopencl's binary cache has none; the kernel's wrapper remembers.
                text = getattr(kernel, "_source", None) or ""
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


def name_kernel(kernel: cl.Kernel, queue: cl.CommandQueue) -> tuple[object, Hashable]:
    """Give a kernel's program, and its name on a device while that program is held."""
    program, key, options = None, None, None
    with suppress(cl.Error):
        program = kernel.program
        key = program.int_ptr
        options = program.get_build_info(queue.device, cl.program_build_info.OPTIONS)
    place = queue.context.int_ptr, queue.device.int_ptr
    return program, (key, kernel.function_name, options, place)


def read_event_times(given: object, device_id: str, queue: object = None) -> float:
    """Wait for a launch's events; give the seconds from first start to last end."""
    listed = list(given) if isinstance(given, list | tuple) else [given]
    events = [one for one in listed if isinstance(one, cl.Event)]
    if len(events) < len(listed) or not events:
        what = next((type(x).__name__ for x in listed if not isinstance(x, cl.Event)), "no event")
        raise InputError(
            f"measured time: {what} given; give a number of seconds, or the launch's pyopencl.Event"
        )
    starts, ends = [], []
    for event in events:
        if event.command_type not in {cl.command_type.NDRANGE_KERNEL, cl.command_type.TASK}:
            raise InputError(
                "event: of a copy or another command than a kernel's launch; give the launch's "
                "event"
            )
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
            starts.append(event.profile.start)
            ends.append(event.profile.end)
        except cl.Error as error:
            msg = f"event: the driver does not tell its times ({error}); give seconds"
            raise InputError(msg) from error
    return (max(ends) - min(starts)) * 1e-9


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
        if found := locate(value):
            parent, first = found
            spans[place] = parent.int_ptr, first, first + value.size
        else:
            flags = cl.map_flags.READ
            with session.lock, mapped_memory(session.queue, value, 1, flags) as mapped:
                start = mapped.ctypes.data
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


def _find_wanted(parameter: Parameter, element: ElementType | None, value: object) -> str:
    """Name what a parameter takes where that is not what is given; empty where it is."""
    # Types of objects that fit; none where a value is passed.
    types: tuple[type, ...] = ()
    if not parameter.is_known:
        types = (cl.MemoryObjectHolder, cl.LocalMemory, cl.Sampler, np.generic, np.ndarray,
                 type(None))  # fmt: skip
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
    if types:
        fits = isinstance(value, types)
    elif isinstance(value, np.ndarray | np.void):  # lanes
        fits = element is not None and value.nbytes == element.bytes
    else:
        fits = isinstance(value, np.generic) and (
            element is not None and element.lanes == 1 and value.dtype == element.dtype
        )
    return "" if fits else wanted


def describe_argument(
    session: DeviceSession, parameter: Parameter, value: KernelArgument, *, is_decisive: bool
) -> Argument:
    """Describe what a caller gives for a parameter, checked because pyopencl hands over an int32 as
    a float's bits; of structures and images, only what tells them apart. The work depends on a
    decisive buffer's content."""
    if isinstance(value, cl.SVMPointer):
        raise SignatureError(
            f"argument {parameter}: shared virtual memory given; its content cannot be kept "
            "unchanged while sampling. Give a pyopencl.Buffer"
        )
    element = ElementType.from_opencl(parameter.type_name.rstrip("* "))
    is_memory = isinstance(value, cl.MemoryObjectHolder)
    is_buffer = isinstance(value, cl.Buffer)
    is_written_image = is_memory and not is_buffer and not parameter.is_const
    if is_written_image and not can_be_copied(value):
        raise SignatureError(
            f"argument {parameter}: an image that the kernel may write, and that cannot be "
            "copied; give a 2-D or 3-D image of its own memory, or a pyopencl.Buffer"
        )
    if wanted := _find_wanted(parameter, element, value):
        given = type(value).__name__
        raise SignatureError(f"argument {parameter}: {given} given; give a {wanted}")
    has_context = is_memory or isinstance(value, cl.Sampler)
    info = cl.mem_info.CONTEXT if is_memory else cl.sampler_info.CONTEXT
    # A context that the driver has forgotten is not the session's.
    if has_context and ask_context(value, info) != session.context:
        raise InputError(
            f"argument {parameter}: a {type(value).__name__} of another context given; create "
            "it in the queue's context"
        )
    if is_buffer:
        return hold_buffer(session, value, element or _BYTE, is_decisive=is_decisive)
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
                f"argument {parameter}: {len(raw)} bytes given; give all {parameter.value_bytes}"
            )
    elif isinstance(value, cl.Image):
        raw = repr((value.format, value.width, value.height, value.depth)).encode()
    if element is not None and element.lanes > 1 and len(raw) == element.bytes:
        lanes = np.frombuffer(raw, dtype=element.dtype)[: element.lanes]
        return ScalarArgument(element=element, values=tuple(lanes.tolist()))
    return HeldBuffer(element=_BYTE, count=0, digest=hashlib.sha256(raw).hexdigest())


MOST_HELD_BYTES: Final = 2**26
"""Of larger buffers, pieces all over tell contents apart: to read all might take longer than to
sample."""
_PIECE_BYTES = 2**20


def hold_buffer(
    session: DeviceSession, buffer: cl.Buffer, element: ElementType, *, is_decisive: bool
) -> HeldBuffer:
    """Describe a caller's buffer: a decisive one is hashed, or pieces all over it; its content is
    copied once if it is asked for."""
    size, digest = buffer.size, ""
    if is_decisive:
        is_mapped, is_whole = session.description.kind is DeviceKind.CPU, size <= MOST_HELD_BYTES
        most = size if is_mapped and is_whole else min(size, _PIECE_BYTES)
        starts = range(0, size, most)
        if not is_whole:
            starts = np.linspace(0, size - most, MOST_HELD_BYTES // most).astype(int).tolist()
        found = hashlib.sha256() if size <= 2**20 else xxhash.xxh3_128()
        # In the same memory: to get that much anew takes longer than to read and hash it.
        copy = np.empty(0 if is_mapped else most, dtype=np.uint8)
        queue, flags = session.queue, cl.map_flags.READ
        with session.lock:
            for start in starts:
                length = min(most, size - start)
                if is_mapped:
                    with mapped_memory(queue, buffer, length, flags, first_byte=start) as mapped:
                        found.update(mapped.data)
                else:
                    cl.enqueue_copy(queue, copy[:length], buffer, src_offset=start)
                    found.update(copy[:length].data)
        digest = found.hexdigest()

    @cache
    def read() -> npt.NDArray[np.generic]:
        content = np.empty(size, dtype=np.uint8)
        cl.enqueue_copy(session.queue, content, buffer)
        return content

    if size % element.bytes:  # the last bytes count where overruns are looked for
        element = _BYTE
    return HeldBuffer(
        element=element,
        count=size // element.bytes,
        digest=digest,
        read=read if size <= MOST_HELD_BYTES else None,
    )
