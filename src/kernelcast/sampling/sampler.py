"""Decides which work-groups to time, and times them.

The paper samples at 2 and 3 times the saturation point (sampling-svr, section 5.1). On a CPU that
is 4 and 6 work-groups, a microsecond of pure noise, so the sampling points are scaled up until
they last long enough, and spread over the index space, because work need not be even:

1. *Pilot*: launches that grow at scattered places until one lasts long enough. They tell the
   approximate rate, from which the budget in seconds follows.
2. *Survey*: short launches, one per stratum of the index space, each with a shorter one beside
   it. They tell even work from uneven, and what a launch pays once (start, cold caches, waking
   threads) beside its work-groups.
3. *Even work* gets a few long windows, in which that share is small; each is launched in two
   parts, one right behind the other, so that caches that fill, or data that settles, can be told
   from work that differs. *Uneven work* gets as many places as the budget reaches for with launches
   just long enough.
   Where the source proves that all work-groups do the same, no survey is made: a few short
   launches show what is paid once, all the rest goes into long ones. Unless one of them stays three
   times as slow as the others: work-groups that do the same may find their data far away.
4. *Repetitions*: a launch that is much slower than the others of even work, or that alone took a
   good part of what uneven work was given, is repeated on its neighbours: a disturbance does not
   repeat, a heavy region does.

No work-group runs twice: its data would be in the cache the second time.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np
import numpy.typing as npt

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
from kernelcast.sampling.sample_state import STRETCHED_BUDGET, Sampling, run_pilot
from kernelcast.sampling.windows import box_near, position_of

# In smaller index spaces the work-group that warmed up must be timed too.
_FEWEST_TO_SPARE_ONE = 8
_MOST_SURVEYED = 12
_FEWEST_SURVEYED = 3
_SURVEY_SHARE = 0.4
_ENOUGH_SURVEYED = 10
_LARGEST_SURVEY_SHARE = 0.8
_MINI_SHARE = 4
# Launches of uneven work last this many times what a launch pays once, within limits.
_TIMES_THE_INTERCEPT = 8.0
_UNEVEN_LAUNCH_S = (60e-6, 400e-6)
_MOST_WINDOWS = 96
_FEW_SINGLES = 3
_SHORTS = 4
# Work that is known to be even is taken for uneven where data make rates differ so much.
_CONTRADICTS = 3.0
# Rate of a long launch over that of short ones, beyond which they saw different work: what short
# ones pay once cannot be more than three fifths of their time.
_SAME_WORK = (0.4, 1.5)
_MOST_REPEATED = 3
_STICKS_OUT = 1.5
# Share of all time spent, beyond what its work-groups usually take.
_GOOD_PART = 0.15


def sample(launch: PreparedLaunch, plan: SamplingPlan) -> SampleRun:
    """Time a few work-groups of a launch."""
    sampling = Sampling(launch, plan, np.random.default_rng(plan.seed))
    middle = box_near(sampling.total // 2, 1, launch.ndrange.group_counts)
    if sampling.total >= _FEWEST_TO_SPARE_ONE:
        sampling.taken.append(middle)
    launch.warm_up(middle)
    launch.settle()
    short, rate_s = run_pilot(sampling)
    affordable = sampling.available_s(rate_s) / (short * rate_s)
    if affordable * _SURVEY_SHARE < _FEWEST_SURVEYED:
        _run_few(sampling, short, affordable)
    elif plan.is_known_even:
        _run_known_even(sampling, short)
    else:
        _run_survey(sampling, short, _count_survey_places(affordable))
    return SampleRun(
        kernel_digest=launch.kernel_digest,
        device_id=launch.device.id,
        ndrange=launch.ndrange,
        launches=tuple(sampling.timed),
        launch_overhead_s=_choose_overhead(sampling),
        is_even=sampling.is_even,
        contention=launch.measure_contention(),
    )


def _count_survey_places(affordable: float) -> int:
    """Give the number of places to survey that so many launches leave room for.

    Work that lies in a quarter of the index space is missed by five places in a fourth of all
    estimates, by ten in a twentieth: where there is room for few, the survey comes first.
    """
    enough = min(_ENOUGH_SURVEYED, int(affordable * _LARGEST_SURVEY_SHARE))
    return max(enough, min(_MOST_SURVEYED, int(affordable * _SURVEY_SHARE)))


def _choose_overhead(sampling: Sampling) -> float:
    """Give what a launch pays once: the kernel's own where launches are slow, else the device's.

    Where launches are quick, the samples themselves tell more than a pilot of two launches.
    """
    told_s = sampling.launch.launch_overhead_s
    is_slow = told_s > sampling.plan.min_launch_s
    return sampling.paid_once_s if is_slow else told_s


def _run_few(sampling: Sampling, short: int, affordable: float) -> None:
    """Make the most of a budget of a handful of launches; go beyond it rather than guess."""
    pilot = len(sampling.timed) - 1
    singles = sampling.run_windows([short], min(_FEW_SINGLES, max(1, int(affordable))))
    if not singles:
        return
    rates = _find_undisturbed_rates(sampling, [sampling.timed[pilot], *singles])
    is_known = sampling.plan.is_known_even and not _differ_much(rates).any()
    sampling.is_even = is_known or is_even(rates)
    if sampling.is_even and sampling.timed[pilot].box.work_group_count == short:
        # The pilot's place was not chosen to stand for a stratum; in even work any place will do.
        sampling.timed[pilot] = replace(sampling.timed[pilot], window=sampling.next_window)
        sampling.next_window += 1
    left = STRETCHED_BUDGET * sampling.plan.budget * sampling.total - sampling.work_groups
    more = int(left / short)
    if sampling.is_even and more >= 2:
        long = sampling.run_windows([short * more], 1)
        again = _repeat_slow_launches(sampling, float(median(rates)))
        sampling.is_even = is_known or _is_same_work(float(median(rates)), long, again)
    elif more > 0:
        sampling.run_windows([short], more)
    if not sampling.is_even:
        _repeat_outliers(sampling)


def _run_known_even(sampling: Sampling, short: int) -> None:
    """Run a few short launches for what is paid once, and long ones for the rest."""
    shorts = sampling.run_windows([short], _SHORTS)
    if _contradict(sampling, shorts):
        sampling.is_even = False
        _run_many(sampling, shorts)
        _repeat_outliers(sampling)
        return
    short_rate_s = float(median(rates_of(shorts or sampling.timed)))
    _run_long(sampling, short, short_rate_s)
    _repeat_slow_launches(sampling, short_rate_s)


def _contradict(sampling: Sampling, shorts: Sequence[TimedLaunch]) -> bool:
    """Tell whether some work that should take the same takes much longer, again and again."""
    if not shorts:
        return False
    rates = rates_of(shorts)
    heavy = [one for one, is_apart in zip(shorts, _differ_much(rates), strict=True) if is_apart]
    return _is_heavy_again(sampling, heavy, middle_s=_lower_median(rates))


def _differ_much(rates: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Tell which rates are no noise of even work, if they stay as they are when repeated."""
    return np.asarray(rates > _CONTRADICTS * _lower_median(rates))


def _lower_median(rates: npt.NDArray[np.float64]) -> float:
    return float(np.sort(rates)[(len(rates) - 1) // 2])


def _find_undisturbed_rates(
    sampling: Sampling, launches: Sequence[TimedLaunch]
) -> npt.NDArray[np.float64]:
    """Give the rates of a handful of launches; those that stick out are repeated beside."""
    rates = rates_of(launches)
    if is_even(rates):
        return rates
    stick_out = rates > _STICKS_OUT * median(rates)
    again = _repeat_beside(
        sampling, [one for one, does in zip(launches, stick_out, strict=True) if does]
    )
    return _take_faster(launches, again)


def _run_survey(sampling: Sampling, short: int, survey: int) -> None:
    mini = short // _MINI_SHARE // sampling.unit * sampling.unit
    timed = sampling.run_windows([mini, short] if mini else [short], survey)
    shorts = [one for one in timed if one.box.work_group_count > 2 * mini]
    places = compare_places(timed)
    heavy = [one for one in shorts if places[one.window] > _STICKS_OUT]
    sampling.is_even = is_even(np.array(list(places.values()))) and not _is_heavy_again(
        sampling, heavy, middle_s=median(rates_of(shorts))
    )
    if sampling.is_even:
        short_rate_s = float(median(rates_of(shorts)))
        long = _run_long(sampling, short, short_rate_s)
        again = _repeat_slow_launches(sampling, short_rate_s)
        warms_up = is_warming_up(find_continuations(long), sampling.launch.launch_overhead_s)
        sampling.is_even = warms_up or _is_same_work(short_rate_s, long, again)
    else:
        _run_many(sampling, timed)
        _repeat_outliers(sampling)


def _is_same_work(
    short_rate_s: float, long: Sequence[TimedLaunch], again: Sequence[TimedLaunch]
) -> bool:
    """Tell whether long launches can be the same work as short ones, less what is paid once.

    Of a long launch that was repeated beside, the faster one tells.
    """
    if not long:
        return True
    lowest, highest = _SAME_WORK
    return bool(lowest < median(_take_faster(long, again)) / short_rate_s < highest)


def _take_faster(
    launches: Sequence[TimedLaunch], again: Sequence[TimedLaunch]
) -> npt.NDArray[np.float64]:
    """Give the rate of each launch, or that of its repetition beside if that was faster."""
    repeated = dict(zip((one.window for one in again), rates_of(again), strict=True))
    return np.array(
        [
            min(rate, repeated.get(one.window, rate))
            for one, rate in zip(launches, rates_of(launches), strict=True)
        ]
    )


def _run_long(sampling: Sampling, short: int, rate_s: float) -> list[TimedLaunch]:
    """Spend what is left on a few launches, as long as possible."""
    available = sampling.available_s(rate_s) / rate_s
    launches = sampling.plan.long_launches
    while launches > 1 and available / launches < sampling.plan.ratio * short:
        launches -= 1
    long = sampling.unit * max(1, round(available / launches / sampling.unit))
    return sampling.run_long_windows(long, launches)


def _run_many(sampling: Sampling, survey: Sequence[TimedLaunch]) -> None:
    """Spend what is left on as many places as possible.

    In two rounds: a small survey may be far off the mean rate that the budget follows from.
    """
    intercept_s = median(find_intercepts(survey) or [0.0])
    shortest_s, longest_s = _UNEVEN_LAUNCH_S
    launch_s = min(max(_TIMES_THE_INTERCEPT * intercept_s, shortest_s), longest_s)
    launch_s = max(launch_s, 10 * sampling.launch.launch_overhead_s)
    seen = list(survey)
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


def _is_heavy_again(sampling: Sampling, heavy: Sequence[TimedLaunch], *, middle_s: float) -> bool:
    """Tell whether a slow place is slow again, twice, when its neighbours run.

    A picture whose work lies in a tenth of its area looks even to a survey in which one place is
    slow; a disturbed launch looks the same.
    """
    suspect = heavy[:_MOST_REPEATED]
    repeated = _repeat_beside(sampling, [*suspect, *suspect])
    slow = rates_of(repeated) > _STICKS_OUT * middle_s
    undisturbed = {one.window for one, is_slow in zip(repeated, slow, strict=True) if not is_slow}
    return any(one.window not in undisturbed for one in repeated)


def _repeat_slow_launches(sampling: Sampling, short_rate_s: float) -> list[TimedLaunch]:
    """Repeat long launches that stick out, so that the fit can tell what was disturbed.

    They stick out of the long ones, or of the short ones where there are too few long ones to
    tell: per work-group, a short launch costs more than a long one, never less.
    """
    timed = join_continuations(sampling.timed, sampling.launch.launch_overhead_s)
    largest = max(one.box.work_group_count for one in timed)
    long = [one for one in timed if one.box.work_group_count > largest // 2]
    rates = rates_of(long)
    usual_s = min(median(rates), short_rate_s)
    worst = np.argsort(rates)[::-1][:_MOST_REPEATED]
    return _repeat_beside(
        sampling, [long[index] for index in worst if rates[index] > _STICKS_OUT * usual_s]
    )


def _repeat_outliers(sampling: Sampling) -> None:
    """Repeat single launches that took a good part of all the time that uneven work was given.

    Work that differs this much is rare, a core that was taken away for milliseconds is not. The
    neighbour goes into the mean of the window, so that neither is believed alone.
    """
    timed = [one for one in sampling.timed if one.window != PILOT_WINDOW]
    times = np.array([one.duration_s for one in timed])
    usual_s = median(rates_of(timed)) * np.array([one.box.work_group_count for one in timed])
    excess = (times - usual_s) / times.sum()
    worst = np.argsort(excess)[::-1][:_MOST_REPEATED]
    _repeat_beside(sampling, [timed[index] for index in worst if excess[index] > _GOOD_PART])


def _repeat_beside(sampling: Sampling, launches: Sequence[TimedLaunch]) -> list[TimedLaunch]:
    """Run a neighbour of each launch, of the same size, as part of the same window; give them."""
    counts = sampling.launch.ndrange.group_counts
    boxes = []
    for one in launches:
        middle = position_of(one.box, counts) + one.box.work_group_count // 2
        box = sampling.reserve(middle, one.box.work_group_count)
        if box is not None:
            boxes.append((one.window, box))
    before = len(sampling.timed)
    sampling.run(boxes)
    return sampling.timed[before:]
