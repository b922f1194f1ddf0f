"""Keeps user buffers sacred: sampled kernels write to scratch copies, never to the originals.

Working on copies rather than saving and restoring means that nothing has to be put back: an
exception, Ctrl-C, a crashed driver or a killed process leave the user's buffers untouched.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from kernelcast.records.arguments import Access
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.buffer_pool import BufferPool
from kernelcast.sampling.byte_ranges import Ranges
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.scratch_images import ScratchImages

_PAGE_BYTES = 4096
# Smaller buffers are copied whole: that takes less time than to find out what is touched.
_SMALL_BYTES = 1 << 20

KernelArgument: TypeAlias = Any
"""What `pyopencl.Kernel.set_arg` takes: a buffer, a NumPy scalar, local memory, None.

pyopencl's own type for it leaves out local memory.
"""


class Reach(Protocol):
    """Says which bytes of buffers boxes of work-groups touch."""

    @property
    def places(self) -> Collection[int]:
        """Positions of the arguments of which that is known."""
        ...

    def without(self, places: Collection[int]) -> "Reach":
        """Leave out some arguments."""
        ...

    def list_ranges(self, box: GroupBox) -> Mapping[int, Sequence[tuple[int, int]]]:
        """Give first bytes and those behind the last, by place; they may leave the buffer."""
        ...


class ScratchArguments:
    """A launch's arguments, with copies for all buffers and images that the kernel may write.

    Parameters
    ----------
    accesses : sequence of Access or None
        One per argument; None where it is no buffer or image.
    reach : Reach, optional
        Which bytes boxes touch: the others are copied where they are needed, see `prepare`. All
        are copied at once where that is not known.
    pool : BufferPool, optional
        Where copies come from and go to.

    Raises
    ------
    DeviceLimitError
        If the copies do not fit beside the originals.

    Notes
    -----
    A copy is at least as large as its original, whatever of it has been copied: an access that goes
    where nobody expected it finds other content, and never the original. Sub-buffers are copied
    with their parent, and the same parent is copied once, so that arguments that overlap still do.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        arguments: Sequence[KernelArgument],
        accesses: Sequence[Access | None],
        description: DeviceDescription,
        *,
        reach: Reach | None = None,
        pool: BufferPool | None = None,
    ) -> None:
        self._queue, self._reach = queue, reach
        self._pool = pool or BufferPool(queue.context, queue, description, most_bytes=0)
        written = [
            argument
            for argument, access in zip(arguments, accesses, strict=True)
            if isinstance(argument, cl.Buffer) and access is not Access.READ
        ]
        self._originals = {_parent(memory).int_ptr: _parent(memory) for memory in written}
        self._images = ScratchImages(queue, arguments, accesses)
        held = _hold(arguments)
        if not _has_room(held, self.copied_bytes + self._pool.kept_bytes, description):
            self._pool.close()
        _check_room(held, self.copied_bytes, description)
        self._images.make()
        self._pooled = {key: self._pool.get(parent.size) for key, parent in self._originals.items()}
        # What a kernel only writes it cannot notice: most of what is copied, and a copy of
        # gigabytes takes longer than the launches.
        self._noticed = {
            _parent(argument).int_ptr
            for argument, access in zip(arguments, accesses, strict=True)
            if isinstance(argument, cl.Buffer) and access is not Access.WRITE
        }
        self._places = {
            place: (_parent(argument).int_ptr, _start(argument))
            for place, argument in enumerate(arguments)
            if isinstance(argument, cl.Buffer) and _parent(argument).int_ptr in self._originals
        }
        if reach is not None:
            self._reach = reach.without({*reach.places} - self._places.keys())
        self._ready: dict[int, Ranges] = {key: Ranges() for key in self._originals}
        self.arguments = [self._replace(argument) for argument in arguments]
        known = () if reach is None else reach.places
        wholes = {key for place, (key, _) in self._places.items() if place not in known}
        small = {key for key, one in self._originals.items() if one.size <= _SMALL_BYTES}
        self._copy_whole(wholes | small)

    @property
    def copied_bytes(self) -> int:
        """Bytes of the buffers and images that have a copy."""
        return self._images.bytes + sum(parent.size for parent in self._originals.values())

    @property
    def whole_buffers(self) -> list[cl.Buffer]:
        """Buffers among the arguments, whole copies where there are copies."""
        parts = {place for place, (key, _) in self._places.items() if not self._is_whole(key)}
        return [
            one
            for place, one in enumerate(self.arguments)
            if isinstance(one, cl.Buffer) and place not in parts
        ]

    def prepare(self, boxes: Iterable[GroupBox]) -> None:
        """Copy what boxes of work-groups touch and is not there yet.

        Samples are as fast as those from whole copies: 0.93 to 1.12 of them, for three
        streaming kernels that write 512 MiB, on PoCL and Intel's runtime, both busy.
        """
        parts = [key for key in self._originals if not self._is_whole(key)]
        if not parts or self._reach is None:
            return
        wanted: dict[int, list[tuple[int, int]]] = {key: [] for key in parts}
        for box in boxes:
            for place, ranges in self._reach.list_ranges(box).items():
                key, start = self._places.get(place, (0, 0))
                if key in wanted:
                    wanted[key] += [(start + low, start + high) for low, high in ranges]
        self._copy(
            {
                key: self._ready[key].add(clip_to_pages(ranges, self._originals[key].size))
                for key, ranges in wanted.items()
            }
        )

    def prepare_whole(self) -> None:
        """Copy all that is not there yet: the whole launch is to run."""
        self._copy_whole(self._originals.keys())

    def refresh(self) -> None:
        """Give the copies that the kernel may read the originals' content again."""
        keys = self._noticed & self._originals.keys()
        self._images.refresh()
        self._copy({key: self._ready[key].list_all() for key in keys})

    def _is_whole(self, key: int) -> bool:
        return self._ready[key].list_all() == [(0, self._originals[key].size)]

    def _copy_whole(self, keys: Iterable[int]) -> None:
        self._copy({key: self._ready[key].add([(0, self._originals[key].size)]) for key in keys})

    def _copy(self, ranges: Mapping[int, Iterable[tuple[int, int]]]) -> None:
        for key, parts in ranges.items():
            for low, high in parts:
                cl.enqueue_copy(
                    self._queue, self._pooled[key].buffer, self._originals[key],
                    src_offset=low, dst_offset=low, byte_count=high - low,
                )  # fmt: skip
        self._queue.finish()

    def release(self) -> None:
        """Give the copies' memory back, or keep it for the next launch."""
        self._queue.finish()
        self.arguments = []
        self._images.release()
        self._pool.give_back([*self._pooled.values()])
        self._pooled = {}

    def _replace(self, argument: KernelArgument) -> KernelArgument:
        """Give the copy that stands for an argument; arguments overlapping a copied one too."""
        if not isinstance(argument, cl.Buffer):
            return self._images.replace(argument)
        copy = self._pooled.get(_parent(argument).int_ptr)
        if copy is None:
            return argument
        if _parent(argument) is argument:
            return copy.buffer
        return copy.buffer.get_sub_region(_start(argument), argument.size)


def clip_to_pages(ranges: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Cut ranges to a buffer, page by page."""
    pages = (
        (max(low, 0) // _PAGE_BYTES * _PAGE_BYTES, min(-(-high // _PAGE_BYTES) * _PAGE_BYTES, size))
        for low, high in ranges
    )
    return [(low, high) for low, high in pages if low < high]


def _start(argument: cl.Buffer) -> int:
    """Give where a buffer begins in its parent, in bytes."""
    if _parent(argument) is argument:
        return 0
    return cast("int", argument.get_info(cl.mem_info.OFFSET))


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


def _hold(arguments: Sequence[KernelArgument]) -> int:
    """Give the bytes of the caller's buffers and images."""
    memory = [one for one in arguments if isinstance(one, cl.MemoryObjectHolder)]
    owners = [_parent(one) if isinstance(one, cl.Buffer) else one for one in memory]
    return sum({owner.int_ptr: owner.size for owner in owners}.values())


def _has_room(held_bytes: int, more_bytes: int, description: DeviceDescription) -> bool:
    return held_bytes + more_bytes <= description.global_memory_bytes


def _check_room(held_bytes: int, copied_bytes: int, description: DeviceDescription) -> None:
    if not _has_room(held_bytes, copied_bytes, description):
        msg = (
            f"{description.id}: the buffers take {_mib(held_bytes)} and copies of those "
            f"that the kernel may write {_mib(copied_bytes)} more, the device has "
            f"{_mib(description.global_memory_bytes)}; declare `access: read` for buffers that "
            "the kernel only reads, or predict a smaller problem"
        )
        raise DeviceLimitError(msg)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"
