"""Timed launches as arrays, and which of them belong to which sampling point."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.records.errors import InputError
from kernelcast.records.samples import PILOT_WINDOW, TWO_SIZES, TimedLaunch

FloatArray = npt.NDArray[np.float64]

# A window of four rows of work-groups in three parts: two rows, one, and one.
_LARGEST_PART = 2.0


@dataclass(frozen=True, slots=True)
class LaunchArrays:
    """Timed launches as arrays."""

    counts: FloatArray
    """Shape (n_launches,). Work of each, in work-groups of the mean work."""
    times: FloatArray
    """Shape (n_launches,). Seconds that each took."""
    windows: npt.NDArray[np.int64]
    """Shape (n_launches,). Window that each belongs to."""

    @property
    def is_long(self) -> npt.NDArray[np.bool_]:
        """Which launches belong to the second sampling point: those near the largest size.

        All parts of a window do, which differ in size only as rows of work-groups can be divided.
        """
        if self.is_one_window and self.counts.max() <= _LARGEST_PART * self.counts.min():
            return np.ones(len(self.counts), dtype=np.bool_)
        return np.asarray(self.counts * TWO_SIZES > self.counts.max())

    @property
    def is_one_window(self) -> bool:
        """Whether all ran one right behind the other."""
        return bool((self.windows == self.windows[0]).all())

    @property
    def is_short(self) -> npt.NDArray[np.bool_]:
        """Which belong to the first: those near the next largest size, or all if there is one."""
        others = ~self.is_long
        if not others.any():
            return self.is_long
        return np.asarray(others & (self.counts * TWO_SIZES > self.counts[others].max()))

    @property
    def has_two_sizes(self) -> bool:
        """Whether there are launches of two sampling points."""
        return not bool(self.is_long.all())

    def net_of(self, intercept_s: float) -> FloatArray:
        """Give what launches took beside what each paid once, in seconds; always positive."""
        return np.maximum(self.times - intercept_s, 0.05 * self.times)


def collect_windows(timed: Sequence[TimedLaunch]) -> LaunchArrays:
    """Gather the launches of windows; the pilot's last one where there are none."""
    if not timed:
        msg = "the sample run holds no launches; sample at least one window"
        raise InputError(msg)
    return gather_launches([one for one in timed if one.window != PILOT_WINDOW] or timed[-1:])


def gather_launches(timed: Sequence[TimedLaunch]) -> LaunchArrays:
    """Gather launches as they are."""
    return LaunchArrays(
        counts=np.array([one.mean_work_groups for one in timed]),
        times=np.array([one.duration_s for one in timed]),
        windows=np.array([one.window for one in timed]),
    )
