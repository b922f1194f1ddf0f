"""Buffers kept from one launch to the next: memory is got once, and filled once.

To get a gibibyte from the operating system, page by page, takes a processor 0.3 s, to give it back
0.07 s, to fill it again 0.1 s, and to find it as it was left nothing. What a kernel has only read
still holds its content.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.arguments import Init
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.sampling.contents import FillOrder, Recipe, fill_ranges, make_array
from kernelcast.sampling.opencl import cl

Part = tuple[int, int]
"""A byte, and the one behind another."""


@dataclass(slots=True, eq=False)
class PooledBuffer:
    """A buffer, and the recipe that it is filled by; None where nobody knows what it holds."""

    buffer: cl.Buffer
    content: Recipe | None = None


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
        self._context, self._queue = context, queue
        self.fills_in_place = description.kind is DeviceKind.CPU
        """Whether the host writes to the device's memory, without a copy beside it."""
        usual_bytes = min(4 << 30, description.global_memory_bytes // 4)
        self._most_bytes = usual_bytes if most_bytes is None else most_bytes
        self._free: list[PooledBuffer] = []

    @property
    def kept_bytes(self) -> int:
        return sum(one.buffer.size for one in self._free)

    def take(self, recipes: Sequence[Recipe]) -> list[PooledBuffer]:
        # Before new memory is asked for that all together would not fit.
        self._let_go(max(0, self._most_bytes - sum(one.bytes for one, _ in recipes)))
        taken: list[PooledBuffer] = []
        wanting: list[tuple[PooledBuffer, Recipe]] = []
        try:
            for recipe in recipes:
                held = next((one for one in self._free if one.content == recipe), None)
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
            # The file may be another one the next time.
            held.content = None if recipe[0].init is Init.FILE else recipe
        return taken

    def get(self, size_bytes: int, *, may_be_larger: bool = False) -> PooledBuffer:
        """Give a buffer that holds nothing known; to make one of 64 MiB takes rusticl 16 ms."""
        sizes = {one.buffer.size for one in self._free if one.buffer.size >= size_bytes}
        size_bytes = min(sizes, default=size_bytes) if may_be_larger else size_bytes
        found = next((one for one in self._free if one.buffer.size == size_bytes), None)
        if found is None:
            flags = cl.mem_flags.READ_WRITE
            return PooledBuffer(cl.Buffer(self._context, flags, size=size_bytes))
        self._free.remove(found)
        found.content = None
        return found

    def fill(self, parts: Sequence[tuple[PooledBuffer, Recipe, Sequence[Part]]]) -> None:
        """Give parts of buffers the content of recipes; wholes where memory is the device's."""
        mapped = []
        orders: list[FillOrder] = []
        try:
            for held, recipe, ranges in parts:
                argument, seed = recipe
                if not self.fills_in_place:
                    cl.enqueue_copy(self._queue, held.buffer, make_array(argument, seed=seed))
                    continue
                array, _ = cl.enqueue_map_buffer(
                    self._queue, held.buffer, cl.map_flags.WRITE, 0,
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
                array.base.release(self._queue)

    def give_back(self, buffers: Sequence[PooledBuffer]) -> None:
        """Take buffers back; those that were used the longest ago are let go."""
        self._free += buffers
        self._let_go(self._most_bytes)

    def close(self) -> None:
        self._let_go(0)

    def _let_go(self, most_bytes: int) -> None:
        if self.kept_bytes > most_bytes:
            self._queue.finish()
        while self.kept_bytes > most_bytes:
            self._free.pop(0).buffer.release()
