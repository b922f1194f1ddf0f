"""The launches of one estimate as they accumulate: what is taken, timed, spent and left."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelcast.records.device import DispatchOrder
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import PILOT_WINDOW, TimedLaunch, clock_of
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.windows import GOLDEN, find_free_box, split_box, spread_positions

# Uneven work may cost so many times the budget: a handful of places would tell nothing.
_STRETCHED_BUDGET = 1.5
# A launch of unknown work is at most this share of the work-groups that the budget allows.
_SURVEY_LAUNCH_SHARE = 1 / 16
# Samples pay for cold caches what the whole launch does not: plan for less than the budget.
_PLANNED = 0.8
_BALANCED = 4
_HANDFUL = 5
# A launch of less than so many times what an empty one takes may hold next to no work.
_HIDDEN = 20
# Of a launch that is short.
_MOST_OF_SHORT = 0.5
# Of what nobody notices, one launch of a pilot; and of a short launch of unknown work.
_PILOT_SHARE = 1 / 16
_LAUNCHES_OF_UNKNOWN = 16


@dataclass(slots=True)
class Sampling:
    """The launches of one estimate as they accumulate."""

    launch: PreparedLaunch
    plan: SamplingPlan
    rng: np.random.Generator
    taken: list[GroupBox] = field(default_factory=list)
    timed: list[TimedLaunch] = field(default_factory=list)
    next_window: int = 0
    moments: int = 0
    """Moments that are over."""
    first: int = 0
    """Number of this moment's first launch."""
    is_even: bool = True
    is_spread: bool = False
    """Whether launches lie all over the index space, without a survey before them."""
    intercept_s: float = 0.0
    """What each launch of this kernel seems to pay once, by the pilot."""
    _visited: set[int] = field(default_factory=set)

    @property
    def total(self) -> int:
        """Work-groups of the whole launch."""
        return self.launch.ndrange.work_group_count

    @property
    def unit(self) -> int:
        """Work-groups of the smallest launch: a full device at full rate, and some to balance.

        With two work-groups per thread, the slower of two threads decides how long a launch
        lasts; in the whole launch the faster one takes over its work. Four per thread are better,
        where the budget has room for a handful of such launches.
        """
        saturation = self.launch.saturation
        wanted = max(_BALANCED * saturation.concurrency, saturation.unit)
        room = int(self.plan.budget * self.total / _HANDFUL)
        affordable = max(2 * saturation.concurrency, room)
        unit = min(wanted, affordable, max(1, self.total // 8))
        return max(unit // saturation.concurrency * saturation.concurrency, 1)

    @property
    def floor_s(self) -> float:
        """Duration from which on a launch is worth timing."""
        return self.plan.min_launch_s + 4 * self.paid_once_s

    @property
    def paid_once_s(self) -> float:
        """What a launch costs beside its work-groups, as far as is known by now."""
        return max(self.launch.launch_overhead_s, self.intercept_s)

    @property
    def spent_s(self) -> float:
        """Device time of this moment's launches so far."""
        return sum(one.duration_s for one in self.timed[self.first :])

    @property
    def is_slow(self) -> bool:
        """Whether an empty launch takes longer than one worth timing must."""
        return self.launch.launch_overhead_s > self.plan.min_launch_s

    @property
    def is_short(self) -> bool:
        """Whether the whole launch is, by all launches so far.

        Where places are those of most work, they would say too much of the whole.
        """
        work_groups = sum(one.box.work_group_count for one in self.timed)
        whole_s = sum(one.duration_s for one in self.timed) / max(work_groups, 1) * self.total
        return whole_s < self.plan.short_s and not self.plan.is_known_uneven

    @property
    def most(self) -> int:
        """Work-groups of the largest launch while the work is still unknown."""
        affordable = int(self.plan.budget * self.total * _SURVEY_LAUNCH_SHARE)
        return max(self.unit, affordable // self.unit * self.unit)

    def most_of_pilot(self, last: TimedLaunch) -> int:
        """Give the work-groups of the pilot's largest launch.

        A slow launch hides what a few work-groups take: then the budget has to wait. So does any
        where nobody would notice it: what finds caches cold says little of the work.
        """
        overhead_s = self.launch.launch_overhead_s
        if self.is_slow and last.duration_s - overhead_s < _HIDDEN * overhead_s:
            return max(1, self.total // 8)
        most = max(self.most, 2 * self.unit) if self.is_slow else self.most
        work_groups = last.box.work_group_count
        if last.duration_s >= self.floor_s or not self.is_short:
            return most
        unnoticed = int(_PILOT_SHARE * self.plan.unnoticed_s / last.duration_s * work_groups)
        largest = self.total // (4 if self.plan.is_known_even else _LAUNCHES_OF_UNKNOWN)
        return max(most, min(unnoticed, largest) // self.unit * self.unit)

    def note_intercept(self, smaller: TimedLaunch | None) -> None:
        """Note what the pilot's last two launches say of what each launch pays once."""
        last = self.timed[-1]
        if smaller is None or smaller is last:
            return
        n1, n2 = smaller.box.work_group_count, last.box.work_group_count
        if n1 == n2:  # boxes of whole rows: the next larger one was the same
            return
        slope_s = max((last.duration_s - smaller.duration_s) / (n2 - n1), 0.0)
        self.intercept_s = max(smaller.duration_s - n1 * slope_s, 0.0)

    def pilot_rate_s(self) -> float:
        """Give the seconds per work-group of the pilot's last launch, about."""
        last = self.timed[-1]
        net_s = max(last.duration_s - self.paid_once_s, 0.1 * last.duration_s)
        return net_s / last.box.work_group_count

    def share_s(self, rate_s: float) -> float:
        """Device time of one moment if a work-group takes `rate_s`."""
        whole_s = rate_s * self.total
        budget = self.plan.budget * (1 if self.is_even else _STRETCHED_BUDGET)
        unnoticed_s = min(self.plan.unnoticed_s, _MOST_OF_SHORT * whole_s) if self.is_short else 0.0
        return _PLANNED * max(budget * whole_s, unnoticed_s) / self.plan.moments

    def available_s(self, rate_s: float) -> float:
        """Device time left to spend in this moment."""
        return max(self.share_s(rate_s) - self.spent_s, 0.0)

    def reserve(self, position: int, work_groups: int) -> GroupBox | None:
        """Take a free box around a place, or None if there is none."""
        position = self._choose_place(position)
        if self.launch.order is DispatchOrder.ROWS:
            position -= work_groups // 2
        # Never at the origin: PoCL compiles launches with and without offset separately.
        box = find_free_box(
            min(max(position, 1), self.total - 1),
            work_groups,
            self.launch.ndrange.group_counts,
            self.taken,
            self.launch.order,
        )
        if box is not None:
            self.taken.append(box)
        return box

    def _choose_place(self, position: int) -> int:
        """Give the place of the plan for a position, not taken if possible, or itself.

        A position a third into the index space stands for the place a third into those of the plan.
        """
        places = [int(one * self.total) for one in self.plan.places]
        if not places:
            return position
        left = [one for one in range(len(places)) if places[one] not in self._visited]
        wanted = position / self.total * len(places)
        nearest = places[min(left or range(len(places)), key=lambda one: abs(one + 0.5 - wanted))]
        self._visited.add(nearest)
        return nearest

    def run(self, boxes: Sequence[tuple[int, GroupBox]]) -> None:
        """Time boxes, given with their window, one after the other."""
        durations = self.launch.time_boxes([box for _, box in boxes])
        self.timed += [
            TimedLaunch(
                box=box, window=window, duration_s=float(duration), clock_s=clock_of(duration)
            )
            for (window, box), duration in zip(boxes, durations, strict=True)
        ]

    def run_windows(
        self, work_groups: int, windows: int, *, is_warmed: bool = False
    ) -> list[TimedLaunch]:
        """Time a launch in each of so many strata; give them.

        Parameters
        ----------
        work_groups : int
            Of each launch.
        windows : int
            Number of strata.
        is_warmed : bool
            Whether a launch of the same size runs right before each, on its neighbours: it pays for
            cold caches, and counts as the pilot's.

        Notes
        -----
        In random order: a disturbance of some milliseconds hits launches of several parts of the
        index space rather than one part of it.
        """
        if windows < 1:
            return []
        positions = spread_positions(
            windows, self.launch.ndrange.group_counts, shift=self.plan.seed + self.next_window
        )
        places = []
        for position in positions:
            places.append((self.next_window, position))
            self.next_window += 1
        order = self.rng.permutation(len(places))
        return self.run_places([places[index] for index in order], work_groups, is_warmed=is_warmed)

    def run_places(
        self, places: Sequence[tuple[int, int]], work_groups: int, *, is_warmed: bool
    ) -> list[TimedLaunch]:
        """Time a launch at each place that is free, given with its window; give them."""
        grain = self.launch.saturation.concurrency
        boxes: list[tuple[int, GroupBox]] = []
        told = []
        for window, position in places:
            box = self.reserve(position, (2 if is_warmed else 1) * work_groups)
            if box is None:
                continue
            *first, last = split_box(box, 2, grain=grain) if is_warmed else [box]
            boxes += [(PILOT_WINDOW, one) for one in first]
            told.append(len(self.timed) + len(boxes))
            boxes.append((window, last))
        self.run(boxes)
        return [self.timed[index] for index in told]

    def run_in_parts(self, work_groups: int, parts: int) -> list[TimedLaunch]:
        """Time a window at a new place in parts, each right behind the one before it; give them."""
        counts = self.launch.ndrange.group_counts
        (position,) = spread_positions(1, counts, shift=self.plan.seed + self.next_window + 1)
        box = self.reserve(position, work_groups)
        if box is None:
            return []
        before = len(self.timed)
        cut = split_box(box, parts, grain=self.launch.saturation.concurrency)
        self.run([(self.next_window, part) for part in cut])
        self.next_window += 1
        return self.timed[before:]


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
    is_long = False
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
    if smaller is None and sampling.is_short and not is_long:
        smaller = sampling.timed[0]  # the last was as long as it may be, and mostly a start
    sampling.note_intercept(smaller)
    rate_s = sampling.pilot_rate_s()
    last = sampling.timed[-1]
    enough = sampling.unit * math.ceil(sampling.floor_s / (sampling.unit * rate_s))
    largest = max(sampling.most, last.box.work_group_count)
    return min(max(enough, sampling.unit), largest), rate_s


def _is_clear(sampling: Sampling, last: TimedLaunch, smaller: TimedLaunch | None) -> bool:
    """Tell whether a launch that lasts long does so for its work-groups."""
    if smaller is None:
        return not sampling.is_slow and last.duration_s >= _SURELY_LONG * sampling.floor_s
    more = last.box.work_group_count / smaller.box.work_group_count
    return last.duration_s >= (1 + _GROWS * (more - 1)) * smaller.duration_s


def _count_doublings(sampling: Sampling, last: TimedLaunch) -> int:
    """Give several doublings while far from the goal: most kernels start at microseconds."""
    net_s = last.duration_s - sampling.launch.launch_overhead_s
    return min(5, max(1, round(math.log2(sampling.floor_s / max(net_s, 1e-7)))))
