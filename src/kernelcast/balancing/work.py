"""The slabs that are still to be run, and how many of them a device is given next."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernelcast.records.balance import Span

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Slabs = npt.NDArray[np.intp]
"""Numbers of slabs, ascending."""


class WorkQueue:
    """Slabs that no device has been given yet."""

    def __init__(self, count: int, weights: FloatArray | None, *, is_even: bool) -> None:
        self._is_free = np.ones(count, dtype=np.bool_)
        self._weights = np.ones(count) if weights is None else weights
        self.is_even = is_even
        self.is_weighed = weights is not None

    @property
    def weight(self) -> float:
        return float(self._weights[self._is_free].sum())

    @property
    def is_empty(self) -> bool:
        return not self._is_free.any()

    def weigh(self, weights: FloatArray) -> None:
        self._weights, self.is_even = weights, False

    def weight_of(self, slabs: Slabs) -> float:
        return float(self._weights[slabs].sum())

    def put_back(self, slabs: BoolArray) -> None:
        self._is_free |= slabs

    def take(self, weight: float, *, anchor: float) -> Slabs:
        """Take slabs of about a weight: from the first one on (anchor 0), from the last one on
        downwards (1), or the nearest first."""
        free = np.flatnonzero(self._is_free)
        if anchor >= 1:
            order = free[::-1]
        else:
            place = anchor * self._is_free.size
            order = np.concatenate([free[free >= place], free[free < place][::-1]])
        total = np.cumsum(self._weights[order])
        # The slab that the limit falls into is taken if more than half of it is wanted.
        chosen = int(np.searchsorted(total - 0.5 * self._weights[order], weight))
        taken = np.sort(order[: max(1, chosen)])
        self._is_free[taken] = False
        return taken


def spans_of(slabs: Slabs) -> list[Span]:
    """Join ascending numbers of slabs that follow each other."""
    if not slabs.size:
        return []
    breaks = np.flatnonzero(np.diff(slabs) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(slabs, breaks)]


def cut(slabs: Slabs, share: float, *, from_end: bool) -> list[Slabs]:
    """Cut slabs in two, the first part from the end at which the device begins."""
    middle = round(share * slabs.size)
    parts = np.split(slabs, [slabs.size - middle if from_end else middle])
    return [part for part in (parts[::-1] if from_end else parts) if part.size]


def weigh_slabs(samples: Sequence[Sequence[tuple[float, float]]], count: int) -> FloatArray:
    """Estimate how work is spread over slabs from what devices have sampled."""
    points = [
        (place, seconds / (sum(s for _, s in one) / len(one)))
        for one in samples
        if one
        for place, seconds in one
    ]
    if not points:
        return np.ones(count)
    points.sort()
    places, work = (np.array(column) for column in zip(*points, strict=True))
    if places.size >= 3:
        # Each place with its neighbours: a single disturbed launch is no region of heavy work.
        padded = np.concatenate([work[:1], work, work[-1:]])
        work = np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0)
    middles = (np.arange(count) + 0.5) / count
    found = np.interp(middles, places, work)
    return np.asarray(found * (count / found.sum()), dtype=np.float64)
