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
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

import numpy as np

from kernelcast.records.device import DeviceKind
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import (
    PILOT_WINDOW,
    SampleRun,
    TimedLaunch,
    clock_of,
    find_intercepts,
)
from kernelcast.sampling.backend import PreparedLaunch, Sampled
from kernelcast.sampling.evenness import is_even, rates_of
from kernelcast.sampling.plan import SamplingPlan, fit_plan
from kernelcast.sampling.sampler import Sampler
from kernelcast.sampling.windows import find_free_box, position_of, spread_positions

MULTIPLES = (2, 4)
"""Of the unit: lengths of the two launches of a pair."""
MOST_PLACES = 4
_UNITS_PER_PAIR = sum(MULTIPLES) + len(MULTIPLES)
# A pair takes half of the index space at most, unless its shorter launch would not fill the device.
_LEAST_UNITS = 2 * _UNITS_PER_PAIR
# A launch is worth timing from so many times what it pays once; work takes at least this share of a
# longer launch's time, and units grow by so much at once at most.
_TIMES_PAID_ONCE, _LEAST_SHARE, _MOST_GROWTH = 4.0, 0.02, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmedWindow:
    """A box of work-groups that is timed, and the one that runs just before it.

    Parameters
    ----------
    window : int
        Number of the place.
    warm, timed : GroupBox
        They share no work-group.
    """

    window: int
    warm: GroupBox
    timed: GroupBox


def time_warmed(
    launch: PreparedLaunch, windows: Sequence[WarmedWindow], *, keeps_contents: bool = False
) -> tuple[list[TimedLaunch], float]:
    """Time windows, each right behind its own warm-up.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch.
    windows : sequence of WarmedWindow
        In the order in which they run.
    keeps_contents : bool
        Whether buffers may stay as earlier samples left them: other work-groups run now.

    Returns
    -------
    (list of TimedLaunch, float)
        One launch per window, and what their warm-ups took, in seconds.
    """
    launch.settle(keeps_contents=keeps_contents)
    timed, warm_up_s = [], 0.0
    for one in windows:
        # Both at once: nothing else runs between them.
        before_s, duration_s = launch.time_boxes([one.warm, one.timed])
        warm_up_s += before_s
        timed.append(_note(one.timed, one.window, duration_s))
    return timed, float(warm_up_s)


def plan_windows(
    launch: PreparedLaunch,
    unit: int,
    positions: Sequence[int],
    *,
    active: GroupBox,
    ran: Sequence[GroupBox] = (),
) -> list[WarmedWindow]:
    """Choose pairs of windows around places among the work-groups that do anything.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch.
    unit : int
        Work-groups of a warm-up; a pair has `MULTIPLES` of them.
    positions : sequence of int
        Numbers of work-groups inside `active`, one per pair, in dispatch order. Pairs for which
        there is no room near by are left out: no work-group is in two windows.
    active : GroupBox
        Where they may lie, see `kernelcast.features.active_groups.find_active_box`.
    ran : sequence of GroupBox
        What ran before and must not run again.
    """
    origin = tuple(-one for one in active.start)
    taken = [_shift(one, origin) for one in ran]
    chosen: list[WarmedWindow] = []
    for window, place in enumerate(positions):
        pair: list[WarmedWindow] = []
        begin = max(0, place - _UNITS_PER_PAIR * unit // 2)
        for multiple in MULTIPLES:
            warm = find_free_box(begin, unit, active.shape, taken)
            if warm is None:
                break
            behind = position_of(warm, active.shape) + warm.work_group_count
            timed = find_free_box(behind, multiple * unit, active.shape, [*taken, warm])
            if timed is None:
                break
            taken += [warm, timed]
            pair.append(WarmedWindow(window=window, warm=warm, timed=timed))
        if len(pair) == len(MULTIPLES):
            chosen += pair
    return [
        replace(one, warm=_shift(one.warm, active.start), timed=_shift(one.timed, active.start))
        for one in chosen
    ]


class WarmedSampler:
    """Samples a launch on a GPU, a moment at a time, in pairs of warmed windows.

    A launch that fills the device four times at most is timed nearly whole: by how much it exceeds
    its last full wave, and what a wave waits for, no part of it tells.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch; nobody else may use it meanwhile.
    plan : SamplingPlan
        How much to sample, and where.
    active : GroupBox, optional
        Work-groups that do anything; all when left out. Where some do nothing, each of the others
        weighs as much more.
    """

    def __init__(
        self, launch: PreparedLaunch, plan: SamplingPlan, *, active: GroupBox | None = None
    ) -> None:
        counts = launch.ndrange.group_counts
        self._launch, self._plan = launch, plan
        self._active = active or GroupBox(start=(0,) * len(counts), shape=counts)
        self._unit = _choose_unit(self._active.work_group_count, launch.saturation.concurrency)
        self._ran: list[GroupBox] = []
        self._timed: list[TimedLaunch] = []
        self._warm_up_s = 0.0
        self._pairs = 0
        self._otherwise: Sampler | None = None

    @property
    def has_more(self) -> bool:
        """Whether another moment may have anything to time."""
        return self._otherwise is not None or self._affordable > 0

    def take_moment(self) -> SampleRun | None:
        """Time a few work-groups.

        Returns
        -------
        SampleRun or None
            The first moment has a pair of launches even where that costs more than the budget; None
            where a further pair would.

        Raises
        ------
        DeviceError
            If the device fails.
        """
        at_s, self._timed, self._warm_up_s = time.time(), [], 0.0
        if self._otherwise is None and not self._ran:
            self._begin()
        elif self._otherwise is None:
            self._time(self._plan_pairs(self._affordable))
        if self._otherwise is not None:
            return self._otherwise.take_moment()
        return self._make_run(at_s) if self._timed else None

    @property
    def _affordable(self) -> int:
        """Pairs that a moment's share of the budget has room for."""
        if not self._unit:
            return 0
        return min(MOST_PLACES, int(self._share / (_UNITS_PER_PAIR * self._unit)))

    @property
    def _share(self) -> float:
        """Work-groups that a moment's share of the budget pays."""
        share = self._plan.budget / self._plan.moments / self._plan.place_weight
        return share * self._active.work_group_count

    def _begin(self) -> None:
        """Warm up, find out how long a launch takes, and time the first pairs."""
        active = self._active
        if not self._unit and active.work_group_count > 1:
            self._time_nearly_whole(active, axis=int(np.argmax(active.shape)))
            return
        pair = self._plan_pairs(1) if self._unit else []
        spare = self._find_spare() if pair else None
        if spare is None:
            self._otherwise = Sampler(self._launch, self._plan)
            return
        self._ran.append(spare)
        self._launch.warm_up(spare)  # compiles, where a runtime does that late
        self._time(pair, keeps_contents=False)
        while (unit := self._find_longer_unit()) > self._unit:
            self._unit = unit
            longer = self._plan_pairs(1)
            if not longer:
                break
            self._timed = [replace(one, window=PILOT_WINDOW) for one in self._timed]
            self._time(longer)
        self._time(self._plan_pairs(self._affordable - 1))

    def _time_nearly_whole(self, active: GroupBox, axis: int) -> None:
        """Time all work-groups but a slice across an axis, one of which warms up."""
        last = tuple(at + count - 1 for at, count in zip(active.start, active.shape, strict=True))
        kept = tuple(count - (place == axis) for place, count in enumerate(active.shape))
        spare = GroupBox(start=last, shape=(1,) * len(last))
        box = GroupBox(start=active.start, shape=kept)
        self._ran = [spare, box]
        self._launch.warm_up(spare)  # compiles, where a runtime does that late
        self._launch.settle()
        self._timed = [_note(box, 0, self._launch.time_boxes([box])[0])]

    def _find_longer_unit(self) -> int:
        """Give the unit with which launches last long enough to tell, by the last pair of them.

        A launch worth timing lasts some time, and longer than what every launch pays once: the
        latter as far as the budget reaches.
        """
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

    def _find_spare(self) -> GroupBox | None:
        """Find a work-group that may warm up untimed."""
        origin = tuple(-one for one in self._active.start)
        ran = [_shift(one, origin) for one in self._ran]
        last = self._active.work_group_count - 1
        found = find_free_box(last, 1, self._active.shape, ran)
        return None if found is None else _shift(found, self._active.start)

    def _plan_pairs(self, places: int) -> list[WarmedWindow]:
        """Plan pairs at new places, and take their work-groups."""
        if places < 1:
            return []
        found = plan_windows(
            self._launch, self._unit, self._choose_positions(places),
            active=self._active, ran=self._ran,
        )  # fmt: skip
        self._ran += [box for one in found for box in (one.warm, one.timed)]
        found = [replace(one, window=one.window + self._pairs) for one in found]
        self._pairs += places
        return found

    def _choose_positions(self, places: int) -> list[int]:
        """Spread places over the active work-groups, near those where the plan says to sample."""
        shift = self._plan.seed + self._pairs
        spread = spread_positions(places, self._active.shape, shift=shift)
        if not self._plan.places:
            return spread
        total = self._launch.ndrange.work_group_count
        known = np.array([self._move_inside(int(one * total)) for one in self._plan.places])
        return [int(known[np.abs(known - one).argmin()]) for one in spread]

    def _move_inside(self, position: int) -> int:
        """Give a work-group's number among the active ones; the nearest one's if it is none."""
        active = self._active
        place = np.unravel_index(position, self._launch.ndrange.group_counts, order="F")
        inside = [
            min(max(int(at) - start, 0), count - 1)
            for at, start, count in zip(place, active.start, active.shape, strict=True)
        ]
        return int(np.ravel_multi_index(inside, active.shape, order="F"))

    def _time(self, windows: Sequence[WarmedWindow], *, keeps_contents: bool = True) -> None:
        if windows:
            timed, warm_up_s = time_warmed(self._launch, windows, keeps_contents=keeps_contents)
            self._timed += timed
            self._warm_up_s += warm_up_s

    def _make_run(self, at_s: float) -> SampleRun:
        launch, timed = self._launch, self._timed
        weight = launch.ndrange.work_group_count / self._active.work_group_count
        windows = [one for one in timed if one.window != PILOT_WINDOW]
        # Lines through pairs tell what a launch pays once: units fill and run empty.
        paid_once_s = max(launch.launch_overhead_s, median(find_intercepts(windows) or [0.0]))
        return SampleRun(
            kernel_digest=launch.kernel_digest,
            device_id=launch.device.id,
            ndrange=launch.ndrange,
            launches=tuple(replace(one, weight=weight) for one in timed),
            launch_overhead_s=paid_once_s,
            is_even=self._plan.is_known_even or is_even(rates_of(windows)),
            at_s=at_s,
            contention=launch.measure_contention(),
            warm_up_s=self._warm_up_s,
        )


class MomentSampler(Protocol):
    """What samples a launch moment by moment."""

    @property
    def has_more(self) -> bool:
        """Whether another moment may have anything to time."""
        ...

    def take_moment(self) -> SampleRun | None:
        """Time a few work-groups; give them, or None if there is nothing more to time."""
        ...


def is_gpu(launch: Sampled) -> bool:
    """Tell whether a launch is on a GPU."""
    return launch.device.kind is DeviceKind.GPU


def open_sampler(
    launch: PreparedLaunch, plan: SamplingPlan, *, active: GroupBox | None = None
) -> MomentSampler:
    """Give the sampler of a launch that fits its device; `active` as of `WarmedSampler`."""
    plan = fit_plan(plan, launch)
    return WarmedSampler(launch, plan, active=active) if is_gpu(launch) else Sampler(launch, plan)


def _choose_unit(work_groups: int, concurrency: int) -> int:
    """Give the work-groups of a warm-up: what fills the device, half where there are few; or 0."""
    filling = -(-concurrency // MULTIPLES[0])
    if _UNITS_PER_PAIR * filling >= work_groups:
        return 0
    return max(min(concurrency, work_groups // _LEAST_UNITS), filling)


def _note(box: GroupBox, window: int, duration_s: float) -> TimedLaunch:
    return TimedLaunch(
        box=box, window=window, duration_s=float(duration_s), clock_s=clock_of(duration_s)
    )


def _shift(box: GroupBox, by: Sequence[int]) -> GroupBox:
    return replace(box, start=tuple(a + b for a, b in zip(box.start, by, strict=True)))
