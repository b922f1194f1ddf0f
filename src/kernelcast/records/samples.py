"""Timed launches of a few work-groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Self

from kernelcast.records.contention import Contention
from kernelcast.records.errors import KernelRunError
from kernelcast.records.ndrange import GroupBox, NDRange

# Launches count as two sampling points if their sizes differ by this factor.
TWO_SIZES = 1.5

_FEWEST_TO_TELL = 3
_SLIGHTLY_FASTER = 1.05
_CLEARLY_FASTER = 1.08

PILOT_WINDOW = -1
"""Window index of launches that only serve to find the right sizes."""


class LaunchTime(float):
    """Seconds that a launch's work takes, with the time that passed meanwhile.

    Parameters
    ----------
    work_s, clock_s : float
        By the work of the device's threads, and by the clock.

    Examples
    --------
    >>> LaunchTime(0.5, 1.25), clock_of(LaunchTime(0.5, 1.25)), clock_of(0.5)
    (0.5, 1.25, None)
    """

    __slots__ = ("clock_s",)

    clock_s: float

    def __new__(cls, work_s: float, clock_s: float) -> Self:
        """Make a number of the work's seconds."""
        made = super().__new__(cls, work_s)
        made.clock_s = clock_s
        return made


def clock_of(duration_s: float) -> float | None:
    """Give the time by the clock; None where only one time of a launch is known."""
    return duration_s.clock_s if isinstance(duration_s, LaunchTime) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedLaunch:
    """One launch of a box of work-groups and how long it took.

    Parameters
    ----------
    box : GroupBox
        The work-groups that ran.
    window : int
        Index of the window (a place in the index space) the box belongs to, or `PILOT_WINDOW`.
    duration_s : float
        Time on the device, in seconds; on CPU devices that of its threads' work, where that is
        known.
    is_continuation : bool
        Whether it ran right behind the launch before it, and goes on where that one ended.
    weight : float
        Work of its work-groups over that of the launch's mean work-group, where the source tells
        how they differ.
    clock_s : float or None
        Time by the clock, in seconds; None where only one time is known.

    Raises
    ------
    KernelRunError
        If the duration is not positive: the timer failed.
    """

    box: GroupBox
    window: int
    duration_s: float
    is_continuation: bool = False
    weight: float = 1.0
    clock_s: float | None = None

    @property
    def mean_work_groups(self) -> float:
        """Its work, in work-groups of the launch's mean work."""
        return self.weight * self.box.work_group_count

    def __post_init__(self) -> None:
        if not self.duration_s > 0:
            msg = (
                f"a launch of {self.box.work_group_count} work-groups was timed at "
                f"{self.duration_s} s; the device's timer is not usable"
            )
            raise KernelRunError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRun:
    """All timed launches behind one estimate.

    Parameters
    ----------
    kernel_digest, device_id : str
        Whose samples these are.
    ndrange : NDRange
        The whole index space, local size chosen.
    launches : tuple of TimedLaunch
        In the order they ran; no work-group is in two of them.
    launch_overhead_s : float
        Time of a launch that does nothing, in seconds.
    is_even : bool
        Whether work-groups of different places were found to take about the same time.
    contention : Contention or None
        What other programs left to the device right after the samples; None where nothing was seen
        of any.
    """

    kernel_digest: str
    device_id: str
    ndrange: NDRange
    launches: tuple[TimedLaunch, ...]
    launch_overhead_s: float
    is_even: bool
    contention: Contention | None = None

    @property
    def sampling_s(self) -> float:
        """Device time spent on samples, in seconds."""
        return sum(launch.duration_s for launch in self.launches)

    @property
    def sampled_work_groups(self) -> int:
        """Work-groups that ran in all launches together."""
        return sum(launch.box.work_group_count for launch in self.launches)


def find_intercepts(launches: Sequence[TimedLaunch]) -> list[float]:
    """Draw a line through the shortest and the longest launch of each window.

    Returns
    -------
    list of float, in seconds
        What a launch costs beside its work-groups, one per window that has two sizes.
    """
    by_window: dict[int, list[TimedLaunch]] = {}
    for one in launches:
        by_window.setdefault(one.window, []).append(one)
    found = []
    for inside in by_window.values():
        first = min(inside, key=lambda one: one.mean_work_groups)
        last = max(inside, key=lambda one: one.mean_work_groups)
        n1, n2 = first.mean_work_groups, last.mean_work_groups
        if n2 >= TWO_SIZES * n1:
            found.append((first.duration_s * n2 - last.duration_s * n1) / (n2 - n1))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """A launch and the one right behind it, in time and in the index space.

    Parameters
    ----------
    lead, rest : TimedLaunch
        What ran first, and what went on where it had ended: with warm caches.
    """

    lead: TimedLaunch
    rest: TimedLaunch

    def warm_up(self, overhead_s: float) -> float:
        """Give the time per work-group of the first over that of the second.

        Parameters
        ----------
        overhead_s : float
            What a launch costs beside its work-groups, in seconds; it is subtracted from both.
        """
        rates = [
            max(one.duration_s - overhead_s, 0.05 * one.duration_s) / one.mean_work_groups
            for one in (self.lead, self.rest)
        ]
        return rates[0] / rates[1]


def find_continuations(launches: Sequence[TimedLaunch]) -> list[Continuation]:
    """Find launches that go on where another has just ended.

    Parameters
    ----------
    launches : sequence of TimedLaunch
        In the order they ran.

    Returns
    -------
    list of Continuation
        Each launch is in one of them at most.
    """
    return [
        Continuation(lead=before, rest=one)
        for before, one in pairwise(launches)
        if one.is_continuation and not before.is_continuation
    ]


def is_warming_up(continuations: Sequence[Continuation], overhead_s: float) -> bool:
    """Tell whether windows are faster in their second part than in their first, all over.

    Caches that fill, or data that earlier work-groups settle, make them so; noise does not, and
    uneven work does it in some places and the opposite in others.

    Parameters
    ----------
    continuations : sequence of Continuation
        Of several windows.
    overhead_s : float
        What a launch costs beside its work-groups, in seconds.
    """
    if len(continuations) < _FEWEST_TO_TELL:
        return False
    ratios = [one.warm_up(overhead_s) for one in continuations]
    # All of them: a disturbance hits one or two windows.
    return min(ratios) > _SLIGHTLY_FASTER and median(ratios) > _CLEARLY_FASTER


def join_continuations(launches: Sequence[TimedLaunch], overhead_s: float) -> list[TimedLaunch]:
    """Put the two parts of each window together, as if they had been one launch.

    Parameters
    ----------
    launches : sequence of TimedLaunch
        In the order they ran.
    overhead_s : float
        What a launch costs beside its work-groups, in seconds; one launch pays it once.

    Returns
    -------
    list of TimedLaunch
        Launches without a second part are given as they are.
    """
    joined: list[TimedLaunch] = []
    for one in launches:
        if one.is_continuation and joined:
            joined[-1] = _join(joined[-1], one, overhead_s)
        else:
            joined.append(one)
    return joined


def _join(lead: TimedLaunch, rest: TimedLaunch, overhead_s: float) -> TimedLaunch:
    shape = tuple(
        extent if first == second else extent + more
        for extent, more, first, second in zip(
            lead.box.shape, rest.box.shape, lead.box.start, rest.box.start, strict=True
        )
    )
    saved_s = min(overhead_s, 0.5 * rest.duration_s)
    return TimedLaunch(
        box=GroupBox(start=lead.box.start, shape=shape),
        window=lead.window,
        duration_s=lead.duration_s + rest.duration_s - saved_s,
        weight=(lead.mean_work_groups + rest.mean_work_groups)
        / (lead.box.work_group_count + rest.box.work_group_count),
        clock_s=None
        if lead.clock_s is None or rest.clock_s is None
        else lead.clock_s + rest.clock_s,
    )
