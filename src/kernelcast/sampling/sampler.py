"""Decides which work-groups to time, and times them: few long launches instead of many short ones.

A *slab* is a run of consecutive work-groups, as the runtime would cut the whole launch, timed right
behind a shorter one, the first at a new place, which finds neither its data nor the translations of
its addresses in any cache. One of a third of its length follows: what every launch pays once is not
the work-groups'. Where their rates contradict each other, another slab is taken, a longer one where
this one pays much once as well.

1. *Pilot*: launches that grow until one lasts long enough tell the approximate rate.
2. *Survey*, unless the source proves that all work-groups do the same: short launches, one per
   stratum of the index space, tell even work from uneven.
3. *Even work* gets one slab, the paper's line through P1 and P2 (sampling-svr, section 5.1).
   *Uneven work* gets as many places as the budget reaches for.

No work-group runs twice: its data would be in the cache the second time.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kernelcast.records.contention import Contention
from kernelcast.records.device import DeviceDescription, SaturationPoint
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch, clock_of
from kernelcast.sampling.plan import (
    GOLDEN,
    SamplingPlan,
    box_near,
    cut_slab,
    find_free_box,
    position_of,
    spread_positions,
)

# A slab is this share of a moment's budget, with a third of it before it and a third behind.
_SLAB_SHARE, _SLAB_SPAN = 0.6, 5 / 3
# The shorter launch pays its start for fewer work-groups: its rate is the higher one. Where it is
# less than this part of the slab's, caches had yet to fill, or others slowed the slab down. Where
# it is so much more, the slab pays much once too, or the shorter one was slowed down: another one
# is so many times as long.
_LOWEST, _HIGHEST, _LONGER = 0.87, 1.5, 3
# A slab of a short launch lasts so long, in seconds, or what is worth timing; at most this share,
# as a pair of `sample_pairs` has of the index space.
_SHORT_SLAB_S, _LARGEST_SHARE = 1.4e-3, 1 / 4
# A place so much slower than the others is looked at again.
_STICKS_OUT = 1.5
_MOST_PLACES = 48
_PILOT_GROWTH = 4
# Where work may differ, a pilot is at most this part of the launch: it may meet most of the work.
_SMALL_PILOT = 64
# A launch of which more than this share is paid once says little of work-groups; one that lasts
# longer than this, in seconds, is no mere start.
_MOSTLY_PAID, _SURELY_WORK_S = 0.5, 0.5e-3
# In smaller index spaces the work-group that warmed up must be timed too.
_FEWEST_TO_SPARE_ONE = 8
_EVEN_RANGE, _FEW_RATES = 0.75, 5


class Sampled(Protocol):
    """What samples are of: a launch that is ready, or the recording of one."""

    @property
    def device(self) -> DeviceDescription: ...

    @property
    def ndrange(self) -> NDRange: ...

    @property
    def saturation(self) -> SaturationPoint:
        """P_sat of this kernel at this local size on this device."""

    @property
    def launch_overhead_s(self) -> float:
        """What a launch costs beside its work-groups, about, in seconds."""


class PreparedLaunch(Sampled, Protocol):
    """One kernel with one index space and one set of arguments, built and ready to be sampled:
    `kernelcast.sampling.launch` has them on real devices."""

    def warm_up(self, box: GroupBox) -> None:
        """Run a box untimed, so that compilation and thread start happen outside the timing."""

    def settle(self, *, keeps_contents: bool = False) -> None:
        """Make ready for samples: a device at its usual rate, and true buffer contents."""

    def time_boxes(self, boxes: Sequence[GroupBox]) -> list[float]:
        """Time boxes, in seconds: a `LaunchTime` where work and clock are known."""

    def measure_contention(self) -> Contention | None:
        """Find out what other programs leave to the device; None where nothing is seen of any."""

    def time_whole(self, begin: Callable[[], object] = lambda: None) -> float:
        """Run the unchanged kernel as a whole from true contents, made before `begin` is called;
        give its time in seconds."""


def note_time(box: GroupBox, window: int, seconds: float) -> TimedLaunch:
    return TimedLaunch(box=box, window=window, duration_s=float(seconds), clock_s=clock_of(seconds))


def rates_of(launches: Sequence[TimedLaunch]) -> npt.NDArray[np.float64]:
    return np.array([one.duration_s / one.box.work_group_count for one in launches])


def is_even(rates: npt.NDArray[np.float64]) -> bool:
    """Tell whether work-groups of different places take about the same time: of five and more the
    middle half decides, but nothing makes even work as short as next to none."""
    middle = median(rates)
    if len(rates) < _FEW_RATES:
        return bool(np.ptp(rates) < _EVEN_RANGE * middle)
    if middle - rates.min() >= _EVEN_RANGE * middle:
        return False
    # Work counts as even below this robust relative spread of its rates.
    return bool(1.4826 * median(np.abs(rates - middle)) < 0.25 * middle)


class Sampler:
    """Samples a launch, a moment at a time; nobody else may use it meanwhile."""

    has_more = True
    """Another moment may always have something to time."""

    def __init__(self, launch: PreparedLaunch, plan: SamplingPlan) -> None:
        self._launch, self._plan = launch, plan
        self._total, self._counts = launch.ndrange.work_group_count, launch.ndrange.group_counts
        self._taken: list[GroupBox] = []
        self._timed: list[TimedLaunch] = []
        self._discarded_s = 0.0
        """Device time of launches that only prepared for others, or told less than those."""
        self._places = plan.seed
        self._paid_s = launch.launch_overhead_s
        self._rate_s = 0.0
        """Seconds per work-group, by what was timed so far."""
        self._is_even = plan.is_known_even

    def take_moment(self) -> SampleRun | None:
        """Time a few work-groups; give them, or None if all were timed before."""
        at_s, self._timed, self._discarded_s = time.time(), [], 0.0
        if self._taken:
            self._launch.settle(keeps_contents=True)
        else:
            # Warm up, find out how long work-groups take, and whether they do the same.
            middle = box_near(self._total // 2, 1, self._counts)
            if self._total >= _FEWEST_TO_SPARE_ONE:
                self._taken.append(middle)
            self._launch.warm_up(middle)
            self._launch.settle()
            # Grow launches until one is worth timing, or as long as the budget allows.
            size, smaller = self._unit, None
            for _ in range(12):
                if not self._run_at([self._next_place()], size, is_pilot=True):
                    break
                last = self._timed[-1]
                if smaller is not None:
                    self._note_paid_once(smaller, last)
                self._note_rate([last])
                # Time must grow with the work-groups before it says anything about them.
                is_work = self._paid_s <= _MOSTLY_PAID * last.duration_s
                is_work = is_work and (smaller is not None or last.duration_s >= _SURELY_WORK_S)
                is_long = last.duration_s >= self._worth_s or 3 * last.duration_s >= self._slab_s
                if is_long and is_work:
                    # No start makes the longer launch of even work so much slower.
                    rates = rates_of(self._timed[-2:])
                    self._is_even &= bool(rates[-1] <= 3.0 * rates[0])
                    break
                if _PILOT_GROWTH * size > self._total // (2 if self._is_even else _SMALL_PILOT):
                    break
                smaller, size = last, size * _PILOT_GROWTH
            if not self._is_even:
                self._survey()
        if self._is_even:
            self._take_slab()
        else:
            self._take_places()
        if not self._timed:
            return None
        if all(one.window == PILOT_WINDOW for one in self._timed):
            self._timed = [replace(one, window=n) for n, one in enumerate(self._timed)]
        return SampleRun(
            ndrange=self._launch.ndrange,
            launches=tuple(self._timed),
            launch_overhead_s=self._paid_s,
            is_even=self._is_even,
            at_s=at_s,
            warm_up_s=self._discarded_s,
            contention=self._launch.measure_contention(),
        )

    @property
    def _is_slow(self) -> bool:
        """Whether an empty launch takes longer than one worth timing must."""
        return self._launch.launch_overhead_s > self._plan.min_launch_s

    @property
    def _whole_s(self) -> float:
        return self._rate_s * self._total / self._plan.place_weight

    @property
    def _worth_s(self) -> float:
        # A launch is worth timing from so many times what it pays once.
        return max(self._plan.min_launch_s, 5.0 * self._paid_s)

    @property
    def _slab_s(self) -> float:
        share_s = _SLAB_SHARE * self._plan.budget * self._whole_s
        short_s = min(max(_SHORT_SLAB_S, self._worth_s), _LARGEST_SHARE * self._whole_s)
        return max(share_s, short_s) / self._plan.moments

    @property
    def _windows(self) -> list[TimedLaunch]:
        """Launches of this moment that are not the pilot's."""
        return [one for one in self._timed if one.window != PILOT_WINDOW]

    @property
    def _unit(self) -> int:
        """Work-groups of the smallest launch: those of a full device, fewer of a small launch."""
        filled = self._launch.saturation.concurrency
        return filled if self._total >= _FEWEST_TO_SPARE_ONE * filled else max(1, self._total // 8)

    def _note_paid_once(self, smaller: TimedLaunch, larger: TimedLaunch) -> None:
        """Note what each launch of this kernel seems to pay once, at times more than an empty one:
        threads wake, and some drivers prepare a kernel anew."""
        n1, n2 = smaller.box.work_group_count, larger.box.work_group_count
        grown = larger.duration_s / smaller.duration_s
        self._paid_s = self._launch.launch_overhead_s
        # Time that grows less than by 0.4 of the work-groups: only what is paid once explains it.
        if n2 > n1 and (grown < 0.4 * n2 / n1 or self._is_slow):
            slope_s = max((larger.duration_s - smaller.duration_s) / (n2 - n1), 0.0)
            self._paid_s = max(self._paid_s, smaller.duration_s - n1 * slope_s)

    def _survey(self) -> None:
        """Tell even work from uneven by short launches all over the index space."""
        most_s = 0.5 * self._slab_s
        size = self._size_of(min(self._worth_s, most_s))
        affordable = int(most_s / (size * self._rate_s))
        places = spread_positions(max(3, min(10, affordable)), self._counts, shift=self._places)
        seen = self._run_at(places, size)
        if len(seen) < 2:
            return
        self._note_rate(seen)
        rates = rates_of(seen)
        heavy = rates > _STICKS_OUT * median(rates)
        # A heavy region is as heavy beside the place; a disturbance does not repeat.
        beside = [position_of(seen[one].box, self._counts) for one in np.flatnonzero(heavy)]
        again = self._run_at(beside, size) if 0 < len(beside) <= len(seen) / 2 else []
        is_heavy = bool((rates_of(again) > _STICKS_OUT * median(rates)).any())
        # Where the plan names places, one cannot stand for the others, however alike a few are.
        is_uneven = bool(self._plan.places) and not self._plan.is_known_even
        self._is_even = is_even(rates) and not is_heavy and not is_uneven
        # Slabs tell more; and neighbours of heavy places would count these twice.
        self._discard([*seen, *again] if self._is_even else again)

    def _take_slab(self) -> None:
        """Time a slab and a shorter one right behind it; once more where they contradict."""
        span, place = self._size_of(_SLAB_SPAN * self._slab_s), self._next_place()
        replaced: list[TimedLaunch] = []
        for is_last in (False, True):
            box = self._reserve(place, span)
            while box is None and span > 1:  # no place is free for so many
                span //= 2
                box = self._reserve(self._next_place(), span)
            if box is None:
                return
            self._places += 1
            parts = cut_slab(box, self._launch.saturation.concurrency)
            times = zip(parts, self._launch.time_boxes(parts), strict=True)
            timed = [note_time(part, self._places, one) for part, one in times]
            self._timed += timed
            self._discard(replaced)
            if len(timed) > 1:
                self._discard([timed.pop(0)])  # it warmed up
            if self._is_slow and len(timed) > 1:
                self._note_paid_once(timed[1], timed[0])
            self._note_rate(timed[:1])
            rates = rates_of(timed)
            if is_last:
                return
            if rates[-1] < _LOWEST * rates[0]:  # go on behind it
                replaced = timed
                place = position_of(box, self._counts) + box.work_group_count + span // 2
            elif rates[-1] > _HIGHEST * rates[0] and _LONGER * span <= self._total // 4:
                replaced, span, place = timed, _LONGER * span, self._next_place()
            else:
                return

    def _take_places(self) -> None:
        """Time launches at as many places as the budget reaches for, in two rounds: a small survey
        may be far off the mean rate that the budget follows from."""
        survey = self._windows
        # Four work-groups per thread balance a launch of uneven work.
        size = max(self._size_of(self._worth_s), min(4 * self._unit, self._total // 64))
        row = self._counts[0]
        if row // 8 < size < self._total // _SMALL_PILOT and not self._plan.places:
            # Pieces of rows would leave out the ends of rows, where there may be less to do.
            size = row * max(1, round(size / row))
        for share in (0.5, 1.0):
            spent_s = sum(one.duration_s for one in self._windows)
            left_s = share * max(self._slab_s / _SLAB_SHARE - spent_s, 0.0)
            affordable = int(left_s / (size * self._rate_s))
            if affordable > _MOST_PLACES:
                size, affordable = size * affordable // _MOST_PLACES, _MOST_PLACES
            if affordable:
                places = spread_positions(affordable, self._counts, shift=self._places)
                self._run_at(places, size)
                self._note_rate(self._windows)
        # Eight launches say more without the survey's, which are shorter and pieces of rows.
        if len(self._windows) >= len(survey) + 8:
            self._discard(survey)

    def _size_of(self, seconds: float) -> int:
        """Give the work-groups that last so long, a multiple of what fills the device."""
        unit = self._unit
        return unit * max(1, min(round(seconds / (self._rate_s * unit)), self._total // unit // 4))

    def _note_rate(self, launches: Sequence[TimedLaunch]) -> None:
        paid_s = self._paid_s
        net_s = sum(max(one.duration_s - paid_s, 0.1 * one.duration_s) for one in launches)
        if launches:
            self._rate_s = net_s / sum(one.box.work_group_count for one in launches)

    def _next_place(self) -> int:
        """Give the number of a work-group far from the last places."""
        self._places += 1
        return int((0.31 + self._places * GOLDEN) % 1 * self._total)

    def _run_at(
        self, positions: Sequence[int], size: int, *, is_pilot: bool = False
    ) -> list[TimedLaunch]:
        free = [box for one in positions if (box := self._reserve(one, size)) is not None]
        found = []
        for box, seconds in zip(free, self._launch.time_boxes(free), strict=True):
            self._places += 1
            found.append(note_time(box, PILOT_WINDOW if is_pilot else self._places, seconds))
        self._timed += found
        return found

    def _discard(self, launches: Sequence[TimedLaunch]) -> None:
        self._discarded_s += sum(one.duration_s for one in launches)
        self._timed = [one for one in self._timed if one not in launches]

    def _reserve(self, position: int, size: int) -> GroupBox | None:
        """Take a free box near a place, or near that of the plan which is nearest to it."""
        if self._plan.places:
            # A position a third into the index space stands for the place a third into the plan's.
            places = self._plan.places
            nearest = min(position, self._total - 1) * len(places) // self._total
            position = int(places[nearest] * self._total)
        # Never at the origin: PoCL compiles launches with and without offset separately.
        begin = min(max(position - size // 2, 1), self._total - 1)
        box = find_free_box(begin, size, self._counts, self._taken)
        if box is not None:
            self._taken.append(box)
        return box


def choose_unit(launch: PreparedLaunch, rate_s: float) -> int:
    """Give the work-groups of one multiple: the paper's P_sat x compute units, or more."""
    concurrency = launch.saturation.concurrency
    # A launch of the least multiple lasts about so long; below, noise is all there is.
    return concurrency * max(1, math.ceil(300e-6 / (rate_s * concurrency)))


def sample_pairs(
    launch: PreparedLaunch, multiples: Sequence[int], *, window_set: int, unit: int
) -> dict[int, tuple[TimedLaunch, ...]]:
    """Time k and k + 1 units of work-groups for several k, the shorter first (sampling-svr, section
    6, Fig. 15); no work-group is in two launches of a window set."""
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
        multiple: tuple(note_time(box, 0, one) for box, one in zip(boxes, durations, strict=False))
        for multiple, boxes in chosen.items()
    }
