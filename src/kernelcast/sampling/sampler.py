"""Decides which work-groups to time, and times them.

The paper samples at 2 and 3 times the saturation point (sampling-svr, section 5.1). On a CPU that
is 4 and 6 work-groups, a microsecond of pure noise, so the sampling points are scaled up until
they last long enough, and spread over the index space, because work need not be even:

1. *Pilot*: launches that grow at scattered places until one lasts long enough. They tell the
   approximate rate, from which the budget in seconds follows.
2. *Scouts*: short launches, one per stratum of the index space, each with a shorter one beside
   it. They tell even work from uneven, and what a launch pays once (start, cold caches, waking
   threads) beside its work-groups.
3. *Even work* gets a few long windows, in which that share is small; each is launched in two
   parts, one right behind the other, so that caches that fill, or data that settles, can be told
   from work that differs. *Uneven work* gets as many places as the budget reaches for with launches
   just long enough.
4. *Doubts*: a launch that is much slower than the others of even work is repeated on its
   neighbours: a disturbance does not repeat, a heavy region does.

No work-group runs twice: its data would be in the cache the second time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np

from kernelcast.records.device import DispatchOrder
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import (
    PILOT_WINDOW,
    SampleRun,
    TimedLaunch,
    find_continuations,
    find_intercepts,
    is_warming_up,
    join_continuations,
)
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.evenness import compare_places, is_even, rates_of
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.windows import (
    GOLDEN,
    box_near,
    find_free_box,
    position_of,
    split_box,
    spread_positions,
)

_MOST_PILOT_STEPS = 40
# A launch so many times as long as the shortest worth timing is no mere start.
_SURELY_LONG = 5
# In smaller index spaces the work-group that warmed up must be timed too.
_FEWEST_TO_SPARE_ONE = 8
_MOST_SCOUTS = 12
_FEWEST_SCOUTS = 3
_SCOUTS_SHARE = 0.4
# A launch of unknown work is at most this share of the work-groups that the budget allows.
_SHARE_OF_A_SCOUT = 1 / 16
_MINI_SHARE = 4
# Launches of uneven work last this many times what a launch pays once, within limits.
_TIMES_THE_INTERCEPT = 8.0
_UNEVEN_LAUNCH_S = (60e-6, 400e-6)
_MOST_WINDOWS = 96
# Samples pay for cold caches what the whole launch does not: plan for less than the budget.
_PLANNED = 0.8
_FEW_SINGLES = 3
# Rate of a long launch over that of short ones, beyond which they saw different work: what short
# ones pay once cannot be more than three fifths of their time.
_SAME_WORK = (0.4, 1.5)
# Windows of so many units are launched in two parts, the first with this share of them.
_FEWEST_TO_SPLIT = 6
_LEAD = 1 / 3
_BALANCED = 4
_HANDFUL = 5
# Uneven work, and work of few work-groups, may cost so many times the budget: a handful of places
# would tell nothing.
_STRETCHED_BUDGET = 1.5
_MOST_DOUBTS = 3
_STICKS_OUT = 1.5


@dataclass(slots=True)
class _Sampling:
    """The launches of one estimate as they accumulate."""

    launch: PreparedLaunch
    plan: SamplingPlan
    rng: np.random.Generator
    taken: list[GroupBox] = field(default_factory=list)
    timed: list[TimedLaunch] = field(default_factory=list)
    next_window: int = 0
    is_even: bool = True

    @property
    def total(self) -> int:
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
        return self.plan.min_launch_s + 4 * self.launch.launch_overhead_s

    @property
    def spent_s(self) -> float:
        return sum(one.duration_s for one in self.timed)

    @property
    def most(self) -> int:
        """Work-groups of the largest launch while the work is still unknown."""
        affordable = int(self.plan.budget * self.total * _SHARE_OF_A_SCOUT)
        return max(self.unit, affordable // self.unit * self.unit)

    @property
    def work_groups(self) -> int:
        return sum(one.box.work_group_count for one in self.timed)

    def available_s(self, rate_s: float) -> float:
        """Device time left to spend if a work-group takes `rate_s`."""
        budget = _PLANNED * self.plan.budget * (1 if self.is_even else _STRETCHED_BUDGET)
        return max(budget * rate_s * self.total - self.spent_s, 0.0)

    def reserve(self, position: int, work_groups: int) -> GroupBox | None:
        """Take a free box around a place, or None if there is none."""
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

    def run(self, boxes: Sequence[tuple[int, GroupBox]]) -> None:
        """Time boxes, given with their window, one after the other."""
        durations = self.launch.time_boxes([box for _, box in boxes])
        self.timed += [
            TimedLaunch(box=box, window=window, duration_s=duration)
            for (window, box), duration in zip(boxes, durations, strict=True)
        ]

    def run_windows(self, sizes: Sequence[int], windows: int) -> list[TimedLaunch]:
        """Time one launch of each size in each of so many strata; give these launches."""
        positions = spread_positions(
            windows, self.launch.ndrange.group_counts, shift=self.plan.seed + self.next_window
        )
        boxes = []
        for position in positions:
            for size in sorted(sizes, reverse=True):
                box = self.reserve(position, size)
                if box is not None:
                    boxes.append([(self.next_window, box)])
            self.next_window += 1
        return self._run_in_random_order(boxes)

    def run_long_windows(self, size: int, windows: int) -> list[TimedLaunch]:
        """Time one window in each of so many strata, in two parts where it is large enough."""
        positions = spread_positions(
            windows, self.launch.ndrange.group_counts, shift=self.plan.seed + self.next_window
        )
        groups = []
        for position in positions:
            box = self.reserve(position, size)
            if box is not None:
                is_large = box.work_group_count >= _FEWEST_TO_SPLIT * self.unit
                parts = split_box(box, _LEAD) if is_large else (box,)
                groups.append([(self.next_window, part) for part in parts])
            self.next_window += 1
        return self._run_in_random_order(groups)

    def _run_in_random_order(
        self, groups: Sequence[Sequence[tuple[int, GroupBox]]]
    ) -> list[TimedLaunch]:
        """Time groups of boxes, each group's one right behind the other.

        In random order: a disturbance of some milliseconds hits one launch each of several
        windows, where the other one tells, rather than one part of the index space.
        """
        order = self.rng.permutation(len(groups))
        before = len(self.timed)
        self.run([box for index in order for box in groups[index]])
        follows = [place > 0 for index in order for place in range(len(groups[index]))]
        self.timed[before:] = [
            replace(one, is_continuation=goes_on)
            for one, goes_on in zip(self.timed[before:], follows, strict=True)
        ]
        return self.timed[before:]


def sample(launch: PreparedLaunch, plan: SamplingPlan) -> SampleRun:
    """Time a few work-groups of a launch.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch, on a device or from a recording.
    plan : SamplingPlan
        How much to sample.

    Returns
    -------
    SampleRun

    Raises
    ------
    DeviceError
        If the device fails.
    """
    sampling = _Sampling(launch, plan, np.random.default_rng(plan.seed))
    middle = box_near(sampling.total // 2, 1, launch.ndrange.group_counts)
    if sampling.total >= _FEWEST_TO_SPARE_ONE:
        sampling.taken.append(middle)
    launch.warm_up(middle)
    launch.settle()
    short, rate_s = _run_pilot(sampling)
    affordable = sampling.available_s(rate_s) / (short * rate_s)
    if affordable * _SCOUTS_SHARE < _FEWEST_SCOUTS:
        _run_few(sampling, short, affordable)
    else:
        scouts = min(_MOST_SCOUTS, int(affordable * _SCOUTS_SHARE))
        _run_scouts_and_more(sampling, short, scouts)
    return SampleRun(
        kernel_digest=launch.kernel_digest,
        device_id=launch.device.id,
        ndrange=launch.ndrange,
        launches=tuple(sampling.timed),
        launch_overhead_s=launch.launch_overhead_s,
        is_even=sampling.is_even,
    )


def _run_pilot(sampling: _Sampling) -> tuple[int, float]:
    """Grow launches until one lasts long enough.

    Returns the work-groups of such a launch and the seconds per work-group, about.
    """
    work_groups, is_second = sampling.unit, False
    for step in range(1, _MOST_PILOT_STEPS + 1):
        place = (0.5 + (step + sampling.plan.seed * 0.37) * GOLDEN) % 1
        box = sampling.reserve(int(sampling.total * place), work_groups)
        if box is None:
            break
        sampling.run([(PILOT_WINDOW, box)])
        duration_s = sampling.timed[-1].duration_s
        if sampling.floor_s <= duration_s < _SURELY_LONG * sampling.floor_s and not is_second:
            is_second = True  # waking threads alone may last that long: look again
            continue
        net_s = duration_s - sampling.launch.launch_overhead_s
        # A slow launch hides what a few work-groups take: then the budget has to wait.
        overhead_s = sampling.launch.launch_overhead_s
        is_hidden = overhead_s > sampling.plan.min_launch_s and net_s < overhead_s
        most = max(1, sampling.total // 8) if is_hidden else sampling.most
        if duration_s >= sampling.floor_s or work_groups >= most:
            break
        is_second = False
        # Several doublings at once while far from the goal: most kernels start at microseconds.
        doublings = min(5, max(1, round(math.log2(sampling.floor_s / max(net_s, 1e-7)))))
        work_groups = min(work_groups * 2**doublings, most)
    last = sampling.timed[-1]
    net_s = max(last.duration_s - sampling.launch.launch_overhead_s, 0.1 * last.duration_s)
    rate_s = net_s / last.box.work_group_count
    enough = sampling.unit * math.ceil(sampling.floor_s / (sampling.unit * rate_s))
    largest = max(sampling.most, last.box.work_group_count)
    return min(max(enough, sampling.unit), largest), rate_s


def _run_few(sampling: _Sampling, short: int, affordable: float) -> None:
    """Make the most of a budget of a handful of launches; go beyond it rather than guess."""
    pilot = len(sampling.timed) - 1
    singles = sampling.run_windows([short], min(_FEW_SINGLES, max(1, int(affordable))))
    if not singles:
        return
    sampling.is_even = is_even(rates_of([sampling.timed[pilot], *singles]))
    if sampling.is_even and sampling.timed[pilot].box.work_group_count == short:
        # The pilot's place was not chosen to stand for a stratum; in even work any place will do.
        sampling.timed[pilot] = replace(sampling.timed[pilot], window=sampling.next_window)
        sampling.next_window += 1
    left = _STRETCHED_BUDGET * sampling.plan.budget * sampling.total - sampling.work_groups
    more = int(left / short)
    if sampling.is_even and more >= 2:
        long = sampling.run_windows([short * more], 1)
        sampling.is_even = _is_same_work(singles, long)
    elif more > 0:
        sampling.run_windows([short], more)


def _run_scouts_and_more(sampling: _Sampling, short: int, scouts: int) -> None:
    mini = short // _MINI_SHARE // sampling.unit * sampling.unit
    timed = sampling.run_windows([mini, short] if mini else [short], scouts)
    shorts = [one for one in timed if one.box.work_group_count > 2 * mini]
    places = compare_places(timed)
    heavy = [one for one in shorts if places[one.window] > _STICKS_OUT]
    sampling.is_even = is_even(np.array(list(places.values()))) and not _is_heavy_again(
        sampling, heavy, middle_s=median(rates_of(shorts))
    )
    if sampling.is_even:
        long = _run_long(sampling, short, float(median(rates_of(shorts))))
        _settle_doubts(sampling)
        warms_up = is_warming_up(find_continuations(long), sampling.launch.launch_overhead_s)
        sampling.is_even = warms_up or _is_same_work(shorts, long)
    else:
        _run_many(sampling, timed)


def _is_same_work(short: Sequence[TimedLaunch], long: Sequence[TimedLaunch]) -> bool:
    """Tell whether long launches can be the same work as short ones, less what is paid once."""
    if not long:
        return True
    lowest, highest = _SAME_WORK
    return bool(lowest < median(rates_of(long)) / median(rates_of(short)) < highest)


def _run_long(sampling: _Sampling, short: int, rate_s: float) -> list[TimedLaunch]:
    """Spend what is left on a few launches, as long as possible."""
    available = sampling.available_s(rate_s) / rate_s
    launches = sampling.plan.long_launches
    while launches > 1 and available / launches < sampling.plan.ratio * short:
        launches -= 1
    long = sampling.unit * max(1, round(available / launches / sampling.unit))
    return sampling.run_long_windows(long, launches)


def _run_many(sampling: _Sampling, scouts: Sequence[TimedLaunch]) -> None:
    """Spend what is left on as many places as possible.

    In two rounds: a few scouts may be far off the mean rate that the budget follows from.
    """
    intercept_s = median(find_intercepts(scouts) or [0.0])
    shortest_s, longest_s = _UNEVEN_LAUNCH_S
    launch_s = min(max(_TIMES_THE_INTERCEPT * intercept_s, shortest_s), longest_s)
    launch_s = max(launch_s, 10 * sampling.launch.launch_overhead_s)
    seen = list(scouts)
    for share in (0.5, 1.0):
        rate_s = _mean_rate_s(seen)
        size = sampling.unit * max(1, round(launch_s / (rate_s * sampling.unit)))
        affordable = int(share * sampling.available_s(rate_s) / (rate_s * size))
        most = _MOST_WINDOWS // 2
        if affordable > most:
            size = sampling.unit * max(1, size * affordable // most // sampling.unit)
        if affordable:
            seen += sampling.run_windows([size], min(affordable, most))


def _mean_rate_s(launches: Sequence[TimedLaunch]) -> float:
    groups = sum(one.box.work_group_count for one in launches)
    return sum(one.duration_s for one in launches) / groups


def _is_heavy_again(sampling: _Sampling, heavy: Sequence[TimedLaunch], *, middle_s: float) -> bool:
    """Tell whether a slow place is slow again, twice, when its neighbours run.

    A picture whose work lies in a tenth of its area looks even to scouts of which one is slow; a
    disturbed scout looks the same.
    """
    before = len(sampling.timed)
    doubted = heavy[:_MOST_DOUBTS]
    _repeat_beside(sampling, [*doubted, *doubted])
    repeated = sampling.timed[before:]
    slow = rates_of(repeated) > _STICKS_OUT * middle_s
    calm = {one.window for one, is_slow in zip(repeated, slow, strict=True) if not is_slow}
    return any(one.window not in calm for one in repeated)


def _settle_doubts(sampling: _Sampling) -> None:
    """Repeat long launches that stick out, so that the fit can tell what was disturbed."""
    timed = join_continuations(sampling.timed, sampling.launch.launch_overhead_s)
    largest = max(one.box.work_group_count for one in timed)
    long = [one for one in timed if one.box.work_group_count > largest // 2]
    rates = rates_of(long)
    worst = np.argsort(rates)[::-1][:_MOST_DOUBTS]
    _repeat_beside(
        sampling, [long[index] for index in worst if rates[index] > _STICKS_OUT * median(rates)]
    )


def _repeat_beside(sampling: _Sampling, launches: Sequence[TimedLaunch]) -> None:
    """Run a neighbour of each launch, of the same size, as part of the same window."""
    counts = sampling.launch.ndrange.group_counts
    boxes = []
    for one in launches:
        middle = position_of(one.box, counts) + one.box.work_group_count // 2
        box = sampling.reserve(middle, one.box.work_group_count)
        if box is not None:
            boxes.append((one.window, box))
    sampling.run(boxes)
