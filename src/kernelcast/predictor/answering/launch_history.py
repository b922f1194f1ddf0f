"""What was observed of one launch: its usual time, what is not believed, and whether it shifted.

Observations that contradict what is known are believed once they repeat independently. Runs of one
moment share its error, and a caller that reports wrong times reports a batch of them. So
observations count as repeats of each other only if they agree within a quarter and lie at least a
second apart. Three such make a belief, if nothing that was believed was observed since: as many in
a row that stick out and agree say that a launch takes another time. Where nothing but observations
is known and they contradict each other, more moments outvote fewer; within one moment, more
observations do.
"""

import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median, median_high, median_low

from kernelcast.models.linear import student_quantile
from kernelcast.predictor.answering.plausibility import FAR, Plausible
from kernelcast.predictor.answering.spread import (
    DEVIATION_TO_NOISE,
    LEAST_DEVIATION,
    MAD_TO_DEVIATION,
    measure_deviation,
)
from kernelcast.records.estimates import Interval
from kernelcast.records.explanation import HistoryFacts, SetAside
from kernelcast.records.observation import ObservationFlag

RECENT = 20
"""Observations that an answer rests on at most."""
_REPEATS = 3
"""Moments that a contradicting time must be seen in."""
_APART_S = 1.0
_AGREEMENT = 1.25
"""Factor within which times repeat each other; whole runs differ by 3 to 10 %."""
_FEWEST_TO_JUDGE = 4
# Deviations beyond which an observation sticks out (Iglewicz and Hoaglin, "How to Detect and
# Handle Outliers", 1993).
_STICKS_OUT = 3.5
# A deviation of fewer than five runs says little: sticking out of it is no disturbance yet.
_LEAST_TO_STICK_OUT = 2 * LEAST_DEVIATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One observation of a launch; its time is that of the whole launch."""

    seconds: float
    noise: float | None = None
    """Half the 10-90 % spread over the median, of several runs."""
    when: datetime | None = None
    is_first: bool = False
    """Whether it was the first launch of its kernel: it is kept apart."""
    key: str = ""
    """Of the observation in the store; one that came before counts once. Empty: not known."""
    is_doubted: bool = False
    """Whether it contradicted what was known when it came."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an observation was found to be."""

    flags: frozenset[ObservationFlag]
    has_shifted: bool = False
    """Whether it made certain that the launch takes another time than before."""
    doubt: str = ""
    """What it contradicts; empty if it is believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """The usual time of a launch, in the middle of what is believed."""

    seconds: float
    noise: float
    """Half the 10-90 % spread of single runs over it."""
    moments: int
    repeats: int
    """How many observations it rests on, and how many of them are apart in time."""
    last_s: float | None
    """When the newest was made, in UNIX seconds; None where it is not known."""
    span_s: float
    """Seconds between the oldest and the newest."""


_SOUND = Verdict(frozenset())
_FIRST = Verdict(frozenset({ObservationFlag.FIRST_LAUNCH}))
_CAME_DOUBTED = "it contradicted what was known of the launch when it came"


@dataclass(slots=True)
class LaunchHistory:
    """Observations of one launch, newest last; not for several threads at once.

    One that contradicts what is known is set aside until it repeats; one that is impossible, for
    good. One that sticks out is not counted. If times have shifted for good, what was before the
    shift is forgotten.
    """

    known: Plausible = field(default_factory=Plausible)
    """What is known of the launch beside its observations; see `hold_against`."""
    instructions: object = None
    """How many it executes, where the store tells that."""
    _all: deque[Seen] = field(default_factory=lambda: deque(maxlen=2 * RECENT))
    _recent: deque[Seen] = field(default_factory=lambda: deque(maxlen=RECENT))
    _aside: deque[tuple[Seen, str]] = field(default_factory=lambda: deque(maxlen=RECENT))
    _contradiction: str = ""
    _sticking: list[Seen] = field(default_factory=list)
    _middle_s: float = 0.0
    _deviation: float = 0.0
    _degrees: int = 0

    def __len__(self) -> int:
        return len(self._recent)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was observed."""
        return not self._all

    def find_least(self, floor_s: float) -> float:
        """Give the shortest time of any observation that is possible; infinite without any."""
        return min((x.seconds for x in self._all if x.seconds >= floor_s), default=math.inf)

    def agrees_with(self, seconds: float) -> bool:
        """Tell whether a time contradicts nothing, since observations near it are believed."""
        is_near = bool(self._recent) and _is_near(seconds, self._middle_s)
        return is_near and not self.known.exclude(seconds)

    def add(self, one: Seen) -> Verdict:
        """Take the newest observation and judge it."""
        if one.is_first:
            return _FIRST
        if one.key and any(one.key == known.key for known in self._all):
            reason = next((why for known, why in self._aside if known.key == one.key), "")
            return _doubt(reason) if reason else _SOUND
        self._all.append(one)
        return self._judge(one)

    def hold_against(self, known: Plausible) -> None:
        """Judge everything anew by what is known now."""
        self.known, before = known, self.known
        is_calm = not (self._aside or self._contradiction)
        if known == before or (is_calm and not any(known.contradict(x.seconds) for x in self._all)):
            return
        self._recent.clear()
        self._aside.clear()
        self._contradiction = ""
        self._sticking.clear()
        for one in self._all:
            self._judge(one)

    def answer(self, coverage: float) -> Interval | None:
        """Give the usual time and the interval that the next run will lie in; None without any."""
        count = len(self._recent)
        if not count:
            return None
        spread = student_quantile(coverage, self._degrees) * self._deviation
        # A run differs from the true middle, and our middle does too.
        factor = math.exp(min(spread * math.sqrt(1 + 1 / count), 5.0))
        middle_s = self._middle_s
        return Interval(
            seconds=middle_s, low=middle_s / factor, high=middle_s * factor, coverage=coverage
        )

    @property
    def usual(self) -> Usual | None:
        """What observations that are believed say; None without any."""
        if not self._recent:
            return None
        times_s = [one.when.timestamp() for one in self._recent if one.when is not None]
        return Usual(
            seconds=self._middle_s,
            noise=DEVIATION_TO_NOISE * self._deviation,
            moments=_count_moments(self._recent),
            repeats=len(self._recent),
            last_s=max(times_s, default=None),
            span_s=max(times_s) - min(times_s) if times_s else 0.0,
        )

    def describe(self) -> HistoryFacts:
        """Say how many observations the answer rests on, from when, and which are set aside."""
        moments = [one.when for one in self._recent if one.when is not None]
        return HistoryFacts(
            observations=len(self._recent),
            first=min(moments, default=None),
            last=max(moments, default=None),
            set_aside=tuple(
                SetAside(key=one.key, seconds=one.seconds, when=one.when, reason=reason)
                for one, reason in self._aside
            ),
            contradiction=self._contradiction,
        )

    def _judge(self, one: Seen) -> Verdict:
        reason = self._find_contradiction(one)
        return self._set_aside(one, reason) if reason else self._take(one)

    def _find_contradiction(self, one: Seen) -> str:
        """Say what an observation contradicts; others that are believed count most."""
        if self._recent:
            if self.agrees_with(one.seconds):
                return ""
            others = _quote(len(self._recent), self._middle_s)
            return self.known.contradict(one.seconds) or others
        if one.is_doubted and not self.known.supports(one.seconds):
            return self.known.contradict(one.seconds) or _CAME_DOUBTED
        return self.known.contradict(one.seconds)

    def _set_aside(self, one: Seen, reason: str) -> Verdict:
        """Keep an observation without believing it; believe all that agree if they suffice."""
        repeats = [
            x for x in (*(x for x, _ in self._aside), one)
            if _agree(x, one) and not self.known.exclude(x.seconds)
        ]  # fmt: skip
        moments = [x.when for x in self._recent if x.when is not None]
        last = max(moments, default=None)
        since = [x for x in repeats if last is None or (x.when is not None and x.when > last)]
        if one in repeats and _count_moments(since) >= _REPEATS:
            self._aside = deque((x for x in self._aside if x[0] not in repeats), maxlen=RECENT)
            self._believe(repeats)
            self._contradiction = self.known.contradict(one.seconds)
            return Verdict(frozenset(), has_shifted=True)
        if self._are_doubtful(one) and _outvotes(repeats, self._recent):
            why = _quote(len(repeats), one.seconds)
            wrong = [(known, why) for known in self._recent]
            kept = [x for x in self._aside if x[0] not in repeats]
            self._aside = deque([*kept, *wrong], maxlen=RECENT)
            self._believe(repeats)
            return _SOUND
        self._aside.append((one, reason))
        return _doubt(reason)

    def _are_doubtful(self, one: Seen) -> bool:
        """Tell whether one that contradicts what is believed may be right without repeating."""
        is_plausible = not (one.is_doubted or self.known.contradict(one.seconds))
        return is_plausible and not self.known.supports(self._middle_s)

    def _take(self, one: Seen) -> Verdict:
        """Count an observation that contradicts nothing, unless it sticks out."""
        if not self._recent:
            near = [
                (x, why) for x, why in self._aside
                if _is_near(x.seconds, one.seconds) and not self.known.exclude(x.seconds)
            ]  # fmt: skip
            self._aside = deque((x for x in self._aside if x not in near), maxlen=RECENT)
            self._keep([*(x for x, _ in near), one])
            return _SOUND
        if not self._sticks_out(one):
            self._sticking.clear()
            self._keep([one])
            return _SOUND
        agreeing = [x for x in self._sticking if _agree(x, one)]
        self._sticking = [*agreeing, one]
        if len(self._sticking) < _REPEATS:
            return Verdict(frozenset({ObservationFlag.OUTLIER}))
        self._believe([*self._sticking])
        return Verdict(frozenset(), has_shifted=True)

    def _believe(self, these: Sequence[Seen]) -> None:
        """Forget what the answer rested on, and rest it on others."""
        self._recent.clear()
        self._sticking.clear()
        self._contradiction = ""
        self._keep(these)

    def _sticks_out(self, one: Seen) -> bool:
        if len(self._recent) < _FEWEST_TO_JUDGE:
            return False
        logs = [math.log(known.seconds) for known in self._recent]
        middle = median(logs)
        deviation = MAD_TO_DEVIATION * median([abs(log - middle) for log in logs])
        limit = _STICKS_OUT * max(deviation, _LEAST_TO_STICK_OUT)
        return abs(math.log(one.seconds) - middle) > limit

    def _keep(self, new: Sequence[Seen]) -> None:
        self._recent.extend(new)
        known = self._recent
        times_s = [one.seconds for one in known]
        # In the middle on the logarithmic scale: of two, none pulls more than the other.
        self._middle_s = math.sqrt(median_low(times_s) * median_high(times_s))
        self._deviation, self._degrees = measure_deviation(
            [math.log(one.seconds) for one in known],
            [one.noise for one in known if one.noise is not None],
        )
        self._drop_old()

    def _drop_old(self) -> None:
        """Forget doubts that are older than all that the answer rests on, if that has repeated."""
        oldest = self._recent[0].when
        if not self._aside or oldest is None or _count_moments(self._recent) < _REPEATS:
            return
        while self._aside and (when := self._aside[0][0].when) is not None and when < oldest:
            self._aside.popleft()


def _doubt(reason: str) -> Verdict:
    return Verdict(frozenset({ObservationFlag.DOUBTED}), doubt=reason)


def _count_moments(these: Collection[Seen]) -> int:
    """Count how many observations are apart from each other; unknown times are one moment."""
    count, last_s = 0, -math.inf
    for when_s in sorted(one.when.timestamp() for one in these if one.when is not None):
        if when_s - last_s >= _APART_S:
            count, last_s = count + 1, when_s
    return count + any(one.when is None for one in these)


def _outvotes(these: Collection[Seen], believed: Collection[Seen]) -> bool:
    """Tell whether observations were seen in more moments than those that are believed."""
    count, other = _count_moments(these), _count_moments(believed)
    if count == other == _count_moments([*these, *believed]) == 1:
        return len(these) > len(believed)
    return count > other


def _agree(one: Seen, other: Seen) -> bool:
    return 1 / _AGREEMENT <= one.seconds / other.seconds <= _AGREEMENT


def _is_near(one_s: float, other_s: float) -> bool:
    return 1 / FAR <= one_s / other_s <= FAR


def _quote(others: int, seconds: float) -> str:
    who = "another observation says" if others == 1 else f"{others} other observations say"
    return f"{who} {seconds:.3g} s"
