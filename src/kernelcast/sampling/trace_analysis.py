"""What a trace tells of the scheduler: pure functions of starts and finishes.

Arrays hold one entry per work-group, in the order of their numbers.
"""

import heapq
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcast.records.work_group_trace import Staircase

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


def count_active(starts_s: Floats, finishes_s: Floats) -> tuple[Floats, Integers]:
    """Count the work-groups that are active from each moment on at which that changes."""
    times = np.concatenate([starts_s, finishes_s])
    changes = np.repeat(np.array([1, -1]), len(starts_s))
    order = np.lexsort((changes, times))
    # At time 0 nothing has begun: a work-group too short for the clock would count below zero.
    return times[order], np.maximum(np.cumsum(changes[order]), 0)


def average_active(starts_s: Floats, finishes_s: Floats, *, bins: int) -> tuple[Floats, Floats]:
    """Average the active work-groups over equal spans; give edges in seconds too."""
    times, active = count_active(starts_s, finishes_s)
    if times[-1] <= times[0]:  # shorter than the clock's tick
        return np.full(bins + 1, times[0]), np.zeros(bins)
    work = np.concatenate([[0.0], np.cumsum(active[:-1] * np.diff(times))])
    edges = np.linspace(times[0], times[-1], bins + 1)
    return edges, np.diff(np.interp(edges, times, work)) / np.diff(edges)


def find_concurrency(starts_s: Floats, finishes_s: Floats) -> int:
    return max(1, int(count_active(starts_s, finishes_s)[1].max()))


def find_waves(starts_s: Floats, finishes_s: Floats) -> Integers:
    """Find each one's wave: a start after the first finish of a wave opens the next."""
    waves = np.zeros(len(starts_s), dtype=np.int64)
    wave, first_finish_s = 0, math.inf
    for number in np.lexsort((finishes_s, starts_s)):
        if starts_s[number] >= first_finish_s:
            wave, first_finish_s = wave + 1, math.inf
        waves[number] = wave
        first_finish_s = min(first_finish_s, float(finishes_s[number]))
    return waves


def pack_lanes(starts_s: Floats, finishes_s: Floats) -> Integers:
    """Assign work-groups to as few lanes as hold them: that which has just done the one before,
    else the last to become free, as threads take consecutive ones."""
    lanes = np.zeros(len(starts_s), dtype=np.int64)
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    last_of: dict[int, int] = {}
    for number in np.lexsort((finishes_s, starts_s)).tolist():
        while busy and busy[0][0] <= starts_s[number]:
            free.append(heapq.heappop(busy)[1])
        lane = next((one for one in free if last_of[one] == number - 1), None)
        if lane is None:
            lane = free[-1] if free else len(busy)
        if free:
            free.remove(lane)
        lanes[number], last_of[lane] = lane, number
        heapq.heappush(busy, (float(finishes_s[number]), lane))
    return lanes


def find_run_length(starts_s: Floats, lanes: Integers) -> float:
    """Find the mean number of consecutive work-groups that a lane takes one after the other."""
    order = np.lexsort((starts_s, lanes))
    is_continued = (np.diff(order) == 1) & (np.diff(lanes[order]) == 0)
    return len(order) / (len(order) - int(is_continued.sum()))


def find_p_sat(
    starts_s: Floats, finishes_s: Floats, lanes: Integers, *, compute_units: int, knows_units: bool
) -> int:
    """Find the most work-groups that are active at once on one compute unit."""
    if not knows_units:
        return math.ceil(find_concurrency(starts_s, finishes_s) / compute_units)
    return max(
        find_concurrency(starts_s[lanes == lane], finishes_s[lanes == lane])
        for lane in np.unique(lanes)
    )


def find_staircase(
    starts_s: Floats, finishes_s: Floats, waves: Integers, units: Integers | None
) -> Staircase:
    """Tell whether work-groups of a unit, or of a wave, that begin together end in turn: in the
    median set by 1.25 times, and mostly by their numbers."""
    ratios, orders = [], []
    keys = np.stack([waves, np.zeros_like(waves) if units is None else units])
    order = np.lexsort((np.arange(len(waves)), *keys))
    changes = (np.diff(keys[:, order]) != 0).any(axis=0)
    for members in np.split(order, np.flatnonzero(changes) + 1):
        starts, durations = starts_s[members], (finishes_s - starts_s)[members]
        shortest_s = durations.min()
        # Starts closer than half of the shortest duration are one begin.
        if len(members) < 2 or shortest_s <= 0 or np.ptp(starts) > 0.5 * shortest_s:
            continue
        ratios.append(durations.max() / shortest_s)
        # The table of pairs grows with the square.
        picked = np.linspace(0, len(members) - 1, min(len(members), 256)).astype(int)
        ends = finishes_s[members][picked]
        # Kendall's tau of number and finish: 1 if each ends after all with lower numbers.
        later = np.sign(ends[None, :] - ends[:, None])
        orders.append(np.triu(later, 1).sum() / (len(ends) * (len(ends) - 1) / 2))
    if not ratios:
        return Staircase.NOT_APPLICABLE
    # The paper's example takes "almost double the time"; a quarter is more than noise does.
    is_staircase = np.median(ratios) >= 1.25 and np.median(orders) >= 0.5
    return Staircase.YES if is_staircase else Staircase.NO


def find_steps(work_groups: Sequence[int], times_s: Sequence[float]) -> tuple[int, bool]:
    """Fit ``a + b * ceil(n / width)``; give the width, and whether it beats a line."""
    if len(work_groups) < 3:  # two points lie on any line
        return 1, False
    counts, times = np.asarray(work_groups), np.asarray(times_s, dtype=float)
    errors = {}
    for width in range(1, int(counts.max()) // 2 + 1):
        steps = np.ceil(counts / width)
        slope, intercept = np.polyfit(steps, times, 1)
        error = float(np.sum((times - slope * steps - intercept) ** 2))
        errors[width] = error if slope > 0 else math.inf
    width = min(errors, key=errors.__getitem__, default=1)
    # Less growth than by half may be noise alone; steps must explain it twice as well as a line.
    grows = bool(times.max() >= 1.5 * times.min())
    has_steps = width > 1 and grows and errors[width] < 0.5 * errors[1]
    return (width, True) if has_steps else (1, False)
