"""Decides which work-groups to time, and times them, a moment at a time.

What makes samples scatter is the moment more than their number: two moments of a few launches say
more than one moment of many. The first moment finds out what kind of work it is; each further one
takes the same again at new places.

1. *Pilot*: launches that grow at scattered places until one lasts long enough. They tell the
   approximate rate, from which the budget in seconds follows.
2. *Survey*: short launches, one per stratum of the index space, that tell even work from uneven; a
   few where the source proves that all work-groups do the same, since these may still find their
   data far away.
3. *Even work* gets one window at each moment, launched in parts, each right behind the one before
   it: the paper's line through P1 and P2 (sampling-svr, section 5.1), in one place. The first part
   finds neither its data nor the translations of its addresses in any cache, the later ones do as
   most of the whole launch does. A window is of 8 units, where a unit fills the device as often as
   needed to be timed: on a CPU the paper's 2 and 3 times the saturation point are a microsecond of
   noise.
   *Uneven work* gets as many places as a moment's share of the budget reaches for, with launches
   just long enough.
   *Short launches of unknown work* get no survey and a few longer launches all over: what is spent
   on finding out is spent on caches that are cold, and one place may be next to no work.
4. *Repetitions*: a launch that alone took a good part of what uneven work was given is repeated
   on its neighbours: a disturbance does not repeat, a heavy region does.

No work-group runs twice: its data would be in the cache the second time.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kernelcast.records.samples import PILOT_WINDOW, SampleRun, TimedLaunch
from kernelcast.sampling.backend import PreparedLaunch
from kernelcast.sampling.evenness import is_even, rates_of
from kernelcast.sampling.plan import SamplingPlan
from kernelcast.sampling.repetitions import is_heavy_again, repeat_outliers
from kernelcast.sampling.sample_state import Sampling, run_pilot
from kernelcast.sampling.windows import box_near

# In smaller index spaces the work-group that warmed up must be timed too.
_FEWEST_TO_SPARE_ONE = 8
_FEWEST_SURVEYED = 3
# Work that lies in a quarter of the index space is missed by five places in a fourth of all
# estimates, by ten in a twentieth.
_SURVEYED = 10
_SURVEYED_IF_KNOWN = 3
# A launch that finds caches cold takes so many times as long as one behind it, or more.
_COLD = 1.15
# A window of even work is of so many units, launched in so many parts.
_UNITS = 8
_PARTS = 3
# A unit lasts so long, in seconds: less is noise, more says no more.
_UNIT_S = (0.3e-3, 2e-3)
# Short kernels get shorter units; a window may still cost so many times a moment's share.
_STRETCHED_WINDOW = 1.5
# And so many times what a launch pays once.
_TIMES_PAID_ONCE = 1.3
# A window takes at most this share of the index space; of launches that are short, the second one.
_LARGEST_SHARES = (1 / 8, 1 / 4)
# Launches of uneven work last this many times what a launch pays once, within limits.
_TIMES_THE_INTERCEPT = 8.0
_UNEVEN_LAUNCH_S = (60e-6, 400e-6)
_MOST_WINDOWS = 96
# Short launches get so many longer ones at most, twice a moment: short ones find caches cold.
_MOST_LONG_WINDOWS = 4
_FEW_SINGLES = 3
# Short and long launches where all samples count as work.
_FEW_PLACES, _LONG_PLACES = 4, 2
_FEW_RATES = 5
# Places so much slower than the others are looked at again: work that is known to be even is
# taken for uneven where data make rates differ so much.
_STICKS_OUT, _CONTRADICTS = 1.5, 3.0


class Sampler:
    """Samples a launch, a moment at a time.

    Parameters
    ----------
    launch : PreparedLaunch
        The launch; nobody else may use it meanwhile.
    plan : SamplingPlan
        How much to sample.
    """

    def __init__(self, launch: PreparedLaunch, plan: SamplingPlan) -> None:
        self._sampling = Sampling(launch, plan, np.random.default_rng(plan.seed))
        self._short = 0
        """Work-groups of a launch worth timing."""
        self._rate_s = self._usual_rate_s = 0.0
        """Mean and median of the short launches."""
        self._has_room = True
        self._is_warmed = False
        """Whether launches at a new place are slow until caches hold what they need."""

    @property
    def has_more(self) -> bool:
        """Whether another moment may have anything to time."""
        return True

    def take_moment(self) -> SampleRun | None:
        """Time a few work-groups; give them, or None if all were timed before."""
        sampling = self._sampling
        before, at_s = len(sampling.timed), time.time()
        sampling.first = before
        if sampling.moments == 0:
            self._begin()
        else:
            sampling.launch.settle(keeps_contents=True)
        if sampling.is_spread:
            self._take_spread()
        else:
            self._take_even_or_many()
        sampling.moments += 1
        launches = tuple(sampling.timed[before:])
        if not launches:
            return None
        return _make_run(sampling, launches, at_s)

    def _take_spread(self) -> None:
        """Run launches all over, by which work is even or not; those of all moments tell."""
        sampling = self._sampling
        before = len(sampling.timed)
        self._take_many()
        if len(sampling.timed) == before:
            self._take_few()
        places = [one for one in sampling.timed if one.window != PILOT_WINDOW]
        if len(places) < _FEWEST_SURVEYED:
            pilot = [one for one in sampling.timed if one.window == PILOT_WINDOW]
            places = [*pilot[-1:], *places]
        self._judge(places)

    def _take_even_or_many(self) -> None:
        """Run what suits the work, as far as budget and index space have room for it."""
        seems_even = self._sampling.is_even
        if seems_even and self._can_pay_window() and self._take_window():
            return
        if seems_even or not self._has_room:
            self._take_few()
        else:
            self._take_many()

    def _begin(self) -> None:
        """Warm up, and find out what work it is; of a short launch the samples themselves tell."""
        sampling = self._sampling
        self._short, self._rate_s = _open(sampling)
        sampling.is_spread = sampling.is_short and not sampling.plan.is_known_even
        if sampling.is_spread:
            # A pilot that met heavy work would leave nothing for the rest.
            sampling.first = len(sampling.timed)
            return
        last_of_pilot = sampling.timed[-1]
        is_known = sampling.plan.is_known_even
        # Half of the budget of even work is for the window.
        affordable = int(self._affordable / 2)
        if is_known:
            places = min(_SURVEYED_IF_KNOWN, affordable // 2)
        else:
            is_cheap = affordable > 1 and not sampling.is_slow
            places = min(_SURVEYED, max(affordable, _FEW_RATES if is_cheap else 1))
        shorts = self._look(places)
        if len(shorts) < _FEWEST_SURVEYED:
            # The pilot may have seen the lightest work-groups of all.
            shorts = [last_of_pilot, *shorts]
            self._rate_s = float(rates_of(shorts).mean())
            more = min(_SURVEYED, int(self._affordable / 2))
            self._has_room = more >= _FEWEST_SURVEYED
            if self._has_room and not is_known:
                shorts = self._look(more) or shorts
        self._rate_s = float(rates_of(shorts).mean())
        self._judge(shorts)

    def _look(self, places: int) -> list[TimedLaunch]:
        """Run a short launch at places all over, each behind another one that finds caches cold.

        Where launches are slow, a short one lasts too long for what caches hold to matter.
        """
        sampling = self._sampling
        before = len(sampling.timed)
        shorts = sampling.run_windows(self._short, places, is_warmed=not sampling.is_slow)
        leads = [one for one in sampling.timed[before:] if one not in shorts]
        if leads and shorts:
            ratio = _lower_median(rates_of(leads)) / _lower_median(rates_of(shorts))
            self._is_warmed = ratio > _COLD
        return shorts

    @property
    def _affordable(self) -> float:
        """Launches worth timing that the budget has room for."""
        return self._sampling.available_s(self._rate_s) / (self._short * self._rate_s)

    def _judge(self, shorts: Sequence[TimedLaunch]) -> None:
        """Tell even work from uneven by short launches at places all over the index space."""
        sampling = self._sampling
        rates = rates_of(shorts)
        self._usual_rate_s = _lower_median(rates)
        is_known = sampling.plan.is_known_even
        most = (_CONTRADICTS if is_known else _STICKS_OUT) * self._usual_rate_s
        new = sampling.timed[sampling.first :]
        suspects = [
            one for one, rate in zip(shorts, rates, strict=True) if rate > most and one in new
        ]
        is_heavy = is_heavy_again(sampling, suspects, most)
        if len(shorts) < _FEW_RATES:  # of more, the median leaves disturbed ones out
            rates = rates[rates <= most]
        sampling.is_even = not (is_heavy or sampling.plan.is_known_uneven) and bool(
            is_known or is_even(rates)
        )

    def _take_window(self) -> bool:
        """Run a window of even work in parts, one right behind the other; False without room."""
        sampling = self._sampling
        before = len(sampling.timed)
        work_groups = _UNITS * self._choose_unit()
        parts = sampling.run_in_parts(work_groups, _PARTS)
        while not parts and sampling.moments and self._is_work(work_groups // 2):
            work_groups //= 2  # no place is free for so many
            parts = sampling.run_in_parts(work_groups, _PARTS)
        if sampling.moments or not parts:
            return bool(parts)
        most = _CONTRADICTS if sampling.plan.is_known_even else _STICKS_OUT
        sampling.is_even = bool(rates_of(parts).min() <= most * self._usual_rate_s)
        if not sampling.is_even:
            after = len(sampling.timed)
            self._take_many()
            if not any(one.window != PILOT_WINDOW for one in sampling.timed[after:]):
                return True  # the window is all there is
        # Short launches tell less than a window of even work, and a window less than they do else.
        useless = slice(0, before) if sampling.is_even else slice(before, before + len(parts))
        sampling.timed[useless] = [
            replace(one, window=PILOT_WINDOW) for one in sampling.timed[useless]
        ]
        return True

    def _can_pay_window(self) -> bool:
        """Tell whether index space and budget have room for a window of even work."""
        sampling = self._sampling
        work_groups = _UNITS * self._choose_unit()
        fits = work_groups <= 2 * self._largest_share * sampling.total
        most_s = 2 * _STRETCHED_WINDOW * sampling.share_s(self._rate_s)
        is_paid = work_groups * self._rate_s <= most_s
        return fits and is_paid and (not sampling.is_short or self._is_work(work_groups))

    def _is_work(self, work_groups: int) -> bool:
        """Tell whether each part of a window is longer than what a launch pays once."""
        window_s = work_groups * self._rate_s
        return work_groups >= _PARTS and window_s >= _PARTS * self._sampling.paid_once_s

    @property
    def _windows(self) -> int:
        """Launches so far that are not the pilot's."""
        return sum(one.window != PILOT_WINDOW for one in self._sampling.timed)

    @property
    def _largest_share(self) -> float:
        """Share of the index space that a window may take."""
        return _LARGEST_SHARES[self._sampling.is_short]

    def _choose_unit(self) -> int:
        """Give the work-groups of a unit: what fills the device, as often as needed."""
        sampling = self._sampling
        least_s, most_s = _UNIT_S
        share_s = sampling.share_s(self._rate_s) / _UNITS
        unit_s = max(min(least_s, _STRETCHED_WINDOW * share_s), min(share_s, most_s))
        unit_s = max(unit_s, _TIMES_PAID_ONCE * sampling.paid_once_s)
        filled = sampling.launch.saturation.concurrency
        most = int(self._largest_share * sampling.total / _UNITS)
        wanted = filled * math.ceil(unit_s / (self._rate_s * filled))
        return max(1, min(wanted, most // filled * filled or most))

    def _take_many(self) -> None:
        """Run launches at as many places as possible.

        In two rounds: a small survey may be far off the mean rate that the budget follows from.
        """
        sampling = self._sampling
        shortest_s, longest_s = _UNEVEN_LAUNCH_S
        launch_s = min(max(_TIMES_THE_INTERCEPT * sampling.intercept_s, shortest_s), longest_s)
        launch_s = max(launch_s, 10 * sampling.launch.launch_overhead_s)
        times = 2 if self._is_warmed else 1
        most = _MOST_LONG_WINDOWS if sampling.is_spread else _MOST_WINDOWS // 2
        for share in (0.5, 1.0):
            if sampling.is_spread:
                launch_s = min(launch_s, sampling.available_s(self._rate_s) / 2 / most)
            size = sampling.unit * max(1, round(launch_s / (self._rate_s * sampling.unit)))
            cost_s = times * self._rate_s * size
            affordable = int(share * sampling.available_s(self._rate_s) / cost_s)
            if affordable > most:
                size = sampling.unit * max(1, size * affordable // most // sampling.unit)
            if affordable:
                sampling.run_windows(size, min(affordable, most), is_warmed=self._is_warmed)
                self._rate_s = _mean_rate_s(sampling.timed)
        if not sampling.is_spread:
            repeat_outliers(sampling)

    def _take_few(self) -> None:
        """Run what a budget of a handful of launches allows; the first moment has run some."""
        sampling = self._sampling
        launches = int(self._affordable)
        if sampling.moments:
            launches = max(1, min(_FEW_SINGLES, launches) if sampling.is_even else launches)
        elif sampling.is_even:
            # Of a short launch the pilot has spent what nobody notices, on cold caches.
            has_seen_little = self._windows < _FEW_SINGLES and sampling.is_short
            launches = _FEW_SINGLES if has_seen_little else 0
        size = self._short
        while not sampling.run_windows(size, launches, is_warmed=self._is_warmed):
            size //= 2  # no place is free for so many
            if not size or not sampling.moments:
                return


def sample_places(launch: PreparedLaunch, plan: SamplingPlan) -> SampleRun:
    """Time launches at places all over, where samples are work that counts anyway.

    Short ones tell whether work is even. Two long ones follow if it is, and else as many short ones
    as the budget reaches for; none only warms caches up.
    """
    sampling = Sampling(launch, replace(plan, moments=1), np.random.default_rng(plan.seed))
    at_s = time.time()
    short, rate_s = _open(sampling)
    shorts = sampling.run_windows(short, _FEW_PLACES) or sampling.timed
    rates = rates_of(shorts)
    sampling.is_even = bool(rates.max() <= _CONTRADICTS * _lower_median(rates))
    rate_s = float(rates.mean())
    affordable = sampling.available_s(rate_s) / rate_s
    if sampling.is_even:
        long = sampling.unit * max(1, int(affordable / _LONG_PLACES / sampling.unit))
        sampling.run_windows(max(short, long), _LONG_PLACES)
    else:
        sampling.run_windows(short, int(affordable / short))
    return _make_run(sampling, tuple(sampling.timed), at_s)


def sample(launch: PreparedLaunch, plan: SamplingPlan) -> SampleRun:
    """Time a few work-groups of a launch in one moment, for the whole of a plan's budget."""
    run = Sampler(launch, replace(plan, moments=1)).take_moment()
    if run is None:  # the first moment of a launch has work-groups
        msg = "the first moment timed nothing"
        raise AssertionError(msg)
    return run


def _open(sampling: Sampling) -> tuple[int, float]:
    """Warm up; give the work-groups of a launch worth timing, and the seconds of each, about."""
    launch = sampling.launch
    middle = box_near(sampling.total // 2, 1, launch.ndrange.group_counts)
    if sampling.total >= _FEWEST_TO_SPARE_ONE:
        sampling.taken.append(middle)
    launch.warm_up(middle)
    launch.settle()
    return run_pilot(sampling)


def _make_run(sampling: Sampling, launches: tuple[TimedLaunch, ...], at_s: float) -> SampleRun:
    return SampleRun(
        kernel_digest=sampling.launch.kernel_digest,
        device_id=sampling.launch.device.id,
        ndrange=sampling.launch.ndrange,
        launches=launches,
        launch_overhead_s=_choose_overhead(sampling),
        is_even=sampling.is_even,
        at_s=at_s,
        contention=sampling.launch.measure_contention(),
    )


def _choose_overhead(sampling: Sampling) -> float:
    """Give what a launch pays once: the kernel's own where launches are slow, else the device's.

    Where launches are quick, the samples themselves tell more than a pilot of two launches.
    """
    return sampling.paid_once_s if sampling.is_slow else sampling.launch.launch_overhead_s


def _lower_median(rates: npt.NDArray[np.float64]) -> float:
    return float(np.sort(rates)[(len(rates) - 1) // 2])


def _mean_rate_s(launches: Sequence[TimedLaunch]) -> float:
    windows = [one for one in launches if one.window != PILOT_WINDOW] or launches
    groups = sum(one.box.work_group_count for one in windows)
    return sum(one.duration_s for one in windows) / groups
