"""Names launches of the caller's own objects: those asked again are told without a description."""

import sys
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from kernelcast.sampling.opencl import cl

_KEPT = "_kernelcast_name"


def name_kernel(kernel: cl.Kernel, queue: cl.CommandQueue) -> tuple[object, Hashable]:
    """Give a kernel's program, and a name of the kernel on a queue's device.

    The name is its own while the program is held. `program.NAME` makes another object of the same
    kernel each time, each of which keeps its name: runtimes refuse to build a program anew while
    it has kernels, and asking for program and options takes a tenth of an answer.

    Raises
    ------
    pyopencl.Error
        If the program has been released.
    """
    place = queue.context.int_ptr, queue.device.int_ptr
    kept = vars(kernel).get(_KEPT)
    if kept is None or kept[0] != place:
        program = kernel.program
        options: object = program.get_build_info(queue.device, cl.program_build_info.OPTIONS)
        name = program.int_ptr, kernel.function_name, options, place
        kept = vars(kernel)[_KEPT] = place, program, name
    return kept[1:]


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
        elif isinstance(one, np.generic):
            found.append((type(one), one.tobytes()))
        elif isinstance(one, np.ndarray):
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
