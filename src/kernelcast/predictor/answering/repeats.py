"""When observations that contradict what is known are believed: once they repeat independently.

Runs of one moment share its error, and a caller that reports wrong times reports a batch of them.
So observations count as repeats of each other only if they agree within a quarter and lie at least
a second apart. Three such make a belief, if nothing that was believed was observed since: as many
in a row make `Drift` certain that a launch takes another time.

Where nothing but observations is known and they contradict each other, more moments outvote fewer;
within one moment, more observations do.
"""

import math
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, Protocol, TypeVar

REPEATS: Final = 3
"""Moments that a contradicting time must be seen in."""
APART_S: Final = 1.0
"""Seconds between two moments at least."""
AGREEMENT: Final = 1.25
"""Factor within which times repeat each other; whole runs differ by 3 to 10 %."""


class Timed(Protocol):
    """An observation, as far as repeats ask."""

    @property
    def seconds(self) -> float:
        """What was observed."""
        ...

    @property
    def when(self) -> datetime | None:
        """When; None where it is not known."""
        ...


T = TypeVar("T", bound=Timed)


def find_repeats(one: T, others: Sequence[T]) -> list[T]:
    """Give those of some observations that agree with another, and that one."""
    agreeing = [x for x in others if 1 / AGREEMENT <= x.seconds / one.seconds <= AGREEMENT]
    return [*agreeing, one]


def count_moments(these: Collection[Timed]) -> int:
    """Count how many observations are apart from each other; unknown times are one moment."""
    count, last_s = 0, -math.inf
    for when_s in sorted(one.when.timestamp() for one in these if one.when is not None):
        if when_s - last_s >= APART_S:
            count, last_s = count + 1, when_s
    return count + any(one.when is None for one in these)


def is_newer(these: Collection[Timed], believed: Collection[Timed]) -> bool:
    """Tell whether observations have repeated since anything else was observed."""
    moments = [one.when for one in believed if one.when is not None]
    last = max(moments, default=None)
    since = [one for one in these if last is None or (one.when is not None and one.when > last)]
    return count_moments(since) >= REPEATS


def outvotes(these: Collection[Timed], believed: Collection[Timed]) -> bool:
    """Tell whether observations were seen in more moments than those that are believed."""
    count, other = count_moments(these), count_moments(believed)
    if count == other == count_moments([*these, *believed]) == 1:
        return len(these) > len(believed)
    return count > other
