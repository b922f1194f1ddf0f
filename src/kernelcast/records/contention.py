"""Times with their intervals, and what other programs at work make of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import NormalDist, mean
from typing import Self

from kernelcast.records.errors import InputError, KernelcastError

DEFAULT_COVERAGE = 0.9
"""Share of true times that intervals hold unless another is asked for."""
NOTICEABLE = 1.15
"""Below this factor a machine counts as idle."""
HOLDS_S = 30.0
"""Seconds that trials of a session, and kept times beside other programs, are used for."""
# Threads that wake are let in at once and keep a processor for about so long: launches of 0.1, 0.5
# and 1.2 ms on PoCL, Intel's runtime and rusticl took 0.1 to 0.6, 0.4 to 0.8 and 0.4 to 1 of what
# longer ones waited beside the same programs, those of 4 ms and more all of it.
_SLICE_S = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A prediction with its interval, in seconds.

    Raises
    ------
    KernelcastError
        If the numbers are not finite, not positive or not in order.
    """

    seconds: float
    """The predicted time, in seconds."""
    low: float
    """Lower end, ``0 < low <= seconds``."""
    high: float
    """Upper end, ``seconds <= high``."""
    coverage: float
    """Share of cases in which the true time is meant to lie inside, between 0 and 1."""

    @classmethod
    def within(cls, factor: float, seconds: float, coverage: float) -> Self:
        """Put ends around a time that are a factor away from it."""
        return cls(seconds=seconds, low=seconds / factor, high=seconds * factor, coverage=coverage)

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.seconds <= self.high < math.inf:  # NaN fails it too
            msg = f"interval {self.low} <= {self.seconds} <= {self.high}: not finite and ordered"
            raise KernelcastError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """What a process waited for processors while launches kept all of a device's threads busy."""

    worked_s: float
    waited_s: float
    """Time of all threads together on a processor, and ready to run without one, in seconds."""
    others: float
    """Threads of other processes that were running or ready to run meanwhile, on average."""
    trials: int = 1
    measured_at: datetime

    def __post_init__(self) -> None:
        numbers = (self.worked_s, self.waited_s, self.others)
        if not (all(0 <= number < math.inf for number in numbers) and self.worked_s > 0):
            raise InputError(
                f"contention: worked {self.worked_s} s, waited {self.waited_s} s beside "
                f"{self.others} others; expected finite numbers, work above 0"
            )

    @property
    def slowdown(self) -> float:
        """Time that a launch of a millisecond or more takes now over that alone, at least 1."""
        return 1 + self.waited_s / self.worked_s

    def find_alone(self, seconds: float) -> float:
        """Compute what a launch takes alone that takes so long now: the inverse of `slow`."""
        more = self.slowdown - 1
        if seconds >= self.slowdown * _SLICE_S:
            return seconds / self.slowdown
        return 2 * seconds / (math.sqrt(1 + 4 * more * seconds / _SLICE_S) + 1)

    @property
    def is_noticeable(self) -> bool:
        return self.slowdown >= NOTICEABLE

    def slow(self, alone: Interval) -> Interval:
        """Predict the time of a launch as the machine is now, with a wider interval."""
        z = NormalDist().inv_cdf((1 + alone.coverage) / 2)
        # Deviation of the logarithm of a launch's slowdown from what a trial of this length says:
        # what other programs do changes from one tenth of a second to the next. Chosen on some
        # examples, judged on others and on the corpus (ADR 0033).
        more = z * 0.2 / math.sqrt(self.trials)
        seconds = alone.seconds * (1 + (self.slowdown - 1) * min(1.0, alone.seconds / _SLICE_S))
        down = math.hypot(math.log(alone.seconds / alone.low), more)
        up = math.hypot(math.log(alone.high / alone.seconds), more)
        # No launch is faster than alone.
        low = max(seconds * math.exp(-down), min(alone.low, seconds))
        return replace(alone, seconds=seconds, low=low, high=seconds * math.exp(up))

    def describe(self) -> str:
        count = max(round(self.others), 1)
        who = "another program is" if count == 1 else f"{count} other programs are"
        return (
            f"{who} at work on this machine: launches take about {self.slowdown:.1f} times as long "
            "as alone now; end them for the time alone, or plan with the time as it is now"
        )


def list_contention(seen: Contention | None) -> list[str]:
    """Warn of a busy machine; of one that counts as idle there is no warning."""
    return [seen.describe()] if seen is not None and seen.is_noticeable else []


def combine_contention(moments: Sequence[Contention]) -> Contention | None:
    if not moments:
        return None
    return Contention(
        worked_s=sum(moment.worked_s for moment in moments),
        waited_s=sum(moment.waited_s for moment in moments),
        others=mean(moment.others for moment in moments),
        trials=sum(moment.trials for moment in moments),
        measured_at=max(moment.measured_at for moment in moments),
    )
