"""Windows launched as one row of work-groups, mapped to the tile that a thread would run.

Intel's CPU runtime cuts a small box into tiles of its own, a few work-groups wide, and hands them
to unequal threads; a row of work-groups it deals out in long runs. So a window of several rows in
two dimensions is launched as a row whose ids the prelude maps. The mapping may make other code of
a kernel: both forms are timed on work-groups that they number alike before windows are believed.
In three dimensions mapped windows were no closer to the whole launch than boxes (ADR 0034).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from kernelcast.records.device import DispatchOrder
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.windows import GOLDEN, is_cut_in_two, tile_of

_PLACES = 3
_FIRST_PLACE = 0.29
_REPEATS = 3
# Forms of the same code differ by less: 12 kernels on Intel's runtime, 0.88 to 1.08.
_NOISE = 1.15
# Beyond, the code is another one, and what it takes foretells nothing.
_OTHER_CODE = 1.6
# Less than this, in units of what an empty launch takes, is told from nothing by no launch.
_TELLS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedForm:
    """A way to map ids that keeps a kernel's code, or nearly."""

    is_wide: bool
    """Whether ids are sums of 64 bits."""
    scale: float
    """What times of mapped windows are multiplied with."""


TimeBoxes = Callable[[Sequence[tuple[GroupBox, bool]]], list[float]]
"""Runs boxes, mapped or not, one after the other; gives their times in seconds."""


def find_row_width(ndrange: NDRange, order: DispatchOrder) -> int:
    """Give the width of the rows that windows are mapped to; 0 where nothing is mapped.

    Examples
    --------
    >>> find_row_width(NDRange(global_size=(512, 512), local_size=(16, 16)), DispatchOrder.TILES)
    4
    >>> find_row_width(NDRange(global_size=(512,), local_size=(16,)), DispatchOrder.TILES)
    0
    """
    is_cut = order is DispatchOrder.TILES and is_cut_in_two(ndrange.group_counts)
    return tile_of(ndrange.group_counts)[0] if is_cut else 0


def can_map(box: GroupBox, ndrange: NDRange, row_width: int) -> bool:
    """Tell whether a row of full work-groups can be mapped to a box, and need be."""
    return box.shape[0] == row_width and box.shape[1] > 1 and is_full(box, ndrange)


def is_full(box: GroupBox, ndrange: NDRange) -> bool:
    """Tell whether no work-group of a box is cut off by the index space's edge."""
    return all(
        (start + extent) * local <= size
        for start, extent, local, size in zip(
            box.start, box.shape, ndrange.known_local_size, ndrange.global_size, strict=True
        )
    )


def row_launch(box: GroupBox, ndrange: NDRange) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Give offset and global size of the row of work-groups that is mapped to a box."""
    offset, _ = ndrange.work_items_of(box)
    first, *others = ndrange.known_local_size
    return offset, (box.work_group_count * first, *others)


def choose_rows(ndrange: NDRange, row_width: int) -> list[GroupBox]:
    """Choose pieces of rows that both forms run alike, scattered over the index space."""
    full = [
        size // local
        for size, local in zip(ndrange.global_size, ndrange.known_local_size, strict=True)
    ]
    shape = (min(row_width, full[0]), *(1 for _ in full[1:]))
    boxes = []
    for number in range(3 * _PLACES):
        place = (_FIRST_PLACE + number * GOLDEN) % 1
        start = tuple(int(place * (count - n)) for count, n in zip(full, shape, strict=True))
        boxes.append(GroupBox(start=start, shape=shape))
    return boxes


def measure_scale(
    rows: Sequence[GroupBox], time_boxes: TimeBoxes, launch_overhead_s: float
) -> float | None:
    """Compare plain and mapped form of rows, in turn, each as often first as second.

    The first third of the rows tells whether the code is the same, by the best times of several:
    their data are in the caches. Where it is not, the others, which each run once, tell what that
    means where data come from memory.

    Returns
    -------
    float or None
        What times of mapped windows are multiplied with: 1 where the forms differ by noise; None
        where the mapped form is another code.
    """
    places = len(rows) // 3
    time_boxes([(row, is_mapped) for row in rows[:1] for is_mapped in (False, True)])
    ratios = [_compare_at(row, time_boxes, launch_overhead_s) for row in rows[:places]]
    ratio = judge_ratio(median(ratios))
    if ratio is None or ratio == 1.0:
        return ratio
    fresh = time_boxes([(row, number % 2 == 1) for number, row in enumerate(rows[places:])])
    from_memory = sum(fresh[::2]) / sum(fresh[1::2])
    return min(max(from_memory, min(ratio, 1.0)), max(ratio, 1.0))


def judge_ratio(ratio: float) -> float | None:
    """Give 1 for a ratio within the noise, nothing for that of another code.

    Examples
    --------
    >>> judge_ratio(1.03), judge_ratio(0.8), judge_ratio(3.0)
    (1.0, 0.8, None)
    """
    distance = max(ratio, 1 / ratio)
    if distance <= _NOISE:
        return 1.0
    return ratio if distance <= _OTHER_CODE else None


def _compare_at(row: GroupBox, time_boxes: TimeBoxes, launch_overhead_s: float) -> float:
    """Give the plain form's best time over the mapped form's, as far as they can be told from none.

    A form that takes next to nothing counts as what is told from nothing: the other one may take
    ten times as long.
    """
    order = [(number % 4) in (1, 2) for number in range(2 * _REPEATS)]
    times = time_boxes([(row, is_mapped) for is_mapped in order])
    plain, mapped = (
        min(one for one, is_mapped in zip(times, order, strict=True) if is_mapped is form)
        for form in (False, True)
    )
    paid_once_s = min(launch_overhead_s, plain, mapped)
    least = _TELLS * paid_once_s
    return max(plain - paid_once_s, least) / max(mapped - paid_once_s, least)
