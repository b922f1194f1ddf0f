"""Timed launches of a few work-groups."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from kernelcast.records.contention import Contention, combine_contention
from kernelcast.records.errors import KernelRunError
from kernelcast.records.ndrange import GroupBox, NDRange

# Launches count as two sampling points if their sizes differ by this factor.
TWO_SIZES = 1.5

PILOT_WINDOW = -1
"""Window index of launches that only serve to find the right sizes."""


class LaunchTime(float):
    """Seconds that a launch's work takes, with the time that passed meanwhile."""

    __slots__ = ("clock_s",)

    clock_s: float

    def __new__(cls, work_s: float, clock_s: float) -> Self:
        made = super().__new__(cls, work_s)
        made.clock_s = clock_s
        return made


def clock_of(duration_s: float) -> float | None:
    """Read the time by the clock; None where only one time of a launch is known."""
    return duration_s.clock_s if isinstance(duration_s, LaunchTime) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedLaunch:
    box: GroupBox
    window: int
    """Index of the window (a place in the index space) the box belongs to, or `PILOT_WINDOW`."""
    duration_s: float
    clock_s: float | None = None
    """Time by the clock, in seconds, where `duration_s` is work of the device's threads."""
    weight: float = 1.0
    """Work of its work-groups over the launch's mean, where the source tells how they differ."""

    @property
    def mean_work_groups(self) -> float:
        """Its work, in work-groups of the launch's mean work."""
        return self.weight * self.box.work_group_count

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            raise KernelRunError(
                f"a launch of {self.box.work_group_count} work-groups was timed at "
                f"{self.duration_s} s; the device's timer is not usable"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    ndrange: NDRange
    launches: tuple[TimedLaunch, ...]
    launch_overhead_s: float
    is_even: bool
    """Whether work-groups of different places were found to take about the same time."""
    at_s: float = 0.0
    """When the first of them ran, in seconds since 1970; 0 where that is not known."""
    contention: Contention | None = None
    """What other programs left to the device afterwards; None where nothing was seen of any."""
    warm_up_s: float = 0.0
    """Device time of work-groups that only filled caches for those that were timed, in seconds."""
    least_rate_s: float = 0.0
    """Least time per work-group by what the launch moves through DRAM, in seconds: samples find
    room in the caches for what they store. 0 where it is not known."""
    imbalance: float = 1.0
    """Most work of a core over the mean, where cores get parts of the launch beforehand."""

    @property
    def sampling_s(self) -> float:
        return self.warm_up_s + sum(launch.duration_s for launch in self.launches)

    @property
    def sampled_work_groups(self) -> int:
        return sum(launch.box.work_group_count for launch in self.launches)


def join_moments(runs: Sequence[SampleRun]) -> SampleRun:
    """Put several moments of one launch into one run; their windows differ."""
    last = runs[-1]
    return replace(
        last,
        launches=tuple(launch for run in runs for launch in run.launches),
        at_s=runs[0].at_s,
        contention=combine_contention([one.contention for one in runs if one.contention]),
        warm_up_s=sum(one.warm_up_s for one in runs),
    )


def pool_moments(runs: Sequence[SampleRun]) -> tuple[SampleRun, ...]:
    """Take moments of uneven work for one where any of them saw too few places to tell of all."""
    places = ({launch.window for launch in run.launches} - {PILOT_WINDOW} for run in runs)
    # Two that differ tell nothing of a third.
    if all(run.is_even for run in runs) or min(map(len, places)) >= 3:
        return tuple(runs)
    return (replace(join_moments(runs), is_even=False),)


def find_intercepts(launches: Sequence[TimedLaunch]) -> list[float]:
    """Draw a line through the shortest and the longest launch of each window."""
    by_window: dict[int, list[TimedLaunch]] = {}
    for launch in launches:
        by_window.setdefault(launch.window, []).append(launch)
    found = []
    for inside in by_window.values():
        first = min(inside, key=lambda one: one.mean_work_groups)
        last = max(inside, key=lambda one: one.mean_work_groups)
        n1, n2 = first.mean_work_groups, last.mean_work_groups
        if n2 >= TWO_SIZES * n1:
            found.append((first.duration_s * n2 - last.duration_s * n1) / (n2 - n1))
    return found
