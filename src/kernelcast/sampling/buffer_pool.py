"""Buffers kept from one launch to the next: memory is got once, and filled once.

To get a gibibyte from the operating system, page by page, takes a processor 0.3 s, to give it back
0.07 s, to fill it again 0.1 s, and to find it as it was left nothing. What a kernel has only read
still holds its content.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kernelcast.records.arguments import BufferArgument, Init
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.sampling.contents import FillOrder, fill_ranges, make_array
from kernelcast.sampling.opencl import cl

_MOST_KEPT_BYTES: Final = 4 << 30
_SHARE_KEPT: Final = 0.25
"""Of the device's memory."""
_Content = tuple[object, ...]
Part = tuple[int, int]
"""A byte, and the one behind another."""


@dataclass(slots=True, eq=False)
class PooledBuffer:
    """A buffer, and what it holds.

    Parameters
    ----------
    buffer : pyopencl.Buffer
        Of the size that who has it asked for.
    content : tuple or None
        What is in its first `filled` elements; None where nobody knows.
    larger : PooledBuffer or None
        The buffer that this is the start of.
    """

    buffer: cl.Buffer
    content: _Content | None = None
    filled: int = 0
    larger: "PooledBuffer | None" = None

    def leave_larger(self) -> "PooledBuffer":
        """Give the buffer that stays: itself, or the one that it is the start of."""
        whole = self.larger
        if whole is None:
            return self
        self.buffer.release()
        if self.content != whole.content:
            whole.content, whole.filled = self.content, self.filled
        return whole


class BufferPool:
    """Gives buffers with the contents of recipes, or any, and takes them back.

    Parameters
    ----------
    context, queue
        Of the device.
    description : DeviceDescription
        The device.
    most_bytes : int, optional
        What is kept at most, in bytes; a share of the device's memory when left out.
    """

    def __init__(
        self,
        context: cl.Context,
        queue: cl.CommandQueue,
        description: DeviceDescription,
        *,
        most_bytes: int | None = None,
    ) -> None:
        self._context, self._queue = context, queue
        self._is_host_memory = description.kind is DeviceKind.CPU
        usual_bytes = min(_MOST_KEPT_BYTES, int(_SHARE_KEPT * description.global_memory_bytes))
        self._most_bytes = usual_bytes if most_bytes is None else most_bytes
        self._free: OrderedDict[int, PooledBuffer] = OrderedDict()

    @property
    def fills_in_place(self) -> bool:
        """Whether the host writes to the device's memory, without a copy beside it."""
        return self._is_host_memory

    @property
    def kept_bytes(self) -> int:
        """Bytes of the buffers that nobody has."""
        return sum(one.buffer.size for one in self._free.values())

    def take(self, recipes: Sequence[tuple[BufferArgument, int]]) -> list[PooledBuffer]:
        """Give buffers, filled by recipes with seeds.

        Raises
        ------
        InputError
            As `kernelcast.sampling.contents.make_array`.
        """
        self._make_room(sum(one.bytes for one, _ in recipes))
        taken: list[PooledBuffer] = []
        try:
            taken += [self._find(*one) for one in recipes]
            self.fill([(one, *recipe) for one, recipe in zip(taken, recipes, strict=True)])
        except BaseException:
            self.give_back(taken)
            raise
        return taken

    def get(self, size_bytes: int) -> PooledBuffer:
        """Give a buffer that holds nothing known."""
        for key, one in self._free.items():
            if one.buffer.size == size_bytes:
                one.content = None
                return self._free.pop(key)
        flags = cl.mem_flags.READ_WRITE
        return PooledBuffer(cl.Buffer(self._context, flags, size=size_bytes))

    def fill(self, buffers: Sequence[tuple[PooledBuffer, BufferArgument, int]]) -> None:
        """Give buffers the content of recipes with seeds, where they do not hold all of it."""
        wanting = [one for one in buffers if _count_held(*one) < one[1].count]
        if not self._is_host_memory:
            for held, argument, seed in wanting:
                held.content = None
                cl.enqueue_copy(self._queue, held.buffer, make_array(argument, seed=seed))
        else:
            self._fill_mapped(wanting)
        for held, argument, seed in wanting:
            held.content = _name_content(argument, seed)
            held.filled = argument.count

    def fill_parts(
        self, parts: Sequence[tuple[PooledBuffer, BufferArgument, int, Iterable[Part]]]
    ) -> None:
        """Give parts of buffers, from a byte to that behind another, the content of recipes."""
        if any(one for *_, one in parts):
            self._write_mapped(parts)

    def give_back(self, buffers: Sequence[PooledBuffer]) -> None:
        """Take buffers back; those that were used the longest ago are let go."""
        for one in map(PooledBuffer.leave_larger, buffers):
            self._free[id(one)] = one
        self._let_go(self._most_bytes)

    def close(self) -> None:
        """Let all buffers go that nobody has."""
        self._let_go(0)

    def _find(self, argument: BufferArgument, seed: int) -> PooledBuffer:
        """Give a free buffer, best one that holds the content, or begins with it."""
        holding = (
            one for one in self._free.values() if _count_held(one, argument, seed) >= argument.count
        )
        found = min(holding, key=lambda one: one.buffer.size, default=None)
        if found is None:
            return self.get(argument.bytes)
        del self._free[id(found)]
        if found.buffer.size == argument.bytes:
            return found
        start = found.buffer.get_sub_region(0, argument.bytes)
        return PooledBuffer(start, found.content, found.filled, found)

    def _fill_mapped(self, buffers: Sequence[tuple[PooledBuffer, BufferArgument, int]]) -> None:
        """Fill what buffers do not hold yet, where they lie."""
        parts = []
        for held, argument, seed in buffers:
            begin = _count_held(held, argument, seed) * argument.element.bytes
            held.content = None
            parts.append((held, argument, seed, [(begin, argument.bytes)]))
        self._write_mapped(parts)

    def _write_mapped(
        self, parts: Sequence[tuple[PooledBuffer, BufferArgument, int, Iterable[Part]]]
    ) -> None:
        arrays = []
        try:
            orders: list[FillOrder] = []
            for held, argument, seed, ranges in parts:
                array, _ = cl.enqueue_map_buffer(
                    self._queue, held.buffer, cl.map_flags.WRITE, 0,
                    (argument.count * argument.element.stored_lanes,), argument.element.dtype,
                )  # fmt: skip
                arrays.append(array)
                size = argument.element.bytes
                orders += [
                    FillOrder(argument=argument, array=array, seed=seed,
                              begin=low // size, end=min(-(-high // size), argument.count))
                    for low, high in ranges
                ]  # fmt: skip
            fill_ranges(orders)
        finally:
            for array in arrays:
                array.base.release(self._queue)

    def _make_room(self, wanted_bytes: int) -> None:
        """Let free buffers go before new memory is asked for that all together would not fit."""
        self._let_go(max(0, self._most_bytes - wanted_bytes))

    def _let_go(self, most_bytes: int) -> None:
        kept_bytes = self.kept_bytes
        if kept_bytes > most_bytes:
            self._queue.finish()
        while kept_bytes > most_bytes:
            _, one = self._free.popitem(last=False)
            kept_bytes -= one.buffer.size
            one.buffer.release()


def _name_content(argument: BufferArgument, seed: int) -> _Content | None:
    """Name what a recipe fills in; files change, and permutations are others for each length."""
    if argument.init in {Init.FILE, Init.PERMUTATION}:
        return None
    return (argument.init, argument.element, argument.low, argument.high, seed)


def _count_held(held: PooledBuffer, argument: BufferArgument, seed: int) -> int:
    """Count the elements at the start of a buffer that hold a recipe's content."""
    content = _name_content(argument, seed)
    return held.filled if content is not None and held.content == content else 0
