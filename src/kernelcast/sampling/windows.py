"""Where in the index space work-groups are sampled: geometry only, no device."""

import math
from collections.abc import Sequence

import numpy as np

from kernelcast.records.device import DispatchOrder
from kernelcast.records.ndrange import GroupBox

GOLDEN = (math.sqrt(5) - 1) / 2
"""The golden ratio's fraction: multiples of it fall nowhere twice near the same place."""
# Inverse of the plastic number: the golden ratio's relative for two dimensions.
_PLASTIC = 0.7548776662466927
_SMALL_TILE = 256
_MOST_TRIES = 4096


def box_near(
    position: int,
    work_groups: int,
    group_counts: Sequence[int],
    order: DispatchOrder = DispatchOrder.ROWS,
) -> GroupBox:
    """Give a box of about `work_groups` work-groups that the device would run one after another.

    A launch is a box. Where rows are dispatched one after the other, a run of consecutive
    work-groups is cut to a piece of a row, to whole rows or to whole planes. Where the index
    space is cut into tiles, neighbours in every dimension share caches, and the box is a tile
    too: a row's piece would find less in the caches than the whole launch does.

    Parameters
    ----------
    position : int
        Number of a work-group, dimension 0 fastest; the box begins there (rows) or has its
        middle there (tiles), moved as far as needed to stay inside.

    Examples
    --------
    >>> box_near(130, 3, (100, 50))
    GroupBox(start=(30, 1), shape=(3, 1))
    >>> box_near(130, 250, (100, 50))
    GroupBox(start=(0, 1), shape=(100, 2))
    >>> box_near(2550, 16, (100, 50), DispatchOrder.TILES)
    GroupBox(start=(48, 23), shape=(4, 4))
    """
    counts = tuple(group_counts)
    place = _coordinates(position, counts)
    if order is DispatchOrder.TILES:
        shape = _tile_shape(work_groups, counts)
        place = tuple(p - n // 2 for p, n in zip(place, shape, strict=True))
    else:
        shape = _run_shape(work_groups, counts)
    start = tuple(
        max(0, min(p, count - n)) for p, n, count in zip(place, shape, counts, strict=True)
    )
    return GroupBox(start=start, shape=shape)


def find_free_box(
    position: int,
    work_groups: int,
    group_counts: Sequence[int],
    taken: Sequence[GroupBox],
    order: DispatchOrder = DispatchOrder.ROWS,
) -> GroupBox | None:
    """Give a box near a place that shares no work-group with those taken.

    Looks ever further away on both sides; None if it finds nothing free.
    """
    total = math.prod(group_counts)
    step = box_near(position, work_groups, group_counts, order).shape[0]
    if order is DispatchOrder.ROWS:
        step = max(step, work_groups)
    tries = min(_MOST_TRIES, total // step + 1)
    for distance in range(0, tries * step, step):
        for candidate in sorted({position + distance, position - distance}, reverse=True):
            if 0 <= candidate < total:
                box = box_near(candidate, work_groups, group_counts, order)
                if not any(box.overlaps(other) for other in taken):
                    return box
    return None


def spread_positions(windows: int, group_counts: Sequence[int], *, shift: int) -> list[int]:
    """Give one place per stratum of the index space, as numbers in dispatch order.

    The last dimension with more than one work-group is cut into strata; in the others places
    follow the additive recurrence with the fewest near-coincidences (the golden ratio's, or its
    two-dimensional relative's), so that any part of the index space holds its share of them.
    Inside the strata places scatter too, with the strata's middle as their mean, so that work
    which grows linearly with the work-group's number is summed without error.

    Examples
    --------
    >>> spread_positions(4, (1000,), shift=0)
    [139, 313, 686, 860]
    """
    counts = [int(count) for count in group_counts]
    last = max((axis for axis, count in enumerate(counts) if count > 1), default=0)
    steps = np.arange(windows) + shift
    places = (0.5 + steps * GOLDEN) % 1.0
    places = np.clip(0.5 + (places - places.mean()) * 0.8, 0.02, 0.98)
    coordinates = [np.zeros(windows, dtype=int) for _ in counts]
    coordinates[last] = ((np.arange(windows) + places) / windows * counts[last]).astype(int)
    for axis in range(last):
        alpha = GOLDEN if last == 1 else _PLASTIC ** (axis + 1)
        coordinates[axis] = ((0.5 + steps * alpha) % 1.0 * counts[axis]).astype(int)
    number, stride = np.zeros(windows, dtype=int), 1
    for coordinate, count in zip(coordinates, counts, strict=True):
        number, stride = number + coordinate * stride, stride * count
    return [int(one) for one in number]


def position_of(box: GroupBox, group_counts: Sequence[int]) -> int:
    """Give the number of a box's first work-group in dispatch order.

    Examples
    --------
    >>> position_of(GroupBox(start=(30, 1), shape=(3, 1)), (100, 50))
    130
    """
    number, stride = 0, 1
    for start, count in zip(box.start, group_counts, strict=True):
        number += start * stride
        stride *= count
    return number


def _run_shape(work_groups: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Extents of a run: part of a row, whole rows, or whole planes."""
    shape = [1] * len(counts)
    row = 1
    for axis, count in enumerate(counts):
        if work_groups < row * count or axis == len(counts) - 1:
            shape[axis] = min(count, max(1, round(work_groups / row)))
            break
        shape[axis] = count
        row *= count
    return tuple(shape)


def _tile_shape(work_groups: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Extents of a tile, as equal as the index space allows.

    Small ones are powers of two: nine work-groups on two threads would take as long as ten.
    """
    shape = [1] * len(counts)
    left = float(work_groups)
    by_size = sorted(range(len(counts)), key=lambda axis: counts[axis])
    for done, axis in enumerate(by_size):
        extent = left ** (1 / (len(counts) - done))
        if work_groups <= _SMALL_TILE and done < len(counts) - 1:
            extent = 2 ** math.floor(math.log2(extent) + 1e-9)
        shape[axis] = min(counts[axis], max(1, round(extent)))
        left = max(1.0, left / shape[axis])
    return tuple(shape)


def _coordinates(position: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    coordinates = []
    for count in counts:
        coordinates.append(position % count)
        position //= count
    return tuple(coordinates)
