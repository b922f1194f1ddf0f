"""Samples of a GPU: windows that the kernel's own work-groups have warmed, at several places.

A GPU starts a launch with caches that hold other data, with all work-groups in step, and with room
in L2 for what is stored. In cycle-accurate simulations pairs of launches of 2 and 4 times P_sat,
each behind one P_sat of the work-groups before it, foretell even kernels better than the first
work-groups do (benchmarks/results/simulated_gpu). Each launch is warmed anew: what one leaves in
the caches is not the same for the shorter and for the longer one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelcast.records.ndrange import GroupBox
from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch, clock_of
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.evenness import is_even, rates_of
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.windows import find_free_box, position_of, spread_positions

MULTIPLES = (2, 4)
"""Of the unit: lengths of the two launches of a pair."""
MOST_PLACES = 4
_UNITS_PER_PAIR = sum(MULTIPLES) + len(MULTIPLES)
# A pilot and a pair, and room to place them.
_LEAST_UNITS = 2 * _UNITS_PER_PAIR


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
) -> list[TimedLaunch]:
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
    list of TimedLaunch
        One per window.
    """
    launch.settle(keeps_contents=keeps_contents)
    timed = []
    for one in windows:
        # Both at once: nothing else runs between them.
        _, duration_s = launch.time_boxes([one.warm, one.timed])
        timed.append(
            TimedLaunch(
                box=one.timed,
                window=one.window,
                duration_s=duration_s,
                clock_s=clock_of(duration_s),
            )
        )
    return timed


def plan_windows(  # noqa: PLR0913 - a launch, how much of it, and where
    launch: PreparedLaunch,
    unit: int,
    places: int,
    *,
    active: GroupBox,
    seed: int = 0,
    ran: Sequence[GroupBox] = (),
) -> list[WarmedWindow]:
    """Choose pairs of windows, spread over the work-groups that do anything.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch.
    unit : int
        Work-groups of a warm-up; a pair has `MULTIPLES` of them.
    places : int
        How many pairs, at most: no work-group is in two windows.
    active : GroupBox
        Where they may lie, see `kernelcast.features.active_groups.find_active_box`.
    seed : int
        Of the places.
    ran : sequence of GroupBox
        What ran before and must not run again.
    """
    origin = tuple(-one for one in active.start)
    taken = [_shift(one, origin) for one in ran]
    chosen: list[WarmedWindow] = []
    for window, place in enumerate(spread_positions(places, active.shape, shift=seed)):
        pair: list[WarmedWindow] = []
        for multiple in MULTIPLES:
            warm = find_free_box(place, unit, active.shape, taken, launch.order)
            if warm is None:
                break
            behind = position_of(warm, active.shape) + warm.work_group_count
            timed = find_free_box(
                behind, multiple * unit, active.shape, [*taken, warm], launch.order
            )
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


def sample_warmed(
    launch: PreparedLaunch, plan: SamplingPlan, *, active: GroupBox | None = None
) -> SampleRun | None:
    """Time a few work-groups of a launch on a GPU.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch.
    plan : SamplingPlan
        Budget and least length of a launch.
    active : GroupBox, optional
        Work-groups that do anything; all when left out.

    Returns
    -------
    SampleRun or None
        A pair of launches per place, one at least, even where the budget is less. Where some
        work-groups do nothing, each of the others weighs as much more. None where there is no room
        for a pair.
    """
    counts = launch.ndrange.group_counts
    active = active or GroupBox(start=(0,) * len(counts), shape=counts)
    total = active.work_group_count
    weight = launch.ndrange.work_group_count / total
    origin = tuple(-one for one in active.start)
    largest = total // _LEAST_UNITS
    unit = min(launch.saturation.concurrency, largest)
    planned = plan_windows(launch, unit, 1, active=active, seed=plan.seed) if unit else []
    if not planned:
        return None
    first = planned[0]
    ran = [_shift(one, origin) for one in (first.warm, first.timed)]
    spare = find_free_box(total - 1, 1, active.shape, ran, launch.order)
    if spare is None:
        return None
    launch.warm_up(_shift(spare, active.start))  # compiles, where a runtime does that late
    [pilot] = time_warmed(launch, [replace(first, window=PILOT_WINDOW)])
    rate_s = pilot.duration_s / pilot.box.work_group_count
    unit *= math.ceil(plan.min_launch_s / (MULTIPLES[0] * unit * rate_s))
    unit = min(unit, largest)
    places = min(MOST_PLACES, max(1, int(plan.budget * total / (_UNITS_PER_PAIR * unit))))
    windows = plan_windows(
        launch, unit, places, active=active, seed=plan.seed,
        ran=[_shift(one, active.start) for one in (*ran, spare)],
    )  # fmt: skip
    timed = time_warmed(launch, windows, keeps_contents=True)
    return SampleRun(
        kernel_digest=launch.kernel_digest,
        device_id=launch.device.id,
        ndrange=launch.ndrange,
        launches=tuple(replace(one, weight=weight) for one in (pilot, *timed)),
        launch_overhead_s=launch.launch_overhead_s,
        is_even=is_even(rates_of(timed or [pilot])),
    )


def _shift(box: GroupBox, by: Sequence[int]) -> GroupBox:
    return replace(box, start=tuple(a + b for a, b in zip(box.start, by, strict=True)))
