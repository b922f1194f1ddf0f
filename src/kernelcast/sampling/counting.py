"""Runs counting copies of kernels, and orders what they counted and recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.software_counters import (
    CounterSample,
    InstrumentedKernel,
    RecordedAddresses,
)
from kernelcast.sampling.launch import OpenCLLaunch, enqueue, explained_errors
from kernelcast.sampling.opencl import cl

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedBox:
    box: GroupBox
    counts: npt.NDArray[np.uint32]
    """Work-items in the order of their global ids, dimension 0 fastest; the last counter is that
    of the log's entries."""
    log: npt.NDArray[np.uint64]
    """Site and address of each access, in the order of execution; zeros behind the last. Shape
    (work-items, capacity, 2)."""


class CountingLaunch(OpenCLLaunch):
    """A launch whose work-groups can also be counted; buffers stay as they are."""

    def count(
        self,
        instrumented: InstrumentedKernel,
        built: cl.Kernel,
        boxes: Sequence[GroupBox],
        *,
        capacity: int = 0,
    ) -> list[CountedBox]:
        """Run boxes, the first from true contents; read counters and up to `capacity` addresses."""
        self.settle()
        self._prepare(boxes)
        queue, flags = self._session.queue, cl.mem_flags.READ_WRITE
        first = len(self._scratch.arguments)
        counted = []
        for box in boxes:
            rows = int(np.prod(self.ndrange.work_items_of(box)[1]))
            counts = np.empty((instrumented.counter_count + 1, rows), dtype=np.uint32)
            log = np.empty((rows, max(1, capacity), 2), dtype=np.uint64)
            most = min(1 << 30, self.device.max_allocation_bytes)
            if log.nbytes > most:
                raise DeviceLimitError(
                    f"{self.device.id}: {rows:,} work-items with {capacity:,} addresses each "
                    f"need {log.nbytes:,} bytes, more than {most:,}; record fewer work-groups"
                )
            results: tuple[npt.NDArray[np.generic], ...] = (counts, log)
            buffers = [cl.Buffer(self._session.context, flags, size=one.nbytes) for one in results]
            built.set_arg(first + len(buffers), np.uint32(capacity))
            try:
                for index, buffer in enumerate(buffers):
                    cl.enqueue_fill_buffer(queue, buffer, np.zeros(1, np.uint8), 0, buffer.size)
                    built.set_arg(first + index, buffer)
                with explained_errors(self._kernel, self.device):
                    self._session.timer.by_clock(partial(enqueue, queue, built, self.ndrange, box))
                    for result, buffer in zip(results, buffers, strict=True):
                        cl.enqueue_copy(queue, result, buffer)
            finally:
                queue.finish()
                for buffer in buffers:
                    buffer.release()
            counted.append(CountedBox(box=box, counts=counts, log=log))
        return counted


def make_sample(ndrange: NDRange, counted: Sequence[CountedBox]) -> CounterSample:
    """Order counters by work-group and local linear id; boxes do not overlap."""
    numbers: list[int] = []
    sizes: list[int] = []
    tables: list[npt.NDArray[np.float64]] = []
    for one in counted:
        groups, items = place_work_items(ndrange, one.box)
        known, inverse, present = np.unique(groups, return_inverse=True, return_counts=True)
        table = np.zeros((known.size, ndrange.work_group_size, len(one.counts) - 1))
        table[inverse, items] = one.counts[:-1].T
        numbers += known.tolist()
        sizes += present.tolist()
        tables.append(table)
    counts = np.concatenate(tables)
    return CounterSample(
        work_groups=tuple(numbers),
        counts=counts,
        is_exact=(True,) * counts.shape[2],
        work_items=tuple(sizes),
    )


def place_work_items(ndrange: NDRange, box: GroupBox) -> tuple[_Integers, _Integers]:
    """Find each work-item's work-group and local linear id, in the order of global ids."""
    _, size = ndrange.work_items_of(box)
    ids = np.indices(size[::-1], dtype=np.int64).reshape(len(size), -1)
    local = np.array(ndrange.known_local_size[::-1])[:, None]
    groups = ids // local + np.array(box.start[::-1])[:, None]
    numbers = np.ravel_multi_index(tuple(groups), ndrange.group_counts[::-1])
    return numbers, np.ravel_multi_index(tuple(ids % local), ndrange.known_local_size[::-1])


def read_log(ndrange: NDRange, counted: Sequence[CountedBox]) -> RecordedAddresses:
    """Read the addresses that boxes have written down; of a full log these are the first."""
    columns = [[np.empty(0, dtype=np.int64)] for _ in range(5)]
    work_groups: list[int] = []
    work_items: list[int] = []
    for box in counted:
        groups, items = place_work_items(ndrange, box.box)
        present, sizes = np.unique(groups, return_counts=True)
        work_groups += present.tolist()
        work_items += sizes.tolist()
        used = np.minimum(box.counts[-1], box.log.shape[1])
        rows = np.repeat(np.arange(used.size), used)
        # Rows of the log are long and few: to copy their beginnings beats any index.
        log = np.concatenate([own[:count] for own, count in zip(box.log, used, strict=True)])
        sites, addresses = log.astype(np.int64).T
        # How often the work-item had executed the site before; NumPy sorts short integers by their
        # digits, which is many times faster.
        is_short = int(sites.max(initial=0)) <= np.iinfo(np.uint16).max
        order = np.argsort(sites.astype(np.uint16) if is_short else sites, kind="stable")
        pairs = np.stack([rows[order], sites[order]])
        starts = np.flatnonzero(np.append(True, (np.diff(pairs) != 0).any(axis=0))[: rows.size])
        numbers = np.empty(rows.size, dtype=np.int64)
        numbers[order] = np.arange(rows.size) - np.repeat(starts, np.diff(starts, append=rows.size))
        found = sites, groups[rows], items[rows], numbers, addresses
        for column, part in zip(columns, found, strict=True):
            column.append(part)
    sites, groups, local_ids, sequences, offsets = map(np.concatenate, columns)
    return RecordedAddresses(
        work_groups=tuple(work_groups), work_items=tuple(work_items), sites=sites, groups=groups,
        local_ids=local_ids, sequences=sequences, offsets_bytes=offsets,
    )  # fmt: skip
