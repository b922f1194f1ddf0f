"""What was observed of one launch: its usual time, what is not believed, and whether it shifted.

An observation contradicts an estimate that differs from it by a factor of more than 4, or of more
than twice the estimate's interval on the logarithmic scale where that is wider. A whole run on a
busy machine takes up to 3.5 times what samples say, and the worst bias of samples that was met is a
factor of 2.6: what is nearer than a factor of 4 may well be true.

What contradicts physics is impossible, however often it is observed. So is what is that much less
than samples say on a device whose events tell wrong times.

An observation that contradicts what is known, or sticks out of what is believed by more than 3.5
deviations, is set aside until it repeats: three that agree within a quarter, with nothing between
them that was believed, say that the launch takes another time. Runs of one moment share its error,
and a caller that reports wrong times reports a batch of them, so that contradictions count as
repeated only if they lie at least a second apart. Where nothing but observations is known and they
contradict each other, more moments outvote fewer; within one moment, more observations do.
"""

import math
import os
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import NormalDist, median, median_high, median_low
from typing import Final

from cachetools import TTLCache

from kernelcast.launches.machines import find_sound_machine
from kernelcast.models.linear import student_quantile
from kernelcast.predictor.answering.processes import Executor, ModelTask, annotate
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import KernelcastError
from kernelcast.records.estimates import Estimate, Interval, Tier
from kernelcast.records.explanation import HistoryFacts, SetAside
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.records.observation import Observation, ObservationFlag
from kernelcast.records.problem import LaunchIdentity, Problem

_FAR: Final = 4.0
"""Factor beyond which times contradict each other."""
_SAMPLES: Final = "samples of the launch say"
_MODEL: Final = "the analytic model says"
_SOURCES: Final = {
    Tier.ANALYTIC: _MODEL,
    Tier.LEARNED: "a model of one's own says",
    Tier.SIZES: "other sizes of the kernel say",
}
# Measured peaks are beaten by faster clocks and by kernels that mix loads and stores.
_PEAK_SLACK: Final = 2.0
RECENT: Final = 20
"""Observations that an answer rests on at most."""
NO_HISTORY: Final = "this launch was not observed before"
NOT_BELIEVED: Final = "what was observed of this launch is not believed"
_REPEATS: Final = 3
"""Times that one which is set aside must be seen to be believed."""
_LEAST_DEVIATION: Final = 0.01
"""Repeats on another day differ by at least so much, as a standard deviation of logarithms."""
_DEVIATION_TO_NOISE: Final = NormalDist().inv_cdf(0.9)
"""Half the 10-90 % spread of normal logarithms, in deviations."""
_PRIOR_OBSERVATIONS: Final = 3
"""So many observations' worth is the prior knowledge of the deviation."""
_MOST_NAMED: Final = 3
_KEPT_APART: Final = frozenset({ObservationFlag.FIRST_LAUNCH, ObservationFlag.CONTAMINATED})
DOUBTED: Final = frozenset({ObservationFlag.DOUBTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What else than observations says of a launch's time: an estimate, or a lower bound alone."""

    text: str
    seconds: float
    low_s: float
    high_s: float = math.inf
    source: str = ""
    """Whose estimate it is; empty of a bound."""
    is_certain: bool = False
    """Whether nothing below is believed, however often it repeats."""

    def holds(self, seconds: float) -> bool:
        return self.low_s <= seconds <= self.high_s


def claim(
    seconds: float, factor: float = _FAR, source: str = _SAMPLES, *, by_clock: bool = False
) -> Claim:
    """Claim a time within a factor; `by_clock` where the device's events tell wrong times."""
    hint = (
        " by the host's clock, and this device's events tell wrong times: report seconds by the "
        "clock"
    )
    return Claim(
        text=f"{source} {seconds:.3g} s{hint if by_clock else ''}",
        seconds=seconds,
        low_s=seconds / factor,
        high_s=seconds * factor,
        source=source,
        is_certain=by_clock,
    )


def expect(estimate: Estimate, *, by_clock: bool = False) -> Claim:
    interval = estimate.interval
    width = max(math.log(interval.high / interval.seconds),
                math.log(interval.seconds / interval.low))  # fmt: skip
    factor = max(_FAR, math.exp(min(2.0 * width, 50.0)))
    source = _SOURCES.get(estimate.tier, _SAMPLES)
    return claim(interval.seconds, factor, source, by_clock=by_clock)


def _bound(seconds: float, reason: str) -> Claim:
    text = f"less than {seconds:.3g} s is impossible: {reason}"
    return Claim(text=text, seconds=seconds, low_s=seconds, is_certain=True)


# No device starts and ends a kernel in less: the fastest need about a microsecond.
LEAST: Final = _bound(1e-7, "no device runs a kernel in less than 100 ns")


def bound_launch(device: DeviceDescription, ndrange: NDRange) -> Claim:
    units, items = _count_units(device), ndrange.work_item_count
    # Three instructions a cycle on 64 lanes of a byte each, at 6 GHz: below 1.2e12.
    least_s = items / (2e12 * units)
    floor = _bound(least_s, f"{items:,} work-items on {units} compute units")
    return max(LEAST, floor, key=lambda one: one.low_s)


def doubt_launch(machine: MachineDescription | None) -> list[Claim]:
    """Tell below which time a launch on a device is unlikely to be, if it was calibrated."""
    launch = None if machine is None else machine.costs.get("launch_s")
    if launch is None:
        return []
    # A launch takes a quarter of one that does nothing at least: that was measured on another day.
    # It is a reason for doubt, no bound: one of PoCL's ends in 180 ns by its event where another
    # that does as little, and wakes a thread, takes 7 us.
    least_s = 0.25 * launch.value
    nothing = f"a launch that does nothing takes {launch.value:.3g} s on this device"
    text = f"less than {least_s:.3g} s is unlikely: {nothing}"
    return [Claim(text=text, seconds=least_s, low_s=least_s)]


def bound_traffic(
    moved_bytes: float, device: DeviceDescription, machine: MachineDescription | None
) -> Claim:
    """Bound the time in which a device moves so many different bytes."""
    units = _count_units(device)
    # Beyond its nearest cache the best core of today moves 64 bytes a cycle at 6 GHz, a GPU's unit
    # 128 bytes at 2 GHz: below 0.4e12 bytes/s.
    least_s = moved_bytes / (1e12 * units)
    reason = f"{moved_bytes / 1e6:,.3g} MB move, by {units} compute units"
    memory = None if machine is None else machine.memory("global")
    rates = [] if memory is None else [one.value for one in memory.load_bytes_per_s.values()]
    if memory is not None and memory.copy_bytes_per_s:
        rates.append(memory.copy_bytes_per_s.value)
    if machine is not None and rates:
        cached_bytes = 0.0
        for cache in machine.caches:
            sizes = [one.value for one in (cache.size_bytes, cache.reported_size_bytes) if one]
            shared = cache.shared_by.value if cache.shared_by else 1
            cached_bytes += max(sizes, default=0) * max(1.0, units / max(shared, 1))
        rest, peak = moved_bytes - cached_bytes, max(rates)
        if rest / (_PEAK_SLACK * peak) > least_s:
            least_s = rest / (_PEAK_SLACK * peak)
            reason = (
                f"{rest / 1e6:,.3g} MB more than its caches hold move, at {peak / 1e9:,.3g} GB/s"
            )
    return _bound(least_s, reason)


def _count_units(device: DeviceDescription) -> int:
    """Count the compute units that may work: runtimes run parts of a CPU on all of its cores."""
    cores = os.cpu_count() or 1 if device.kind is DeviceKind.CPU else 1
    return max(device.compute_units, cores)


def check_history(
    history: "LaunchHistory", problem: Problem, device: DeviceDescription, executor: Executor
) -> None:
    """Have a history set aside what cannot be."""
    if not history.times_s:
        return
    machine = find_sound_machine(device.id)
    known = [*history.known, bound_launch(device, problem.ndrange)]
    estimates = [one for one in known if one.source]
    suspect_s = bound_traffic(problem.buffer_bytes, device, machine).low_s
    floor_s = max(one.low_s for one in known if one.is_certain and not one.source)
    least_s = min((one for one in history.times_s if one >= floor_s), default=math.inf)
    if least_s < suspect_s and not any(one.holds(least_s) for one in estimates):
        task = ModelTask(problem=problem, device_id=device.id, wants_bytes=True)
        with suppress(KernelcastError):
            found = executor.model(task, timeout_s=10.0, report=lambda _: None)
            known.append(bound_traffic(found.touched_bytes, device, machine))
            if found.analytic is not None and not estimates:
                # As `expect` takes it for the interval that the model has where its errors are not
                # known: a factor of 3 either way.
                known.append(claim(found.analytic.seconds, 9.0, _MODEL))
    history.hold_against([*known, *doubt_launch(machine)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One observation of a launch; its time is that of the whole launch."""

    seconds: float
    noise: float | None = None
    when: datetime | None = None
    is_first: bool = False
    """Whether it was the first launch of its kernel: it is kept apart."""
    key: str = ""
    """Of the observation in the store; one that came before counts once. Empty: not known."""
    is_doubted: bool = False
    """Whether it contradicted what was known when it came."""


def see(one: Observation) -> Seen:
    return Seen(
        key=one.key,
        seconds=one.seconds,
        noise=one.runs.noise,
        when=one.measured_at,
        is_first=ObservationFlag.FIRST_LAUNCH in one.flags,
        is_doubted=ObservationFlag.DOUBTED in one.flags,
    )


@dataclass(slots=True)
class LaunchHistory:
    """Observations of one launch, newest last; not for several threads at once."""

    known: tuple[Claim, ...] = ()
    instructions: object = None
    absence: str = NO_HISTORY
    """Why there is none, where there is none."""
    failure: str = ""
    shifts: int = 0
    """How often observations that repeat have taken the place of what was believed."""
    middle_s: float = 0.0
    """The usual time, in the middle of what is believed."""
    _all: deque[Seen] = field(default_factory=lambda: deque(maxlen=2 * RECENT))
    _believed: deque[Seen] = field(default_factory=lambda: deque(maxlen=RECENT))
    _aside: deque[tuple[Seen, str]] = field(default_factory=lambda: deque(maxlen=RECENT))
    """With what each contradicts; empty of those that only stick out."""
    _contradiction: str = ""
    _spread: float = 0.0
    """Of the logarithms of what is believed, as a standard deviation, by their median alone."""
    _deviation: float = 0.0
    _degrees: int = 0

    def __len__(self) -> int:
        return len(self._believed)

    @property
    def times_s(self) -> list[float]:
        return [one.seconds for one in self._all]

    def agrees_with(self, seconds: float) -> bool:
        """Tell whether a time contradicts nothing, since observations near it are believed."""
        is_near = bool(self._believed) and _are_within(_FAR, seconds, self.middle_s)
        return is_near and not self._exclude(seconds)

    def add(self, one: Seen) -> frozenset[ObservationFlag]:
        """Judge an observation; an outlier, and one that is doubted, changes no answer."""
        if one.is_first:
            return frozenset({ObservationFlag.FIRST_LAUNCH})
        if one.key and any(one.key == known.key for known in self._all):
            return DOUBTED if self.find_doubt(one.key) else frozenset()
        self._all.append(one)
        return self._judge(one)

    def list_missing(self, other: "LaunchHistory") -> list[Seen]:
        """List what another history of the launch holds of the time that this one reaches back."""
        keys, since = {one.key for one in self._all}, next((one.when for one in self._all), None)
        return [one for one in other._all if one.key not in keys
                and not (since and one.when and one.when < since)]  # fmt: skip

    def find_doubt(self, key: str) -> str:
        """Say what an observation contradicts; empty if it is believed."""
        return next((why for one, why in self._aside if one.key == key), "")

    def expect(self, one: Claim) -> None:
        """Set aside what contradicts an estimate; the last of a kind counts."""
        self.hold_against([one, *(other for other in self.known if other.source != one.source)])

    def hold_against(self, known: Sequence[Claim]) -> None:
        """Judge everything anew by what is known now."""
        self.known, before = tuple(dict.fromkeys(known)), self.known
        is_calm = not self._contradiction and not any(why for _, why in self._aside)
        if self.known == before or (is_calm and not any(map(self._contradict, self.times_s))):
            return
        self._believed.clear()
        self._aside.clear()
        self._contradiction = ""
        for one in self._all:
            self._judge(one)

    def _exclude(self, seconds: float) -> str:
        """Say why no run can take so little; empty if one can."""
        broken = [x for x in (LEAST, *self.known) if x.is_certain and seconds < x.low_s]
        return max(broken, key=lambda one: (not one.source, one.low_s)).text if broken else ""

    def _supports(self, seconds: float) -> bool:
        """Tell whether an estimate is near, and nothing makes the time unlikely."""
        is_low = any(seconds < one.low_s for one in (LEAST, *self.known) if not one.source)
        return not is_low and any(one.source and one.holds(seconds) for one in self.known)

    def _contradict(self, seconds: float) -> str:
        """Say what speaks against a time; empty if nothing does."""
        if reason := self._exclude(seconds):
            return reason
        broken = [x for x in self.known if not x.source and seconds < x.low_s]
        estimates = [x for x in self.known if x.source]
        if not broken and not any(one.holds(seconds) for one in estimates):  # tell the nearest
            broken = sorted(estimates, key=lambda one: abs(math.log(one.seconds / seconds)))
        return broken[0].text if broken else ""

    def answer(self, coverage: float) -> Interval | None:
        """Give the usual time and the interval that the next run will lie in; None without any."""
        count = len(self._believed)
        if not count:
            return None
        spread = student_quantile(coverage, self._degrees) * self._deviation
        # A run differs from the true middle, and our middle does too.
        factor = math.exp(min(spread * math.sqrt(1 + 1 / count), 5.0))
        return Interval.within(factor, self.middle_s, coverage)

    @property
    def noise(self) -> float:
        """Half the 10-90 % spread of single runs over the usual time."""
        return _DEVIATION_TO_NOISE * self._deviation

    @property
    def moments(self) -> int:
        return _count_moments(self._believed)

    def describe(self) -> HistoryFacts:
        moments = [one.when for one in self._believed if one.when is not None]
        return HistoryFacts(
            observations=len(self._believed),
            first=min(moments, default=None),
            last=max(moments, default=None),
            set_aside=tuple(
                SetAside(key=one.key, seconds=one.seconds, when=one.when, reason=reason)
                for one, reason in self._aside
                if reason
            ),
            contradiction=self._contradiction,
        )

    def _judge(self, one: Seen) -> frozenset[ObservationFlag]:
        reason = self._contradict(one.seconds)
        if self._believed:  # others that are believed count most
            said = _quote(len(self._believed), self.middle_s)
            reason = "" if self.agrees_with(one.seconds) else reason or said
        elif one.is_doubted and not self._supports(one.seconds):
            reason = reason or "it contradicted what was known of the launch when it came"
        # Deviations beyond which an observation sticks out (Iglewicz and Hoaglin, "How to Detect
        # and Handle Outliers", 1993); a deviation of fewer than five runs says little.
        limit = 3.5 * max(self._spread, 2 * _LEAST_DEVIATION)
        gap = math.log(one.seconds / self.middle_s) if len(self._believed) >= 4 else 0.0
        if not reason and abs(gap) <= limit:
            # What is near it is believed with it where nothing was before.
            near = [] if self._believed else [
                x for x, _ in self._aside
                if _are_within(_FAR, x.seconds, one.seconds) and not self._exclude(x.seconds)
            ]  # fmt: skip
            self._believe([*near, one], anew=False)
            return frozenset()
        last = max((x.when for x in self._believed if x.when is not None), default=None)
        # Times within this factor repeat each other; whole runs differ by 3 to 10 %.
        repeats = [
            x for x, why in (*self._aside, (one, reason))
            if bool(why) == bool(reason) and _are_within(1.25, x.seconds, one.seconds)
            and not self._exclude(x.seconds)
        ]  # fmt: skip
        since = [x for x in repeats if last is None or (x.when is not None and x.when > last)]
        count = _count_moments(since) if reason else len(repeats)
        if one in repeats and count >= _REPEATS:
            self._believe(repeats, anew=True)
            self._contradiction = reason and self._contradict(one.seconds)
            self.shifts += 1
            return frozenset()
        is_plausible = not (one.is_doubted or self._contradict(one.seconds))
        # One that contradicts what is believed may be right without repeating.
        may_outvote = is_plausible and not self._supports(self.middle_s)
        # More moments outvote fewer; within one moment, more observations do.
        votes, others = _count_moments(repeats), _count_moments(self._believed)
        if votes == others == _count_moments([*repeats, *self._believed]) == 1:
            votes, others = len(repeats), len(self._believed)
        if reason and may_outvote and votes > others:
            why = _quote(len(repeats), one.seconds)
            wrong = [(known, why) for known in self._believed]
            self._believe(repeats, anew=True)
            self._aside.extend(wrong)
            return frozenset()
        self._aside.append((one, reason))
        return DOUBTED if reason else frozenset({ObservationFlag.OUTLIER})

    def _believe(self, these: Sequence[Seen], *, anew: bool) -> None:
        kept = [x for x in self._aside if x[1] and x[0] not in these]
        self._aside = deque(kept, maxlen=RECENT)
        if anew:
            self._believed.clear()
            self._contradiction = ""
        self._believed.extend(these)
        times_s = [one.seconds for one in self._believed]
        # In the middle on the logarithmic scale: of two, none pulls more than the other.
        self.middle_s = math.sqrt(median_low(times_s) * median_high(times_s))
        logs = [math.log(seconds) for seconds in times_s]
        noises = [one.noise for one in self._believed if one.noise is not None]
        # Nothing is known of the launch: whole runs were found to differ by 3 to 10 %, half their
        # 10-90 % spread, which is 1.28 deviations.
        prior = 0.05
        if noises:
            prior = max(median(noises) / _DEVIATION_TO_NOISE, _LEAST_DEVIATION)
        middle, free = median(logs), len(logs) - 1
        # The median distance of normal numbers in deviations is 1 / 1.4826.
        self._spread = 1.4826 * median([abs(one - middle) for one in logs])
        self._degrees = _PRIOR_OBSERVATIONS + free
        variance = (_PRIOR_OBSERVATIONS * prior**2 + free * self._spread**2) / self._degrees
        self._deviation = max(math.sqrt(variance), _LEAST_DEVIATION)
        # Doubts that are older than all that the answer rests on go, if that has repeated.
        oldest = self._believed[0].when
        if oldest is not None and _count_moments(self._believed) >= _REPEATS:
            while self._aside and (when := self._aside[0][0].when) is not None and when < oldest:
                self._aside.popleft()


def _count_moments(these: Collection[Seen]) -> int:
    """Count how many observations are apart from each other; unknown times are one moment."""
    count, last_s = 0, -math.inf
    for when_s in sorted(one.when.timestamp() for one in these if one.when is not None):
        if when_s - last_s >= 1.0:
            count, last_s = count + 1, when_s
    return count + any(one.when is None for one in these)


def _are_within(factor: float, one_s: float, other_s: float) -> bool:
    return 1 / factor <= one_s / other_s <= factor


def _quote(others: int, seconds: float) -> str:
    who = "another observation says" if others == 1 else f"{others} other observations say"
    return f"{who} {seconds:.3g} s"


class Judge:
    """Judges observations as they come; not for several threads at once."""

    def __init__(self, recall: Callable[[LaunchIdentity], LaunchHistory]) -> None:
        self._recall = recall
        # Other processes observe the same launches: what is known stands for 5 s.
        self._known: TTLCache[str, LaunchHistory] = TTLCache(4096, 5.0)

    def judge(self, one: Observation) -> tuple[Observation, str]:
        if one.flags & _KEPT_APART:
            return one, ""
        history = self._known.get(one.launch.key)
        if history is None:
            history = self._known[one.launch.key] = self._recall(one.launch)
        if history.agrees_with(one.seconds):  # nearly all: need not be learned from here
            return one, ""
        if history.add(see(one)) != DOUBTED:
            return one, ""
        return replace(one, flags=one.flags | DOUBTED), history.find_doubt(one.key)

    def forget(self) -> None:
        self._known.clear()


def list_doubts(facts: HistoryFacts | None) -> tuple[str, ...]:
    if facts is None:
        return ()
    found = []
    if facts.contradiction:
        found.append(
            f"observations are believed since they have repeated, although {facts.contradiction}"
        )
    if facts.set_aside:
        count = len(facts.set_aside)
        named = []
        for one in facts.set_aside[-_MOST_NAMED:]:
            when = "" if one.when is None else f" of {one.when.isoformat(' ', 'seconds')}"
            key = f" (key {one.key[:12]})" if one.key else ""
            named.append(f"{one.seconds:.3g} s{when}{key}, but {one.reason}")
        more = [f"{count - _MOST_NAMED} more"] if count > _MOST_NAMED else []
        what = "observation is" if count == 1 else "observations are"
        listed = "; ".join([*named, *more])
        found.append(f"{count} {what} set aside, not believed: {listed}")
    return tuple(found)


def update_doubts(estimate: Estimate, facts: HistoryFacts) -> Estimate:
    """Have an answer that rests on no observation say which observations are not believed now."""
    known = estimate.explain()
    old, new = list_doubts(known.history), list_doubts(facts)
    if old == new:
        return estimate
    kept = tuple(one for one in estimate.warnings if one not in old)
    absence = NOT_BELIEVED if facts.set_aside else NO_HISTORY
    return annotate(
        replace(estimate, warnings=kept),
        *new,
        history=facts if facts.observations or facts.set_aside else None,
        missing={**known.missing, Tier.HISTORY.value: absence},
    )
