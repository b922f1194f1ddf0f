"""Timed launches of a few work-groups."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelcast.records.errors import KernelRunError
from kernelcast.records.ndrange import GroupBox, NDRange

# Launches count as two sampling points if their sizes differ by this factor.
TWO_SIZES = 1.5

PILOT_WINDOW = -1
"""Window index of launches that only serve to find the right sizes."""


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
        Time on the device, in seconds.

    Raises
    ------
    KernelRunError
        If the duration is not positive: the timer failed.
    """

    box: GroupBox
    window: int
    duration_s: float

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
    """

    kernel_digest: str
    device_id: str
    ndrange: NDRange
    launches: tuple[TimedLaunch, ...]
    launch_overhead_s: float
    is_even: bool

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

    Parameters
    ----------
    launches : sequence of TimedLaunch
        Launches of any windows.

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
        first = min(inside, key=lambda one: one.box.work_group_count)
        last = max(inside, key=lambda one: one.box.work_group_count)
        n1, n2 = first.box.work_group_count, last.box.work_group_count
        if n2 >= TWO_SIZES * n1:
            found.append((first.duration_s * n2 - last.duration_s * n1) / (n2 - n1))
    return found
