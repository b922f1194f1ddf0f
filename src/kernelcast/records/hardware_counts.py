"""What hardware counters counted while some work ran."""

import math
from dataclasses import dataclass

from kernelcast.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareCount:
    """The value of one counter.

    Parameters
    ----------
    name : str
        What was counted, such as ``instructions`` or ``task_clock_ns``.
    value : int
        Events; scaled up to the whole time where the counter ran only part of it.
    running_share : float
        Part of the time in which the counter ran, in (0, 1]: below 1 where more counters were
        asked for than the hardware has, which then take turns.

    Raises
    ------
    InputError
        If the value is negative or the share is not in (0, 1]: a counter that never ran has
        counted nothing, which is not zero.

    Examples
    --------
    >>> HardwareCount(name="instructions", value=1000, running_share=0.5).is_exact
    False
    """

    name: str
    value: int
    running_share: float

    def __post_init__(self) -> None:
        if self.value < 0:
            msg = f"counter {self.name}: the count is {self.value}; give one of at least 0"
            raise InputError(msg)
        if not 0.0 < self.running_share <= 1.0 or math.isnan(self.running_share):
            msg = f"counter {self.name}: running share is {self.running_share}; give one in (0, 1]"
            raise InputError(msg)

    @property
    def is_exact(self) -> bool:
        """Whether every event was counted, rather than estimated from part of the time."""
        return self.running_share >= 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareCounts:
    """What one provider counted while one piece of work ran.

    Parameters
    ----------
    provider : str
        Name of the provider, such as ``perf_event``.
    counts : tuple of HardwareCount
        One per counter that ran; counters that never got their turn are left out.

    Raises
    ------
    InputError
        If a counter appears twice.
    """

    provider: str
    counts: tuple[HardwareCount, ...]

    def __post_init__(self) -> None:
        names = [count.name for count in self.counts]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"{self.provider}: {', '.join(twice)} counted twice; give each counter once"
            raise InputError(msg)

    @property
    def by_name(self) -> dict[str, int]:
        """The values alone, by the counters' names."""
        return {count.name: count.value for count in self.counts}
