"""Runs counting copies of kernels, and orders what they counted by work-group and local id."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import DeviceLimitError, KernelRunError
from kernelcast.records.instrumented_kernel import ADDRESS_WORDS, InstrumentedKernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.software_counters import CounterSample
from kernelcast.sampling.building import get_kernel
from kernelcast.sampling.launch import OpenCLLaunch, explained_errors
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.prelude import add_prelude, mark_line, needs_prelude

BuiltCopy = cl.Kernel
"""A copy that was built for a launch, its arguments set."""

_MOST_LOG_BYTES = 1 << 30
_ZERO = np.zeros(1, dtype=np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedBox:
    """What the work-items of one box of work-groups counted."""

    box: GroupBox
    counts: npt.NDArray[np.uint32]
    """Work-items in the order of their global ids, dimension 0 fastest."""
    log: npt.NDArray[np.uint64] | None
    """Place and address of each access, in the order of execution; zeros behind the last."""
    duration_s: float


class CountingLaunch(OpenCLLaunch):
    """A launch whose work-groups can also be counted; buffers stay as they are."""

    def build_counting(self, instrumented: InstrumentedKernel) -> BuiltCopy:
        """Build the counting copy, with the launch's arguments set."""
        kernel = instrumented.kernel
        original = instrumented.original
        if needs_prelude(original.source, kernel.build_options, original.name):
            text = add_prelude(kernel.source, self.ndrange, source_name=kernel.source_name)
        else:
            text = mark_line(kernel.source_name) + kernel.source
        program = self._session.program(instrumented.header + text, kernel.build_options)
        built = get_kernel(program, kernel)
        with explained_errors(kernel, self.device):
            for index, argument in enumerate(self._scratch.arguments):
                built.set_arg(index, argument)
        return built

    def count(
        self,
        instrumented: InstrumentedKernel,
        built: BuiltCopy,
        boxes: Sequence[GroupBox],
        *,
        capacity: int = 0,
    ) -> list[CountedBox]:
        """Run boxes of work-groups and read their counters.

        Parameters
        ----------
        boxes : sequence of GroupBox
            What to run, one after the other; the first starts from the buffers' true content.
        capacity : int
            Addresses that a work-item can write down, where the copy records them.

        Raises
        ------
        DeviceLimitError
            If the buffer for addresses would be too large.
        """
        self.settle()
        self._prepare(boxes)
        return [self._count_box(instrumented, built, box, capacity) for box in boxes]

    def _count_box(
        self, instrumented: InstrumentedKernel, built: BuiltCopy, box: GroupBox, capacity: int
    ) -> CountedBox:
        offset, size = self.ndrange.work_items_of(box)
        rows = int(np.prod(size))
        words = max(1, instrumented.row_words)
        first = len(self._scratch.arguments)
        buffers = [self._zeros(words * rows * 4)]
        if instrumented.records_addresses:
            buffers.append(self._zeros(self._log_bytes(rows, capacity)))
            built.set_arg(first + 2, np.uint32(capacity))
        try:
            for index, buffer in enumerate(buffers):
                built.set_arg(first + index, buffer)
            duration_s = self._run_counting(built, offset, size)
            counts = np.empty((words, rows), dtype=np.uint32)
            cl.enqueue_copy(self._session.queue, counts, buffers[0])
            log = None
            if instrumented.records_addresses:
                log = np.empty((rows, max(1, capacity), ADDRESS_WORDS), dtype=np.uint64)
                cl.enqueue_copy(self._session.queue, log, buffers[1])
        finally:
            self._session.queue.finish()
            for buffer in buffers:
                buffer.release()
        return CountedBox(box=box, counts=counts, log=log, duration_s=duration_s)

    def _run_counting(
        self, built: BuiltCopy, offset: tuple[int, ...], size: tuple[int, ...]
    ) -> float:
        with explained_errors(self._kernel, self.device):
            begin_s = time.perf_counter()
            event = self._enqueue(built, offset, size)
            self._session.queue.finish()
            host_s = time.perf_counter() - begin_s
        if event.command_execution_status < 0:
            msg = f"{self.device.id}: the counting copy of {self._kernel.name} failed"
            raise KernelRunError(msg)
        if not self._session.uses_event_timer:
            return host_s
        return float(event.profile.end - event.profile.start) * 1e-9

    def _log_bytes(self, rows: int, capacity: int) -> int:
        size = rows * max(1, capacity) * ADDRESS_WORDS * 8
        most = min(_MOST_LOG_BYTES, self.device.max_allocation_bytes)
        if size > most:
            msg = (
                f"{self.device.id}: {rows:,} work-items with {capacity:,} addresses each need "
                f"{size:,} bytes, more than {most:,}; record fewer work-groups"
            )
            raise DeviceLimitError(msg)
        return size

    def _zeros(self, size_bytes: int) -> cl.Buffer:
        buffer = cl.Buffer(self._session.context, cl.mem_flags.READ_WRITE, size=size_bytes)
        cl.enqueue_fill_buffer(self._session.queue, buffer, _ZERO, 0, size_bytes)
        return buffer


def make_sample(
    ndrange: NDRange, counted: Sequence[CountedBox], counter_count: int
) -> CounterSample:
    """Give the counters of each work-item by work-group and local linear id.

    Parameters
    ----------
    counted : sequence of CountedBox
        Boxes that do not overlap.
    """
    numbers: list[int] = []
    tables: list[npt.NDArray[np.float64]] = []
    for one in counted:
        groups, items = place_work_items(ndrange, one.box)
        known, inverse = np.unique(groups, return_inverse=True)
        table = np.full((known.size, ndrange.work_group_size, counter_count), np.nan)
        table[inverse, items] = one.counts[:counter_count].T
        numbers += known.tolist()
        tables.append(table)
    return CounterSample(
        work_groups=tuple(numbers),
        counts=np.concatenate(tables),
        is_exact=(True,) * counter_count,
    )


def make_uncounted_sample(ndrange: NDRange, boxes: Sequence[GroupBox]) -> CounterSample:
    """Give the sample of a kernel that has nothing to count."""
    numbers = [np.unique(place_work_items(ndrange, box)[0]).tolist() for box in boxes]
    groups = tuple(number for each in numbers for number in each)
    counts = np.empty((len(groups), ndrange.work_group_size, 0))
    return CounterSample(work_groups=groups, counts=counts, is_exact=())


def place_work_items(
    ndrange: NDRange, box: GroupBox
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Give the work-group and the local linear id of each work-item of a box.

    Returns
    -------
    (ndarray, ndarray) of int64, shape (work-items,)
        Numbers of work-groups, dimension 0 fastest, and local linear ids; work-items in the
        order of their global ids, dimension 0 fastest.
    """
    _, size = ndrange.work_items_of(box)
    group: npt.NDArray[np.int64] = np.zeros(size[::-1], dtype=np.int64)
    item: npt.NDArray[np.int64] = np.zeros(size[::-1], dtype=np.int64)
    group_stride = item_stride = 1
    for axis, extent in enumerate(size):
        shape = [1] * len(size)
        shape[len(size) - 1 - axis] = extent
        local = ndrange.known_local_size[axis]
        ids = np.arange(extent, dtype=np.int64).reshape(shape)
        group = group + (ids // local + box.start[axis]) * group_stride
        item = item + ids % local * item_stride
        group_stride *= ndrange.group_counts[axis]
        item_stride *= local
    return group.ravel(), item.ravel()
