"""Decides which work-groups to time, and times them.

The paper samples at 2 and 3 times the saturation point (sampling-svr, section 5.1). On a CPU that
is 4 and 6 work-groups, a microsecond of pure noise, so the sampling points are scaled up until
they last long enough, and spread over the index space, because work need not be even:

1. *Pilot*: launches that double in size at scattered places until one lasts long enough.
   They tell the approximate rate, from which the budget in seconds follows.
2. *Windows*: one per stratum of the index space, each a shorter and a longer launch of
   consecutive work-groups side by side. What both pay once (launch, cold caches, waking threads)
   cancels in their difference. Uneven work gets more windows, even work longer ones.
3. *Doubts*: where the two launches of a window disagree more than those of the other windows,
   something else ran meanwhile; a third launch beside them decides.

No work-group runs twice: its data would be in the cache the second time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelcast.records.errors import InputError
from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import SampleRun, TimedLaunch
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.windows import find_free_box

PILOT_WINDOW = -1
"""Window index of the pilot's launches, which belong to no stratum."""

_GOLDEN = (math.sqrt(5) - 1) / 2
_FEWEST_WINDOWS = 3
_FEWEST_SINGLES = 2
_MOST_PILOT_STEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlan:
    """How much to sample.

    Parameters
    ----------
    budget : float
        Share of the predicted time that sampling may cost.
    ratio : int
        Work-groups of a window's longer launch in units of its shorter one. The paper's two
        points are as 2 to 3; a wider ratio amplifies noise less (DESIGN 3).
    min_launch_s : float
        Duration below which a launch is mostly noise, in seconds.
    max_windows : int
        Most windows; a larger budget makes them longer.
    seed : int
        Seed of the windows' places and order.

    Raises
    ------
    InputError
        If a number is out of its range.
    """

    budget: float = 0.02
    ratio: int = 4
    min_launch_s: float = 100e-6
    max_windows: int = 12
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.budget <= 1:
            msg = f"budget {self.budget}: give a share of the predicted time, above 0, at most 1"
            raise InputError(msg)
        if self.ratio < 2 or self.max_windows < _FEWEST_WINDOWS:
            msg = (
                f"ratio {self.ratio}, max_windows {self.max_windows}: give at least 2 and "
                f"{_FEWEST_WINDOWS}"
            )
            raise InputError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """What is left to run after the pilot.

    Parameters
    ----------
    sizes : tuple of int
        Work-groups of each launch of a window: a shorter and a longer one, or a single one where
        the budget does not reach for pairs.
    windows : int
        How many windows.
    """

    sizes: tuple[int, ...]
    windows: int


@dataclass(slots=True)
class _Sampling:
    """The launches of one estimate as they accumulate."""

    launch: PreparedLaunch
    plan: SamplingPlan
    taken: list[GroupBox] = field(default_factory=list)
    timed: list[TimedLaunch] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.launch.ndrange.work_group_count

    @property
    def unit(self) -> int:
        """Work-groups of the smallest launch that fills the device, if there are so many."""
        return min(self.launch.saturation.unit, max(1, self.total // 8))

    @property
    def floor_s(self) -> float:
        """Duration from which on a launch is worth timing."""
        return self.plan.min_launch_s + 4 * self.launch.launch_overhead_s

    @property
    def spent_s(self) -> float:
        return sum(one.duration_s for one in self.timed)

    def reserve(self, position: int, work_groups: int) -> GroupBox | None:
        """Take a free box near a place, or None if the index space is used up."""
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

    def run(self, boxes: Sequence[tuple[int, GroupBox]]) -> list[float]:
        """Time boxes, given with their window, one after the other."""
        durations = self.launch.time_boxes([box for _, box in boxes])
        self.timed += [
            TimedLaunch(box=box, window=window, duration_s=duration)
            for (window, box), duration in zip(boxes, durations, strict=True)
        ]
        return durations


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
    sampling = _Sampling(launch, plan)
    # Never at the origin: PoCL compiles launches with and without offset separately, and every
    # window but one has an offset.
    warm = sampling.reserve(sampling.total // 2, 1)
    if warm is not None:
        launch.warm_up(warm)
    launch.settle()
    rate_s = _run_pilot(sampling)
    _run_windows(sampling, rate_s)
    return SampleRun(
        kernel_digest=launch.kernel_digest,
        device_id=launch.device.id,
        ndrange=launch.ndrange,
        launches=tuple(sampling.timed),
        launch_overhead_s=launch.launch_overhead_s,
    )


def _run_pilot(sampling: _Sampling) -> float:
    """Grow launches until one lasts long enough; give seconds per work-group, about."""
    work_groups = sampling.unit
    most = max(1, sampling.total // 8)
    for step in range(1, _MOST_PILOT_STEPS + 1):
        position = int(sampling.total * ((0.5 + (step + sampling.plan.seed * 0.37) * _GOLDEN) % 1))
        box = sampling.reserve(position, min(work_groups, most))
        if box is None:
            break
        duration_s = sampling.run([(PILOT_WINDOW, box)])[0]
        if duration_s >= sampling.floor_s or work_groups >= most:
            break
        # Several doublings at once while far from the goal: most kernels start at microseconds.
        net_s = max(duration_s - sampling.launch.launch_overhead_s, 1e-7)
        doublings = min(5, max(1, round(math.log2(sampling.floor_s / net_s))))
        work_groups = work_groups * 2**doublings
    last = sampling.timed[-1]
    net_s = max(last.duration_s - sampling.launch.launch_overhead_s, 1e-9)
    return net_s / last.box.work_group_count


def _run_windows(sampling: _Sampling, rate_s: float) -> None:
    windows = choose_windows(
        rate_s=rate_s,
        available_s=max(sampling.plan.budget * rate_s * sampling.total - sampling.spent_s, 0.0),
        floor_s=sampling.floor_s,
        unit=sampling.unit,
        plan=sampling.plan,
    )
    boxes = []
    positions = spread_positions(windows.windows, sampling.total, seed=sampling.plan.seed)
    for window, position in enumerate(positions):
        for size in sorted(windows.sizes, reverse=True):
            box = sampling.reserve(position, size)
            if box is not None:
                boxes.append((window, box))
    # In random order: a disturbance of some milliseconds hits one launch each of several windows,
    # where the other one tells, rather than one part of the index space.
    np.random.default_rng(sampling.plan.seed).shuffle(boxes)
    sampling.run(boxes)


def choose_windows(
    *, rate_s: float, available_s: float, floor_s: float, unit: int, plan: SamplingPlan
) -> WindowPlan:
    """Choose the launches of a window and the number of windows.

    Parameters
    ----------
    rate_s : float
        Approximate seconds per work-group.
    available_s : float
        Device time left to spend, in seconds.
    floor_s : float
        Shortest launch worth timing, in seconds.
    unit : int
        Work-groups that fill the device.
    plan : SamplingPlan
        Ratio and limits.

    Returns
    -------
    WindowPlan

    Examples
    --------
    >>> choose_windows(rate_s=1e-5, available_s=4e-3, floor_s=1e-4, unit=2, plan=SamplingPlan())
    WindowPlan(sizes=(10, 40), windows=8)
    """
    short = unit * max(1, math.ceil(floor_s / (unit * rate_s)))
    pair_s = (1 + plan.ratio) * short * rate_s
    if available_s >= _FEWEST_WINDOWS * pair_s:
        windows = min(plan.max_windows, int(available_s / pair_s))
        scale = max(1, int(available_s / (pair_s * windows)))
        return WindowPlan(sizes=(short * scale, short * plan.ratio * scale), windows=windows)
    affordable = int(available_s / (short * rate_s))
    return WindowPlan(sizes=(short,), windows=max(_FEWEST_SINGLES, affordable))


def spread_positions(windows: int, total: int, *, seed: int) -> list[int]:
    """Give one place per stratum of the index space, in dispatch order.

    Places inside the strata follow the golden ratio, so that they do not fall into step with the
    rows of a two-dimensional space; their mean is the strata's middle, so that work which grows
    linearly with the work-group's number is summed without error.

    Examples
    --------
    >>> spread_positions(4, 1000, seed=0)
    [139, 313, 686, 860]
    """
    places = (0.5 + (np.arange(windows) + seed) * _GOLDEN) % 1.0
    places = np.clip(0.5 + (places - places.mean()) * 0.8, 0.02, 0.98)
    return [int((window + place) / windows * total) for window, place in enumerate(places)]
