"""Samples at several multiples of the saturation point, as in the sampling paper's Fig. 15."""

import math
from collections.abc import Sequence

from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import TimedLaunch, clock_of
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.windows import find_free_box, spread_positions

# A launch of the least multiple lasts about this long, in seconds; below, noise is all there is.
_LEAST_LAUNCH_S = 300e-6
# The launches of one pair are at most this share of the index space.
_LARGEST_SHARE = 1 / 8


def choose_unit(launch: PreparedLaunch, rate_s: float) -> int:
    """Give the work-groups that one multiple stands for: those that are active on the whole device.

    Once where that lasts long enough to be timed (the paper's P_sat x compute units), as often as
    needed elsewhere.
    """
    concurrency = launch.saturation.concurrency
    return concurrency * max(1, math.ceil(_LEAST_LAUNCH_S / (rate_s * concurrency)))


def sample_pairs(
    launch: PreparedLaunch, multiples: Sequence[int], *, window_set: int, unit: int
) -> dict[int, tuple[TimedLaunch, ...]]:
    """Time k and k + 1 units of work-groups for several k (sampling-svr, section 6, Fig. 15).

    A window set chooses the places; no work-group is in two launches of one set. Both launches of
    those multiples are given that the index space has room for, the shorter one first.
    """
    total = launch.ndrange.work_group_count
    counts = launch.ndrange.group_counts
    fitting = [k for k in multiples if (2 * k + 1) * unit <= _LARGEST_SHARE * total]
    places = spread_positions(max(len(fitting), 1), counts, shift=window_set * 17 + 3)
    taken: list[GroupBox] = []
    chosen: dict[int, list[GroupBox]] = {}
    for place, multiple in zip(places, fitting, strict=False):
        boxes = []
        for size in (multiple * unit, (multiple + 1) * unit):
            box = find_free_box(max(place, 1), size, counts, taken)
            if box is not None:
                taken.append(box)
                boxes.append(box)
        if len(boxes) == 2:
            chosen[multiple] = boxes
    launch.settle()
    durations = iter(launch.time_boxes([box for boxes in chosen.values() for box in boxes]))
    return {
        multiple: tuple(
            TimedLaunch(box=box, window=0, duration_s=float(one), clock_s=clock_of(one))
            for box, one in zip(boxes, durations, strict=False)
        )
        for multiple, boxes in chosen.items()
    }
