"""The one place that imports pyopencl: the loader must be prepared before the first import.

`cl` is pyopencl, but for the few classes and functions of `_SHARED`: those make, and take, objects
of another driver too (`kernelcast.sampling.cuda`), by the object that they are given first.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelcast.sampling.runtimes import ensure_vendors

ensure_vendors()

import pyopencl  # noqa: E402 - see above

if TYPE_CHECKING:
    import pyopencl as cl

__all__ = ["OtherDriver", "cl", "enqueue_native"]

enqueue_native = pyopencl.enqueue_nd_range_kernel
"""For kernels that are known to be OpenCL's: nothing is chosen in front of a timed launch."""

_SHARED = ("Context", "CommandQueue", "Buffer", "Program", "Kernel", "Event", "Device")
_SHARED_FUNCTIONS = (
    "enqueue_nd_range_kernel", "enqueue_copy", "enqueue_fill_buffer", "enqueue_map_buffer",
)  # fmt: skip


class OtherDriver:
    """Base of the classes that have members of pyopencl's for devices without OpenCL."""


def _find(name: str, first: object) -> Any:  # noqa: ANN401 - a class or a function
    first = first[0] if isinstance(first, list) else first
    is_other = isinstance(first, OtherDriver)
    return getattr(sys.modules[type(first).__module__] if is_other else pyopencl, name)


class _Shared(type):
    """A class of pyopencl's, and that of the same name of another driver."""

    def __call__(cls, first: object, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401
        return _find(cls.__name__, first)(first, *arguments, **named)

    def __instancecheck__(cls, instance: object) -> bool:
        if isinstance(instance, OtherDriver):
            return type(instance).__name__ == cls.__name__
        return isinstance(instance, getattr(pyopencl, cls.__name__))

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401 - whatever pyopencl has
        return getattr(getattr(pyopencl, cls.__name__), name)


class _Drivers(ModuleType):
    """pyopencl, with what also works with another driver's objects in its place."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever pyopencl has
        return getattr(pyopencl, name)


def _share(name: str) -> Any:  # noqa: ANN401 - a function
    return lambda first, *arguments, **named: _find(name, first)(first, *arguments, **named)


if not TYPE_CHECKING:
    cl = _Drivers("cl", pyopencl.__doc__)
    vars(cl).update({name: _Shared(name, (), {}) for name in _SHARED})
    vars(cl).update({name: _share(name) for name in _SHARED_FUNCTIONS})


@contextmanager
def mapped_memory(
    queue: cl.CommandQueue,
    memory: cl.Buffer,
    size_bytes: int,
    flags: cl.map_flags,
    *,
    first_byte: int = 0,
) -> Iterator[npt.NDArray[np.uint8]]:
    """Map a part of a buffer for the length of the block."""
    mapped: npt.NDArray[np.uint8]
    mapped, _ = cl.enqueue_map_buffer(
        queue, memory, flags, first_byte, (size_bytes,), np.dtype(np.uint8)
    )
    try:
        yield mapped
    finally:
        mapped.base.release(queue)  # type: ignore[union-attr]  # its base is a MemoryMap
        queue.finish()


def ask_kernel(kernel: cl.Kernel, what: str, device: cl.Device) -> Any:  # noqa: ANN401 - as the question
    """Ask what OpenCL names ``CL_KERNEL_`` and so on of a kernel on a device."""
    return kernel.get_work_group_info(getattr(cl.kernel_work_group_info, what), device)
