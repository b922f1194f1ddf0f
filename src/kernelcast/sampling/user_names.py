"""Names kernels of the caller's own programs, and finds where arguments lie in memory."""

import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, cast

from kernelcast.sampling.opencl import cl

_KEPT = "_kernelcast_name"
Span: TypeAlias = tuple[int, int, int]
"""Where a buffer lies: the memory that it is a part of, first byte, and the one behind the last."""


def name_kernel(kernel: cl.Kernel, queue: cl.CommandQueue) -> tuple[object, Hashable]:
    """Give a kernel's program, and a name of the kernel on a queue's device.

    The name is its own while the program is held; one of a program that is gone, for its source.
    `program.NAME` makes another object of the same kernel each time, each of which keeps its name:
    runtimes refuse to build a program anew while it has kernels, and asking for program and options
    takes a tenth of an answer.
    """
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


def find_memory(value: Any) -> tuple[Any, int] | None:  # noqa: ANN401 - whatever was given
    """Find the memory of an argument, and its first byte there; None of what has none."""
    if isinstance(value, cl.MemoryObjectHolder):
        return value, 0
    module = sys.modules.get("pyopencl.array")  # without which there are no arrays
    if module is None or not isinstance(value, module.Array):
        return None
    return value.base_data, value.offset


def find_span(buffer: cl.Buffer, offset: int = 0) -> Span:
    """Find where a buffer lies, from an offset on.

    Raises
    ------
    pyopencl.LogicError
        If it is a part of a buffer that was released, and the driver does not know that any more.
    """
    parent = cast("cl.Buffer | None", buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT))
    first = 0 if parent is None else cast("int", buffer.get_info(cl.mem_info.OFFSET))
    return (parent or buffer).int_ptr, first + offset, first + buffer.size


def compare_spans(spans: Mapping[int, Span]) -> dict[int, tuple[tuple[int, int], ...]]:
    """Find which arguments overlap; values are those of `HeldBuffer.overlaps`."""
    overlaps = {}
    if len({memory for memory, *_ in spans.values()}) < len(spans):
        for place, (memory, first, end) in spans.items():
            shared = tuple(
                (other, first - start)
                for other, (owner, start, stop) in spans.items()
                if other < place and owner == memory and start < end and first < stop
            )
            if shared:
                overlaps[place] = shared
    return overlaps
