"""What was observed of one launch: its usual time, what sticks out, and whether it has shifted."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from kernelcast.predictor.answering.drift import Drift
from kernelcast.predictor.answering.spread import (
    LEAST_DEVIATION,
    MAD_TO_DEVIATION,
    measure_deviation,
    student_quantile,
)
from kernelcast.records.estimates import Interval
from kernelcast.records.explanation import HistoryFacts
from kernelcast.records.observation import ObservationFlag

RECENT = 20
"""Observations that an answer rests on at most."""
_FEWEST_TO_JUDGE = 4
# Deviations beyond which an observation sticks out (Iglewicz and Hoaglin, "How to Detect and
# Handle Outliers", 1993).
_STICKS_OUT = 3.5
# A deviation of fewer than five runs says little: sticking out of it is no disturbance yet.
_LEAST_TO_STICK_OUT = 2 * LEAST_DEVIATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One observation of a launch.

    Parameters
    ----------
    seconds : float
        Time of the whole launch.
    noise : float or None
        Half the 10-90 % spread over the median, of several runs.
    when : datetime or None
        None where it is not known.
    is_first : bool
        Whether it was the first launch of its kernel: it is kept apart.
    """

    seconds: float
    noise: float | None = None
    when: datetime | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an observation was found to be.

    Parameters
    ----------
    flags : frozenset of ObservationFlag
        Reasons for care.
    has_shifted : bool
        Whether it made certain that the launch takes another time than before.
    """

    flags: frozenset[ObservationFlag]
    has_shifted: bool = False


_SOUND = Verdict(frozenset())
_FIRST = Verdict(frozenset({ObservationFlag.FIRST_LAUNCH}))


@dataclass(slots=True)
class LaunchHistory:
    """Observations of one launch, newest last; not for several threads at once.

    An observation that sticks out is not counted. If times have shifted for good, what was before
    the shift is forgotten: the evidence is weighed by `Drift`.
    """

    _recent: deque[Seen] = field(default_factory=lambda: deque(maxlen=RECENT))
    _since_calm: deque[Seen] = field(default_factory=lambda: deque(maxlen=RECENT))
    _drift: Drift = field(default_factory=Drift)
    _middle_s: float = 0.0
    _deviation: float = 0.0
    _degrees: int = 0

    def __len__(self) -> int:
        return len(self._recent)

    def add(self, one: Seen) -> Verdict:
        """Take the newest observation and judge it."""
        if one.is_first:
            return _FIRST
        if not self._recent:
            self._keep([one])
            return _SOUND
        if self._weigh(one):
            since = list(self._since_calm)
            self._recent.clear()
            self._forget_evidence()
            self._keep(since)
            return Verdict(frozenset(), has_shifted=True)
        if self._sticks_out(one):
            return Verdict(frozenset({ObservationFlag.OUTLIER}))
        self._keep([one])
        return _SOUND

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

    def describe(self) -> HistoryFacts:
        """Say how many observations the answer rests on, and from when they are."""
        moments = [one.when for one in self._recent if one.when is not None]
        return HistoryFacts(
            observations=len(self._recent),
            first=min(moments, default=None),
            last=max(moments, default=None),
        )

    def _weigh(self, one: Seen) -> bool:
        """Tell whether times have shifted from what they usually are."""
        has_shifted = self._drift.add(one.seconds, self._middle_s, self._deviation)
        if self._drift.is_calm:
            self._since_calm.clear()
        else:
            self._since_calm.append(one)
        return has_shifted

    def _forget_evidence(self) -> None:
        self._drift.reset()
        self._since_calm.clear()

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
        self._middle_s = float(median([one.seconds for one in known]))
        self._deviation, self._degrees = measure_deviation(
            [math.log(one.seconds) for one in known],
            [one.noise for one in known if one.noise is not None],
        )
