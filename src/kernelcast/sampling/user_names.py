"""Names launches of the caller's own objects: those asked again are told without a description."""

import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kernelcast.sampling.opencl import cl


def find_program(kernel: cl.Kernel, queue: cl.CommandQueue) -> tuple[object, Hashable]:
    """Give a kernel's program, and a name of the kernel that is its own while the program is held.

    `program.NAME` makes another object of the same kernel each time; a program may be built anew
    with other options.

    Raises
    ------
    pyopencl.Error
        If the program has been released.
    """
    program = kernel.program
    options: object = program.get_build_info(queue.device, cl.program_build_info.OPTIONS)
    return program, (program.int_ptr, kernel.function_name, options)


def name_place(queue: cl.CommandQueue) -> tuple[int, int]:
    """Name the context and the device of a queue; theirs alone while the context is held."""
    return queue.context.int_ptr, queue.device.int_ptr


def name_arguments(values: Sequence[Any]) -> tuple[Hashable, ...] | None:
    """Name arguments by memory objects and sizes, scalars by types and bytes.

    Parameters
    ----------
    values : sequence
        As the caller gave them.

    Returns
    -------
    tuple or None
        Equal for equal arguments, whatever buffers hold. None where one is of a kind that has to
        be looked at anew each time: an image, a sampler, memory of a pool, shared memory.
    """
    found: list[Hashable] = []
    for one in values:
        if type(one) is cl.Buffer:
            found.append((one.int_ptr, one.size))
        elif isinstance(one, np.generic | np.ndarray):
            found.append((one.dtype.str, one.tobytes()))
        elif one is None:
            found.append(None)
        elif isinstance(one, cl.LocalMemory):
            found.append(one.size)
        elif (memory := _find_memory(one)) is not None:
            found.append((memory.int_ptr, memory.size, one.offset))
        else:
            return None
    return tuple(found)


def _find_memory(value: Any) -> cl.Buffer | None:  # noqa: ANN401 - whatever was given
    """Give the buffer of an array of pyopencl's; None of everything else."""
    module = sys.modules.get("pyopencl.array")
    if module is None or not isinstance(value, module.Array):
        return None
    memory = value.base_data
    return memory if type(memory) is cl.Buffer else None
