"""Orders what work-items counted by work-group and local id."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.software_counters import CounterSample
from kernelcast.sampling.counting import CountedBox


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
