"""Samples of a GPU: windows that the kernel's own work-groups have warmed, at several places.

A GPU starts a launch with caches that hold other data, with all work-groups in step, and with room
in L2 for what is stored. In cycle-accurate simulations pairs of launches of 2 and 4 times P_sat,
each behind one P_sat of the work-groups before it, foretell even kernels better than the first
work-groups do (benchmarks/results/simulated_gpu). Each launch is warmed anew: what one leaves in
the caches is not the same for the shorter and for the longer one.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import TypeAlias

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch, find_intercepts
from kernelcast.sampling.plan import SamplingPlan, find_free_box, position_of, spread_positions
from kernelcast.sampling.sampler import PreparedLaunch, Sampler, is_even, note_time, rates_of

MULTIPLES = (2, 4)
"""Of the unit: lengths of the two launches of a pair."""
_UNITS_PER_PAIR = sum(MULTIPLES) + len(MULTIPLES)
# A pair takes half of the index space at most, unless its shorter launch would not fill the device.
_LEAST_UNITS = 2 * _UNITS_PER_PAIR
# A launch is worth timing from so many times what it pays once; work takes at least this share of a
# longer launch's time, and units grow by so much at once at most.
_TIMES_PAID_ONCE, _LEAST_SHARE, _MOST_GROWTH = 4.0, 0.02, 32
# A GPU's events tell times from so many empty launches on; below the second, they tick too coarse.
_EMPTY_LAUNCHES, _LEAST_LAUNCH_S = 8, 10e-6
_Window: TypeAlias = tuple[int, GroupBox, GroupBox]
"""Number of a place, the box that warms up and the one that is timed right behind it, both as they
lie among the active work-groups."""


class WarmedSampler:
    """Samples a launch on a GPU, a moment at a time, in pairs of warmed windows among the `active`
    work-groups, all when left out. One that fills the device four times at most is timed nearly
    whole: what a wave waits for no part of it tells."""

    def __init__(
        self, launch: PreparedLaunch, plan: SamplingPlan, *, active: GroupBox | None = None
    ) -> None:
        counts = launch.ndrange.group_counts
        self._launch, self._plan = launch, plan
        self._active = active or GroupBox(start=(0,) * len(counts), shape=counts)
        # Work-groups of a warm-up: what fills the device, half where there are few; or none.
        concurrency, count = launch.saturation.concurrency, self._active.work_group_count
        filling = -(-concurrency // MULTIPLES[0])
        self._unit = max(min(concurrency, count // _LEAST_UNITS), filling)
        if _UNITS_PER_PAIR * filling >= count:
            self._unit = 0
        self._ran: list[GroupBox] = []
        self._timed: list[TimedLaunch] = []
        self._warm_up_s = 0.0
        self._pairs = 0
        self._otherwise: Sampler | None = None

    @property
    def has_more(self) -> bool:
        return self._otherwise is not None or self._affordable > 0

    def take_moment(self) -> SampleRun | None:
        """Time a first pair of launches, whatever it costs, or further ones that are paid."""
        at_s, self._timed, self._warm_up_s = time.time(), [], 0.0
        if self._otherwise is None:
            if self._ran:
                self._time(self._plan_pairs(self._affordable))
            else:
                self._begin()
        if self._otherwise is not None:
            return self._otherwise.take_moment()
        if not self._timed:
            return None
        launch, timed = self._launch, self._timed
        weight = launch.ndrange.work_group_count / self._active.work_group_count
        windows = [one for one in timed if one.window != PILOT_WINDOW]
        # Lines through pairs tell what a launch pays once: units fill and run empty.
        paid_once_s = max(launch.launch_overhead_s, median(find_intercepts(windows) or [0.0]))
        return SampleRun(
            ndrange=launch.ndrange,
            launches=tuple(replace(one, weight=weight) for one in timed),
            launch_overhead_s=paid_once_s,
            is_even=self._plan.is_known_even or is_even(rates_of(windows)),
            at_s=at_s,
            contention=launch.measure_contention(),
            warm_up_s=self._warm_up_s,
        )

    @property
    def _affordable(self) -> int:
        if not self._unit:
            return 0
        return min(4, int(self._share / (_UNITS_PER_PAIR * self._unit)))

    @property
    def _share(self) -> float:
        """Work-groups that a moment's share of the budget pays."""
        share = self._plan.budget / self._plan.moments / self._plan.place_weight
        return share * self._active.work_group_count

    def _begin(self) -> None:
        """Warm up, find out how long a launch takes, and time the first pairs."""
        shape = self._active.shape
        last = self._active.work_group_count - 1
        if not self._unit and last > 0:
            # All work-groups but a slice across an axis, one of which warms up.
            axis = int(np.argmax(shape))
            kept = tuple(count - (place == axis) for place, count in enumerate(shape))
            box = GroupBox(start=(0,) * len(shape), shape=kept)
            spare = GroupBox(start=tuple(count - 1 for count in shape), shape=(1,) * len(shape))
            self._ran = [spare, box]
            self._launch.warm_up(self._move(spare))  # compiles, where a runtime does that late
            self._launch.settle()
            self._note(box, 0, self._launch.time_boxes([self._move(box)])[0])
            return
        pair = self._plan_pairs(1) if self._unit else []
        free = find_free_box(last, 1, shape, self._ran) if pair else None
        if free is None:
            self._otherwise = Sampler(self._launch, self._plan)
            return
        self._ran.append(free)
        self._launch.warm_up(self._move(free))
        self._time(pair, keeps_contents=False)
        while (unit := self._find_longer_unit()) > self._unit:
            self._unit = unit
            longer = self._plan_pairs(1)
            if not longer:
                break
            self._timed = [replace(one, window=PILOT_WINDOW) for one in self._timed]
            self._time(longer)
        self._time(self._plan_pairs(self._affordable - 1))

    def _find_longer_unit(self) -> int:
        """Give the unit with which launches outlast what each pays once, as budget allows."""
        short, long = self._timed[-len(MULTIPLES) :]
        n1, n2 = short.box.work_group_count, long.box.work_group_count
        rate_s = max((long.duration_s - short.duration_s) / max(n2 - n1, 1), 0.0)
        rate_s = max(rate_s, _LEAST_SHARE * long.duration_s / n2)
        paid_once_s = max(short.duration_s - rate_s * n1, 0.0)
        floor_s = self._plan.min_launch_s + _TIMES_PAID_ONCE * paid_once_s
        wanted = math.ceil(floor_s / (rate_s * MULTIPLES[0] * self._unit))
        room = self._active.work_group_count // _LEAST_UNITS
        if short.duration_s >= self._plan.min_launch_s:
            room = min(room, int(self._share / _UNITS_PER_PAIR))
        return min(self._unit * min(wanted, _MOST_GROWTH), room)

    def _plan_pairs(self, places: int) -> list[_Window]:
        """Choose pairs at new places where there is room; no work-group is in two windows."""
        chosen: list[_Window] = []
        taken, shape, unit = [*self._ran], self._active.shape, self._unit
        shift = self._plan.seed + self._pairs
        spread = spread_positions(max(places, 0), shape, shift=shift)
        if self._plan.places:
            # Near those where the plan says to sample, by their numbers among the active
            # work-groups; the nearest one's of those that are none.
            total = self._launch.ndrange.work_group_count
            numbers = [int(one * total) for one in self._plan.places]
            inside = [
                np.clip(np.array(at) - start, 0, count - 1)
                for at, start, count in zip(
                    np.unravel_index(numbers, self._launch.ndrange.group_counts, order="F"),
                    self._active.start, shape, strict=True,
                )
            ]  # fmt: skip
            known = np.ravel_multi_index(inside, shape, order="F")
            spread = [int(known[np.abs(known - one).argmin()]) for one in spread]
        for number, place in enumerate(spread, self._pairs):
            pair: list[_Window] = []
            begin = max(0, place - _UNITS_PER_PAIR * unit // 2)
            for multiple in MULTIPLES:
                warm = find_free_box(begin, unit, shape, taken)
                if warm is None:
                    break
                behind = position_of(warm, shape) + warm.work_group_count
                timed = find_free_box(behind, multiple * unit, shape, [*taken, warm])
                if timed is None:
                    break
                taken += [warm, timed]
                pair.append((number, warm, timed))
            if len(pair) == len(MULTIPLES):
                chosen += pair
        self._ran += [box for _, *boxes in chosen for box in boxes]
        self._pairs += max(places, 0)
        return chosen

    def _move(self, box: GroupBox) -> GroupBox:
        """Move a box of active work-groups to where it lies in the launch."""
        return replace(
            box, start=tuple(a + b for a, b in zip(box.start, self._active.start, strict=True))
        )

    def _time(self, windows: Sequence[_Window], *, keeps_contents: bool = True) -> None:
        """Time windows, each right behind its own warm-up."""
        if windows:
            self._launch.settle(keeps_contents=keeps_contents)
        for number, warm, timed in windows:
            # Both at once: nothing else runs between them.
            boxes = [self._move(warm), self._move(timed)]
            before_s, duration_s = self._launch.time_boxes(boxes)
            self._warm_up_s += float(before_s)
            self._note(timed, number, duration_s)

    def _note(self, box: GroupBox, window: int, duration_s: float) -> None:
        self._timed.append(note_time(self._move(box), window, duration_s))


def open_sampler(
    launch: PreparedLaunch, plan: SamplingPlan, *, active: GroupBox | None = None
) -> Sampler | WarmedSampler:
    """Give the sampler of a launch that fits its device; `active` as of `WarmedSampler`."""
    if launch.device.kind is not DeviceKind.GPU:
        return Sampler(launch, plan)
    # What is a moment to a processor is a whole run to a GPU.
    least_s = max(_EMPTY_LAUNCHES * launch.launch_overhead_s, _LEAST_LAUNCH_S)
    plan = replace(plan, min_launch_s=min(plan.min_launch_s, least_s))
    return WarmedSampler(launch, plan, active=active)
