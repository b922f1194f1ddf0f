"""Memory that sampled kernels write to: buffers that are kept, and copies of what is not ours.

User buffers stay sacred: kernels write to scratch copies, never to the originals. Working on copies
rather than saving and restoring means that nothing has to be put back: an exception, Ctrl-C, a
crashed driver or a killed process leave the user's buffers untouched.

Memory is got once, and filled once. To get a gibibyte from the operating system, page by page,
takes a processor 0.3 s, to give it back 0.07 s, to fill it again 0.1 s, and to find it as it was
left nothing. What a kernel has only read still holds its content.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from kernelcast.records.arguments import Access, Init
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.ndrange import GroupBox
from kernelcast.sampling.arguments import FillOrder, Recipe, fill_ranges, make_array
from kernelcast.sampling.opencl import cl

SMALL_BYTES = 1 << 20
"""Smaller buffers are made ready as a whole: that takes less time than to find out what is
touched."""
_PAGE_BYTES = 4096

KernelArgument: TypeAlias = Any
"""What `pyopencl.Kernel.set_arg` takes; its own type for that leaves out local memory."""


Part = tuple[int, int]
"""A byte, and the one behind another."""


class BufferPool:
    """Gives buffers with the contents of recipes, or any, and keeps some bytes of them."""

    def __init__(
        self,
        context: cl.Context,
        queue: cl.CommandQueue,
        description: DeviceDescription,
        *,
        most_bytes: int | None = None,
    ) -> None:
        self.context, self.queue, self.description = context, queue, description
        self.fills_in_place = description.kind is DeviceKind.CPU
        """Whether the host writes to the device's memory, without a copy beside it."""
        usual_bytes = min(4 << 30, description.global_memory_bytes // 4)
        self._most_bytes = usual_bytes if most_bytes is None else most_bytes
        self._free: list[cl.Buffer] = []
        self._contents: dict[int, Recipe] = {}
        """Of those buffers whose content is known, by their handles."""

    @property
    def kept_bytes(self) -> int:
        return sum(one.size for one in self._free)

    def take(self, recipes: Sequence[Recipe]) -> list[cl.Buffer]:
        # Before new memory is asked for that all together would not fit.
        self._let_go(max(0, self._most_bytes - sum(one.bytes for one, _ in recipes)))
        taken: list[cl.Buffer] = []
        wanting: list[tuple[cl.Buffer, Recipe]] = []
        try:
            for recipe in recipes:
                known = (one for one in self._free if self._contents.get(one.int_ptr) == recipe)
                held = next(known, None)
                if held is not None:
                    self._free.remove(held)
                else:
                    held = self.get(recipe[0].bytes)
                    wanting.append((held, recipe))
                taken.append(held)
            self.fill([(held, one, [(0, one[0].bytes)]) for held, one in wanting])
        except BaseException:
            self.give_back(taken)
            raise
        for held, recipe in wanting:
            if recipe[0].init is not Init.FILE:  # it may be another one the next time
                self._contents[held.int_ptr] = recipe
        return taken

    def get(self, size_bytes: int, *, may_be_larger: bool = False) -> cl.Buffer:
        """Give a buffer that holds nothing known; to make one of 64 MiB takes rusticl 16 ms."""
        sizes = {one.size for one in self._free if one.size >= size_bytes}
        size_bytes = min(sizes, default=size_bytes) if may_be_larger else size_bytes
        found = next((one for one in self._free if one.size == size_bytes), None)
        if found is None:
            found = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size=size_bytes)
        else:
            self._free.remove(found)
        self.forget(found)
        return found

    def forget(self, buffer: cl.Buffer) -> None:
        """Note that a buffer's content is no longer, or never was, known."""
        self._contents.pop(buffer.int_ptr, None)

    def fill(self, parts: Sequence[tuple[cl.Buffer, Recipe, Sequence[Part]]]) -> None:
        """Give parts of buffers the content of recipes; wholes where memory is the device's."""
        mapped = []
        orders: list[FillOrder] = []
        try:
            for held, recipe, ranges in parts:
                argument, seed = recipe
                if not self.fills_in_place:
                    cl.enqueue_copy(self.queue, held, make_array(argument, seed=seed))
                    continue
                array, _ = cl.enqueue_map_buffer(
                    self.queue, held, cl.map_flags.WRITE, 0,
                    (argument.count * argument.element.stored_lanes,), argument.element.dtype,
                )  # fmt: skip
                mapped.append(array)
                size = argument.element.bytes
                orders += [
                    FillOrder(recipe, array, low // size, min(-(-high // size), argument.count))
                    for low, high in ranges
                ]
            fill_ranges(orders)
        finally:
            for array in mapped:
                array.base.release(self.queue)

    def give_back(self, buffers: Sequence[cl.Buffer]) -> None:
        """Take buffers back; those that were used the longest ago are let go."""
        self._free += buffers
        self._let_go(self._most_bytes)

    def close(self) -> None:
        self._let_go(0)

    def _let_go(self, most_bytes: int) -> None:
        if self.kept_bytes > most_bytes:
            self.queue.finish()
        while self.kept_bytes > most_bytes:
            oldest = self._free.pop(0)
            self.forget(oldest)
            oldest.release()


class Reach(Protocol):
    """Says which bytes of buffers boxes of work-groups touch."""

    @property
    def places(self) -> Collection[int]: ...

    def without(self, places: Collection[int]) -> "Reach": ...

    def list_ranges(self, box: GroupBox) -> Mapping[int, Sequence[Part]]:
        """Give first bytes and those behind the last, by place; they may leave the buffer."""


class _Pages:
    """Which pages of a buffer hold what they should."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes
        self._ready = np.zeros(-(-size_bytes // _PAGE_BYTES), dtype=bool)

    @property
    def are_all_ready(self) -> bool:
        return bool(self._ready.all())

    def add(self, ranges: Iterable[Part]) -> list[Part]:
        """Add ranges, page by page; give the parts of the buffer that were not ready."""
        wanted = np.zeros_like(self._ready)
        for low, high in ranges:
            wanted[max(low, 0) // _PAGE_BYTES : max(-(-high // _PAGE_BYTES), 0)] = True
        missing = wanted & ~self._ready
        self._ready |= missing
        return self._list(missing)

    def list_all(self) -> list[Part]:
        return self._list(self._ready)

    def _list(self, pages: npt.NDArray[np.bool_]) -> list[Part]:
        edges = np.flatnonzero(np.diff(pages, prepend=False, append=False)) * _PAGE_BYTES
        ends = np.minimum(edges, self._size_bytes).reshape(-1, 2)
        return [(low, high) for low, high in ends.tolist()]


class WrittenArguments:
    """Arguments of a launch whose kernel may write to memory of ours: its bytes by keys, and of
    each buffer among the arguments key and first byte, by position. What boxes touch is made ready
    before they run where `reach` tells, all at once elsewhere."""

    def __init__(
        self,
        pool: BufferPool,
        sizes: Mapping[int, int],
        places: Mapping[int, tuple[int, int]],
        accesses: Sequence[Access | None],
        reach: Reach | None,
    ) -> None:
        self._queue, self._pool = pool.queue, pool
        written = {key for place, (key, _) in places.items() if accesses[place] is not Access.READ}
        noticed = {key for place, (key, _) in places.items() if accesses[place] is not Access.WRITE}
        self._places = {place: one for place, one in places.items() if one[0] in written}
        self._sizes = {key: size for key, size in sizes.items() if key in written}
        self._noticed = [key for key in self._sizes if key in noticed]
        self._reach = reach and reach.without({*reach.places} - self._places.keys())
        self._ready = {key: _Pages(size) for key, size in self._sizes.items()}
        self.arguments: list[KernelArgument] = []
        self._held: dict[int, cl.Buffer] = {}
        """Memory of ours by its key."""
        self._originals: Mapping[int, cl.Buffer] = {}
        """Where the content is copied from; others are filled by recipes."""
        self._recipes: Mapping[int, Recipe] = {}

    @property
    def whole_buffers(self) -> list[tuple[cl.Buffer, int]]:
        """Buffers among the arguments that hold all of their content, and its bytes."""
        found = []
        for place, one in enumerate(self.arguments):
            key, start = self._places.get(place, (None, 0))
            if isinstance(one, cl.Buffer) and key is None:
                found.append((one, one.size))
            elif isinstance(one, cl.Buffer) and key is not None and self._ready[key].are_all_ready:
                found.append((one, min(one.size, self._sizes[key] - start)))
        return found

    def prepare(self, boxes: Iterable[GroupBox]) -> None:
        """Have in the buffers what boxes of work-groups touch; samples are as fast as from whole
        copies (0.93 to 1.12 of them, on PoCL and Intel's runtime)."""
        wanted: dict[int, list[Part]] = {
            key: [] for key, pages in self._ready.items() if not pages.are_all_ready
        }
        if not wanted or self._reach is None:
            return
        for box in boxes:
            for place, ranges in self._reach.list_ranges(box).items():
                key, start = self._places.get(place, (-1, 0))
                if key in wanted:
                    wanted[key] += [(start + low, start + high) for low, high in ranges]
        self._load({key: self._ready[key].add(ranges) for key, ranges in wanted.items()})

    def prepare_whole(self, keys: Iterable[int] | None = None) -> None:
        chosen = self._sizes if keys is None else keys
        self._load({key: self._ready[key].add([(0, self._sizes[key])]) for key in chosen})

    def refresh(self) -> None:
        """Give what the kernel may have changed, and may read, its true content again."""
        self._load({key: self._ready[key].list_all() for key in self._noticed})

    def release(self) -> None:
        self._queue.finish()
        self._pool.give_back([*self._held.values()])
        self.arguments, self._held = [], {}

    def _load(self, parts: Mapping[int, Sequence[Part]]) -> None:
        recipes = [(key, ranges) for key, ranges in parts.items() if key not in self._originals]
        self._pool.fill(
            [(self._held[key], self._recipes[key], ranges) for key, ranges in recipes if ranges]
        )
        for key in parts.keys() & self._originals.keys():
            for low, high in parts[key]:
                cl.enqueue_copy(
                    self._queue, self._held[key], self._originals[key],
                    src_offset=low, dst_offset=low, byte_count=high - low,
                )  # fmt: skip
        self._queue.finish()


class ScratchArguments(WrittenArguments):
    """Copies of all buffers and images that the kernel may write, as large as the originals, which
    no stray access reaches. A parent of sub-buffers is copied once, so that arguments still
    overlap; images are copied as a whole: no source says which pixels are touched."""

    def __init__(
        self,
        pool: BufferPool,
        arguments: Sequence[KernelArgument],
        accesses: Sequence[Access | None],
        reach: Reach | None = None,
    ) -> None:
        description = pool.description
        if not pool.fills_in_place:  # a device's own memory is left to the program afterwards
            pool = BufferPool(pool.context, pool.queue, description, most_bytes=0)
        # What lay in a buffer that was let go is copied piece by piece.
        located = {
            place: locate(one) or (one, 0)
            for place, one in enumerate(arguments)
            if isinstance(one, cl.Buffer)
        }
        parents = {parent.int_ptr: parent for parent, _ in located.values()}
        super().__init__(
            pool, {key: parent.size for key, parent in parents.items()},
            {place: (parent.int_ptr, start) for place, (parent, start) in located.items()},
            accesses, reach,
        )  # fmt: skip
        self._images = {
            one.int_ptr: one
            for one, access in zip(arguments, accesses, strict=True)
            if isinstance(one, cl.Image) and access is not Access.READ
        }
        sizes, self._originals = self._sizes, {key: parents[key] for key in self._sizes}
        owners = [
            located.get(place, (one, 0))[0]
            for place, one in enumerate(arguments)
            if isinstance(one, cl.MemoryObjectHolder)
        ]
        held_bytes = sum({owner.int_ptr: owner.size for owner in owners}.values())
        copied_bytes = sum(sizes.values()) + sum(one.size for one in self._images.values())
        free_bytes = description.global_memory_bytes - held_bytes - copied_bytes
        if free_bytes < pool.kept_bytes:
            pool.close()
        if free_bytes < 0:
            held, copied, most = (
                f"{size_bytes / 2**20:,.0f} MiB"
                for size_bytes in (held_bytes, copied_bytes, description.global_memory_bytes)
            )
            raise DeviceLimitError(
                f"{description.id}: the buffers take {held} and copies of those that the kernel "
                f"may write {copied} more, the device has {most}; declare `access: read` for "
                "buffers that the kernel only reads, or predict a smaller problem"
            )
        self._image_copies = {
            key: cl.create_image(
                one.context, cl.mem_flags.READ_WRITE, one.format, shape=_find_shape(one),
                is_array=one.type == cl.mem_object_type.IMAGE2D_ARRAY,
            )
            for key, one in self._images.items()
        }  # fmt: skip
        self._copy_images()
        self._held = {key: pool.get(size, may_be_larger=True) for key, size in sizes.items()}
        self.arguments = [self._replace(place, one) for place, one in enumerate(arguments)]
        known = () if reach is None else reach.places
        unknown = {key for place, (key, _) in self._places.items() if place not in known}
        self.prepare_whole(unknown | {key for key, size in sizes.items() if size <= SMALL_BYTES})

    def refresh(self) -> None:
        self._copy_images()
        super().refresh()

    def release(self) -> None:
        super().release()
        self._image_copies = {}

    def _replace(self, place: int, argument: KernelArgument) -> KernelArgument:
        """Give the copy that stands for an argument; arguments overlapping a copied one too."""
        if isinstance(argument, cl.Image):
            return self._image_copies.get(argument.int_ptr, argument)
        if place not in self._places:
            return argument
        key, start = self._places[place]
        is_whole = argument.size == self._sizes[key]
        return self._held[key] if is_whole else self._held[key].get_sub_region(start, argument.size)

    def _copy_images(self) -> None:
        for key, copy in self._image_copies.items():
            width, height, depth = (*_find_shape(copy), 1)[:3]
            cl.enqueue_copy(
                self._queue, copy, self._images[key],
                src_origin=(0, 0, 0), dest_origin=(0, 0, 0), region=(width, height, depth),
            )  # fmt: skip


def locate(buffer: cl.Buffer) -> tuple[cl.Buffer, int] | None:
    """Find the buffer that a sub-buffer lies in, else itself, and its first byte there; None of one
    whose parent was let go, which Intel's runtime (2026.22) does not tell."""
    try:
        parent = cast("cl.Buffer | None", buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT))
        start = 0 if parent is None else cast("int", buffer.get_info(cl.mem_info.OFFSET))
    except cl.LogicError:
        return None
    return parent or buffer, start


_IMAGE_AXES = {
    cl.mem_object_type.IMAGE2D: ("width", "height"),
    cl.mem_object_type.IMAGE2D_ARRAY: ("width", "height", "array_size"),
    cl.mem_object_type.IMAGE3D: ("width", "height", "depth"),
}


def can_be_copied(image: cl.Image) -> bool:
    """Tell whether pyopencl copies such images, and nothing else shares their memory."""
    shared = image.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    return image.type in _IMAGE_AXES and shared is None


def _find_shape(image: cl.Image) -> tuple[int, ...]:
    kind = cast("cl.mem_object_type", image.type)  # pyopencl types it as a number
    return tuple(getattr(image, axis) for axis in _IMAGE_AXES[kind])
