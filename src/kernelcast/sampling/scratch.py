"""Keeps user buffers sacred: sampled kernels write to scratch copies, never to the originals.

Working on copies rather than saving and restoring means that nothing has to be put back: an
exception, Ctrl-C, a crashed driver or a killed process leave the user's buffers untouched.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from kernelcast.records.arguments import Access
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.opencl import cl

KernelArgument: TypeAlias = Any
"""What `pyopencl.Kernel.set_arg` takes: a buffer, a NumPy scalar, local memory, None.

pyopencl's own type for it leaves out local memory.
"""


class ScratchArguments:
    """A launch's arguments with every buffer that the kernel may write replaced by a copy.

    Parameters
    ----------
    accesses : sequence of Access or None
        One per argument; None where it is no buffer.

    Raises
    ------
    DeviceLimitError
        If the copies do not fit beside the originals.

    Notes
    -----
    Sub-buffers are copied with their parent, and the same parent is copied once, so that
    arguments that overlap still do.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        arguments: Sequence[KernelArgument],
        accesses: Sequence[Access | None],
        description: DeviceDescription,
    ) -> None:
        self._queue = queue
        written = [
            argument
            for argument, access in zip(arguments, accesses, strict=True)
            if isinstance(argument, cl.Buffer) and access is not Access.READ
        ]
        self._originals = {_parent(memory).int_ptr: _parent(memory) for memory in written}
        _check_room(self.copied_bytes, arguments, description)
        self._copies = {
            key: cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size=parent.size)
            for key, parent in self._originals.items()
        }
        # What a kernel only writes it cannot notice: most of what is copied, and a copy of
        # gigabytes takes longer than the launches.
        self._noticed = {
            _parent(argument).int_ptr
            for argument, access in zip(arguments, accesses, strict=True)
            if isinstance(argument, cl.Buffer) and access is not Access.WRITE
        }
        self.arguments = [self._replace(argument) for argument in arguments]
        self._copy(self._originals)

    @property
    def copied_bytes(self) -> int:
        """Bytes that are copied."""
        return sum(parent.size for parent in self._originals.values())

    @property
    def buffers(self) -> list[cl.Buffer]:
        """Buffers among the arguments, copies where there are copies."""
        return [one for one in self.arguments if isinstance(one, cl.Buffer)]

    def refresh(self) -> None:
        """Give the copies that the kernel may read the originals' content again."""
        self._copy(self._noticed & self._originals.keys())

    def _copy(self, keys: Iterable[int]) -> None:
        for key in keys:
            original = self._originals[key]
            cl.enqueue_copy(self._queue, self._copies[key], original, byte_count=original.size)
        self._queue.finish()

    def release(self) -> None:
        """Give the copies' memory back."""
        self._queue.finish()
        self.arguments = []
        for copy in self._copies.values():
            copy.release()
        self._copies = {}

    def _replace(self, argument: KernelArgument) -> KernelArgument:
        """Give the copy that stands for an argument; arguments overlapping a copied one too."""
        if not isinstance(argument, cl.Buffer):
            return argument
        copy = self._copies.get(_parent(argument).int_ptr)
        if copy is None:
            return argument
        if _parent(argument) is argument:
            return copy
        start = cast("int", argument.get_info(cl.mem_info.OFFSET))
        return copy.get_sub_region(start, argument.size)


def _parent(buffer: cl.Buffer) -> cl.Buffer:
    """Give the buffer that a sub-buffer lies in; itself where there is none, or none any more.

    Its memory outlives a parent that the caller has let go, but Intel's runtime (2026.22) does
    not let anybody ask for that parent. What lay in it is copied piece by piece then.
    """
    try:
        parent = cast("cl.Buffer | None", buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT))
    except cl.LogicError:
        return buffer
    return buffer if parent is None else parent


def _check_room(
    copied_bytes: int, arguments: Sequence[KernelArgument], description: DeviceDescription
) -> None:
    held = {
        _parent(argument).int_ptr: _parent(argument).size
        for argument in arguments
        if isinstance(argument, cl.Buffer)
    }
    needed = sum(held.values()) + copied_bytes
    if needed > description.global_memory_bytes:
        msg = (
            f"{description.id}: the buffers take {_mib(sum(held.values()))} and copies of those "
            f"that the kernel may write {_mib(copied_bytes)} more, the device has "
            f"{_mib(description.global_memory_bytes)}; declare `access: read` for buffers that "
            "the kernel only reads, or predict a smaller problem"
        )
        raise DeviceLimitError(msg)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"
