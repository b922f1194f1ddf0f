"""Runs counting copies of kernels, and orders what they counted and recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import DeviceLimitError
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.software_counters import (
    ADDRESS_WORDS,
    CounterSample,
    InstrumentedKernel,
    RecordedAddresses,
)
from kernelcast.sampling.launch import OpenCLLaunch, enqueue, explained_errors
from kernelcast.sampling.opencl import cl

_NO_BUFFER = -1
_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedBox:
    box: GroupBox
    counts: npt.NDArray[np.uint32]
    """Work-items in the order of their global ids, dimension 0 fastest."""
    log: npt.NDArray[np.uint64] | None
    """Place and address of each access, in the order of execution; zeros behind the last."""


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
            results: list[npt.NDArray[np.uint32] | npt.NDArray[np.uint64]] = [
                np.empty((max(1, instrumented.row_words), rows), dtype=np.uint32)
            ]
            if instrumented.records_addresses:
                shape = (rows, max(1, capacity), ADDRESS_WORDS)
                size_bytes = int(np.prod(shape)) * 8
                most = min(1 << 30, self.device.max_allocation_bytes)
                if size_bytes > most:
                    raise DeviceLimitError(
                        f"{self.device.id}: {rows:,} work-items with {capacity:,} addresses each "
                        f"need {size_bytes:,} bytes, more than {most:,}; record fewer work-groups"
                    )
                results.append(np.empty(shape, dtype=np.uint64))
                built.set_arg(first + 2, np.uint32(capacity))
            buffers = [cl.Buffer(self._session.context, flags, size=one.nbytes) for one in results]
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
            counts, *logs = results
            counted.append(
                CountedBox(
                    box=box,
                    counts=counts.view(np.uint32),
                    log=logs[0].view(np.uint64) if logs else None,
                )
            )
        return counted


def make_sample(
    ndrange: NDRange,
    boxes: Sequence[GroupBox],
    counted: Sequence[CountedBox] = (),
    counter_count: int = 0,
) -> CounterSample:
    """Order counters by work-group and local linear id; boxes do not overlap."""
    numbers: list[int] = []
    sizes: list[int] = []
    tables: list[npt.NDArray[np.float64]] = []
    for place, box in enumerate(boxes):
        groups, items = place_work_items(ndrange, box)
        known, inverse, present = np.unique(groups, return_inverse=True, return_counts=True)
        table = np.zeros((known.size, ndrange.work_group_size, counter_count))
        if counter_count:
            table[inverse, items] = counted[place].counts[:counter_count].T
        numbers += known.tolist()
        sizes += present.tolist()
        tables.append(table)
    return CounterSample(
        work_groups=tuple(numbers),
        counts=np.concatenate(tables),
        is_exact=(True,) * counter_count,
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


def read_log(
    ndrange: NDRange,
    counted: Sequence[CountedBox],
    instrumented: InstrumentedKernel,
    owners: Mapping[int, str | None],
    buffer_numbers: Mapping[str, int],
) -> RecordedAddresses:
    """Read the addresses that boxes have written down, relative to their buffers; `owners` are the
    buffers of sites that the source tells. Of a full log these are the first accesses."""
    parts = [_read_box(ndrange, one, instrumented, owners, buffer_numbers) for one in counted]
    columns = [np.concatenate([part[index] for part in parts]) for index in range(6)]
    placed = [place_work_items(ndrange, one.box)[0] for one in counted]
    sizes = [np.unique(groups, return_counts=True) for groups in placed]
    return RecordedAddresses(
        work_groups=tuple(number for numbers, _ in sizes for number in numbers.tolist()),
        work_items=tuple(size for _, each in sizes for size in each.tolist()),
        sites=columns[0], groups=columns[1], local_ids=columns[2], sequences=columns[3],
        buffers=columns[4], offsets_bytes=columns[5],
    )  # fmt: skip


def _read_box(
    ndrange: NDRange,
    counted: CountedBox,
    instrumented: InstrumentedKernel,
    owners: Mapping[int, str | None],
    buffer_numbers: Mapping[str, int],
) -> tuple[_Integers, ...]:
    if counted.log is None:
        return (np.empty(0, dtype=np.int64),) * 6
    groups, items = place_work_items(ndrange, counted.box)
    used = np.minimum(counted.counts[instrumented.counter_count], counted.log.shape[1])
    rows = np.repeat(np.arange(used.size), used)
    # Rows of the log are long and few: to copy their beginnings beats any index.
    log = np.concatenate([own[:count] for own, count in zip(counted.log, used, strict=True)])
    place, address = log[:, 0].astype(np.int64), log[:, 1].astype(np.int64)
    # Where buffers and arrays begin in each work-group, as it has written down first: local memory
    # lies elsewhere in each. The last row is of buffers that are not known.
    places, bases = instrumented.places, instrumented.bases
    known = np.unique(groups)
    starts = np.full((len(bases) + 1, known.size), -1, dtype=np.int64)
    noted = np.flatnonzero((place >= len(places)) & (place < len(places) + len(bases)))[::-1]
    of_group = np.searchsorted(known, groups[rows[noted]])
    starts[place[noted] - len(places), of_group] = address[noted]
    accesses = np.flatnonzero(place < len(places))
    which = place[accesses]
    owned = [owners.get(site) or "" for site in places]
    of_site = [bases.index(name) if name in bases else len(bases) for name in owned]
    sites, base = np.array(places, dtype=np.int64)[which], np.array(of_site, dtype=np.int64)[which]
    numbers = [buffer_numbers.get(name, _NO_BUFFER) for name in bases]
    rows, address = rows[accesses], address[accesses]
    begin = starts[base, np.searchsorted(known, groups[rows])]
    buffer = np.array([*numbers, _NO_BUFFER], dtype=np.int64)[base]
    return (
        sites,
        groups[rows],
        items[rows],
        _count_repetitions(rows, sites),
        np.where(begin >= 0, buffer, _NO_BUFFER),
        np.where(begin >= 0, address - begin, address),
    )


def _count_repetitions(rows: _Integers, sites: _Integers) -> _Integers:
    """Count how often the work-item had executed the site before; `rows` ascend."""
    # NumPy sorts short integers by their digits, which is many times faster.
    is_short = int(sites.max(initial=0)) <= np.iinfo(np.uint16).max
    order = np.argsort(sites.astype(np.uint16) if is_short else sites, kind="stable")
    pairs = np.stack([rows[order], sites[order]])
    starts = np.flatnonzero(np.append(True, (np.diff(pairs) != 0).any(axis=0))[: rows.size])
    numbers = np.empty(rows.size, dtype=np.int64)
    numbers[order] = np.arange(rows.size) - np.repeat(starts, np.diff(starts, append=rows.size))
    return numbers
