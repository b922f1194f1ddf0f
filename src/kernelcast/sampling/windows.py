"""Where in the index space work-groups are sampled: geometry only, no device."""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise, product

import numpy as np

from kernelcast.records.device import DispatchOrder
from kernelcast.records.ndrange import GroupBox

GOLDEN = (math.sqrt(5) - 1) / 2
"""The golden ratio's fraction: multiples of it fall nowhere twice near the same place."""
# Inverse of the plastic number: the golden ratio's relative for two dimensions.
_PLASTIC = 0.7548776662466927
# 128 tiles: 64 for each of two threads.
_HALVINGS = 7
_SMALL_TILE = 256
_TRIES = 4096


def box_near(
    position: int,
    work_groups: int,
    group_counts: Sequence[int],
    order: DispatchOrder = DispatchOrder.ROWS,
) -> GroupBox:
    """Give a box of about `work_groups` work-groups that the device would run one after another.

    A launch is a box. Where rows are dispatched one after the other, a run of consecutive
    work-groups is cut to a piece of a row, to whole rows or to whole planes. Where the index
    space is cut into tiles, it is cut to rows of a tile, as one thread runs them; in three
    dimensions to a small tile: neighbours in every dimension share caches.

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
    >>> box_near(2550, 16, (100, 50), DispatchOrder.TILE_ROWS)
    GroupBox(start=(49, 24), shape=(7, 2))
    """
    counts = tuple(group_counts)
    shape, is_tile_row = _choose_shape(work_groups, counts, order)
    place = _coordinates(position, counts)
    if order is not DispatchOrder.ROWS:
        place = tuple(p - n // 2 for p, n in zip(place, shape, strict=True))
    if is_tile_row:
        # Elsewhere a row would straddle one more cache line and page than the whole's do.
        place = (round(place[0] / shape[0]) * shape[0], *place[1:])
    start = tuple(
        max(0, min(p, count - n)) for p, n, count in zip(place, shape, counts, strict=True)
    )
    return GroupBox(start=start, shape=shape)


@lru_cache(maxsize=256)
def _choose_shape(
    work_groups: int, counts: tuple[int, ...], order: DispatchOrder
) -> tuple[tuple[int, ...], bool]:
    """Give the extents of a box, and whether its rows are those of tiles."""
    if order is DispatchOrder.ROWS:
        return _run_shape(work_groups, counts), False
    if order is DispatchOrder.TILE_ROWS and is_cut_in_two(counts):
        shape = _rows_of_tile(work_groups, counts)
        return shape, shape[0] == tile_of(counts)[0]
    return _tile_shape(work_groups, counts), False


def tile_of(group_counts: Sequence[int]) -> tuple[int, ...]:
    """Give the work-groups per dimension of the tiles that an index space is cut into.

    Intel's CPU runtime halves the longest dimension, the slowest of equal ones, until each of its
    threads has 64 tiles. The rule was traced for two threads; with more of them tiles are smaller.
    An index space with one dimension is dealt out in a few long runs.

    Examples
    --------
    >>> tile_of((512, 2048)), tile_of((512, 20)), tile_of((32, 32, 32)), tile_of((512, 1))
    ((128, 64), (8, 10), (8, 8, 4), (512, 1))
    """
    return _find_tile(tuple(int(count) for count in group_counts))


@lru_cache(maxsize=256)
def _find_tile(group_counts: tuple[int, ...]) -> tuple[int, ...]:
    tile = [*group_counts]
    if sum(count > 1 for count in tile) <= 1:
        return tuple(tile)
    for _ in range(_HALVINGS):
        axis = max(range(len(tile)), key=lambda one: (tile[one], one))
        tile[axis] = -(-tile[axis] // 2)
    return tuple(tile)


def is_cut_in_two(group_counts: Sequence[int]) -> bool:
    """Tell whether a launch has work-groups in dimensions 0 and 1, and only there."""
    return min([*group_counts[:2], len(group_counts)]) > 1 and math.prod(group_counts[2:]) == 1


def find_free_box(
    position: int,
    work_groups: int,
    group_counts: Sequence[int],
    taken: Sequence[GroupBox],
    order: DispatchOrder = DispatchOrder.ROWS,
) -> GroupBox | None:
    """Give a box near a place that shares no work-group with those taken.

    Looks ever further away on all sides, where rows are dispatched along their order; None if it
    finds nothing free.
    """
    for candidate in islice(_positions_around(position, work_groups, group_counts, order), _TRIES):
        box = box_near(candidate, work_groups, group_counts, order)
        if not any(box.overlaps(other) for other in taken):
            return box
    return None


def _positions_around(
    position: int, work_groups: int, group_counts: Sequence[int], order: DispatchOrder
) -> Iterator[int]:
    """Give numbers of work-groups whose boxes lie beside each other, the nearest first."""
    counts = tuple(int(count) for count in group_counts)
    shape = box_near(position, work_groups, counts, order).shape
    if order is DispatchOrder.ROWS:
        # Work-groups run in one row, however many dimensions they are numbered in.
        counts, shape = (math.prod(counts),), (max(shape[0], work_groups),)
    place = _coordinates(position, counts)
    reaches = [-(-count // n) for count, n in zip(counts, shape, strict=True)]
    yield position
    for ring in range(1, max(reaches) + 1):
        for axis, step in product(range(len(counts)), (ring, -ring)):
            sides: list[Sequence[int]] = [
                range(-min(ring, reach), min(ring, reach) + 1) for reach in reaches
            ]
            sides[axis] = (step,) if ring <= reaches[axis] else ()
            for steps in product(*sides):
                moved = [p + s * n for p, s, n in zip(place, steps, shape, strict=True)]
                if all(0 <= p < count for p, count in zip(moved, counts, strict=True)):
                    yield position_of(GroupBox(start=tuple(moved), shape=shape), counts)


def split_box(box: GroupBox, parts: int, *, grain: int = 1) -> list[GroupBox]:
    """Cut a box into about equal parts along its slowest dimension, in the order they start.

    Parameters
    ----------
    grain : int
        Work-groups that run at once: parts are multiples of them, fewer if need be, and the last
        one has the rest. Three work-groups on two threads take as long as four.

    Examples
    --------
    >>> split_box(GroupBox(start=(0, 4), shape=(100, 3)), 2)
    [GroupBox(start=(0, 4), shape=(100, 2)), GroupBox(start=(0, 6), shape=(100, 1))]
    >>> [part.shape for part in split_box(GroupBox(start=(0,), shape=(5,)), 3, grain=2)]
    [(2,), (3,)]
    """
    axis = max((axis for axis, extent in enumerate(box.shape) if extent > 1), default=0)
    extent = box.shape[axis]
    grain //= math.gcd(grain, box.work_group_count // extent)
    grains = max(1, extent // grain)
    parts = min(parts, grains)
    edges = [-(-grains * part // parts) * grain for part in range(parts)]
    found = []
    for first, end in pairwise([*edges, extent]):
        start, shape = list(box.start), list(box.shape)
        start[axis] += first
        shape[axis] = end - first
        found.append(GroupBox(start=tuple(start), shape=tuple(shape)))
    return found


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
    if windows > 1:  # a single one has no others to be balanced with
        places = 0.5 + (places - places.mean()) * 0.8
    places = np.clip(places, 0.02, 0.98)
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


def _rows_of_tile(work_groups: int, counts: tuple[int, ...]) -> tuple[int, ...]:
    """Extents of rows of a tile, wider ones where the index space has no room for so many."""
    width = min(tile_of(counts)[0], work_groups)
    height = min(counts[1], max(1, round(work_groups / width)))
    if height == counts[1]:
        width = min(counts[0], max(width, round(work_groups / height)))
    return (width, height, *(1 for _ in counts[2:]))


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
