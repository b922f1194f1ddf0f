"""The first launches of an estimate: how fast a kernel is, about, and what is worth timing."""

import math

from kernelcast.records.samples import PILOT_WINDOW, TimedLaunch
from kernelcast.sampling.sample_state import Sampling
from kernelcast.sampling.windows import GOLDEN

_MOST_PILOT_STEPS = 40
# A launch so many times as long as the shortest worth timing is no mere start.
_SURELY_LONG = 5
# Twice the work-groups must last at least 1.4 times as long, or they are not what takes the time.
_GROWS = 0.4
_PILOT_GROWTH = 4


def run_pilot(sampling: Sampling) -> tuple[int, float]:
    """Grow launches until one lasts long enough and longer than a smaller one.

    A launch may last long for what it pays once (threads that wake, a driver that prepares this
    kernel anew at each launch), which a launch of nothing does not show: time must grow with the
    work-groups before it says anything about them.

    Returns
    -------
    (int, float)
        The work-groups of a launch worth timing, and the seconds per work-group, about.
    """
    work_groups = sampling.unit
    smaller: TimedLaunch | None = None
    for step in range(1, _MOST_PILOT_STEPS + 1):
        place = (0.5 + (step + sampling.plan.seed * 0.37) * GOLDEN) % 1
        box = sampling.reserve(int(sampling.total * place), work_groups)
        if box is None:
            break
        sampling.run([(PILOT_WINDOW, box)])
        last = sampling.timed[-1]
        is_long = last.duration_s >= sampling.floor_s
        if is_long and _is_clear(sampling, last, smaller):
            break
        most = sampling.most_of_pilot(last)
        if work_groups >= most:
            break
        if is_long:
            smaller, factor = last, 2 if smaller is None else _PILOT_GROWTH
        else:
            factor = 2 ** _count_doublings(sampling, last)
        work_groups = min(work_groups * factor, most)
    sampling.note_intercept(smaller)
    rate_s = sampling.pilot_rate_s()
    last = sampling.timed[-1]
    enough = sampling.unit * math.ceil(sampling.floor_s / (sampling.unit * rate_s))
    largest = max(sampling.most, last.box.work_group_count)
    return min(max(enough, sampling.unit), largest), rate_s


def _is_clear(sampling: Sampling, last: TimedLaunch, smaller: TimedLaunch | None) -> bool:
    """Tell whether a launch that lasts long does so for its work-groups."""
    if smaller is None:
        launch = sampling.launch
        is_quick = launch.launch_overhead_s <= sampling.plan.min_launch_s
        return is_quick and last.duration_s >= _SURELY_LONG * sampling.floor_s
    more = last.box.work_group_count / smaller.box.work_group_count
    return last.duration_s >= (1 + _GROWS * (more - 1)) * smaller.duration_s


def _count_doublings(sampling: Sampling, last: TimedLaunch) -> int:
    """Give several doublings while far from the goal: most kernels start at microseconds."""
    net_s = last.duration_s - sampling.launch.launch_overhead_s
    return min(5, max(1, round(math.log2(sampling.floor_s / max(net_s, 1e-7)))))
