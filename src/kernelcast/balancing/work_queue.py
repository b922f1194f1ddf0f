"""The slabs that are still to be run, and from which end devices take them."""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from kernelcast.records.balance import Span


class WorkQueue:
    """Slabs nobody has been given yet.

    Examples
    --------
    >>> pool = WorkQueue(10)
    >>> pool.remove([(3, 5)])
    >>> pool.take(4.0, anchor=0.0), pool.weight
    ([(0, 3), (5, 6)], 4.0)
    """

    def __init__(self, count: int) -> None:
        self._is_free = np.ones(count, dtype=np.bool_)
        self._weights = np.ones(count)

    @property
    def weight(self) -> float:
        """Work that is left, in slabs of mean work."""
        return float(self._weights[self._is_free].sum())

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Which slabs are left."""
        return self._is_free.copy()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not self._is_free.any()

    def weigh(self, weights: npt.NDArray[np.float64]) -> None:
        """Say how much work each slab is, in slabs of mean work."""
        self._weights = weights

    def weight_of(self, spans: Iterable[Span]) -> float:
        """Give the work of some slabs."""
        return float(sum(self._weights[first:stop].sum() for first, stop in spans))

    def remove(self, spans: Iterable[Span]) -> None:
        """Take certain slabs out."""
        for first, stop in spans:
            self._is_free[first:stop] = False

    def put_back(self, slabs: npt.NDArray[np.bool_]) -> None:
        """Put slabs back that were not done after all."""
        self._is_free |= slabs

    def take(self, weight: float, *, anchor: float) -> list[Span]:
        """Take slabs of about a weight, at least one if there is any.

        Parameters
        ----------
        anchor : float
            From where: 0 is the first slab, from which on they are taken upwards, 1 the last,
            from which on downwards; in between, the nearest first.

        Returns
        -------
        list of (int, int)
            In ascending order.
        """
        free = np.flatnonzero(self._is_free)
        if not free.size:
            return []
        if anchor >= 1:
            order = free[::-1]
        elif anchor <= 0:
            order = free
        else:
            place = anchor * self._is_free.size
            order = np.concatenate([free[free >= place], free[free < place][::-1]])
        total = np.cumsum(self._weights[order])
        # The slab that the limit falls into is taken if more than half of it is wanted.
        chosen = int(np.searchsorted(total - 0.5 * self._weights[order], weight))
        taken = np.sort(order[: max(1, chosen)])
        self._is_free[taken] = False
        return spans_of(taken)


def spans_of(slabs: npt.NDArray[np.int64]) -> list[Span]:
    """Join ascending numbers of slabs that follow each other.

    Examples
    --------
    >>> spans_of(np.array([1, 2, 3, 7]))
    [(1, 4), (7, 8)]
    """
    if not slabs.size:
        return []
    breaks = np.flatnonzero(np.diff(slabs) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(slabs, breaks)]


def mark(spans: Iterable[Span], count: int) -> npt.NDArray[np.bool_]:
    """Give for each slab whether it is among some."""
    marked = np.zeros(count, dtype=np.bool_)
    for first, stop in spans:
        marked[first:stop] = True
    return marked


def weigh_slabs(
    samples: Sequence[Sequence[tuple[float, float]]], count: int
) -> npt.NDArray[np.float64]:
    """Estimate how work is spread over slabs from what devices have sampled.

    Parameters
    ----------
    samples : sequence of sequences of (float, float)
        For each device, places as shares of the index space and seconds per slab there.

    Returns
    -------
    ndarray of float64, shape (count,)
        Work of each slab, 1 on average.

    Notes
    -----
    Each device's times are divided by their mean; between places, straight lines; beyond them,
    the nearest place counts. Devices must have sampled all over the index space.

    Examples
    --------
    >>> weigh_slabs([[(0.25, 1.0), (0.75, 3.0)]], 2)
    array([0.5, 1.5])
    """
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


def count_fixed(shares: Sequence[float], count: int) -> dict[int, float]:
    """Give the slabs of each device where shares are fixed."""
    edges = [round(count * sum(shares[:place])) for place in range(len(shares) + 1)]
    return {place: float(edges[place + 1] - edges[place]) for place in range(len(shares))}


def cut(spans: Sequence[Span], share: float, *, from_end: bool) -> list[list[Span]]:
    """Cut slabs in two, the first part from the end at which the device begins.

    Examples
    --------
    >>> cut([(0, 4), (6, 12)], 0.6, from_end=False)
    [[(0, 4), (6, 8)], [(8, 12)]]
    """
    slabs = np.concatenate([np.arange(first, stop) for first, stop in spans])
    middle = round(share * slabs.size)
    if from_end:
        parts = [slabs[slabs.size - middle :], slabs[: slabs.size - middle]]
    else:
        parts = [slabs[:middle], slabs[middle:]]
    return [spans_of(part) for part in parts if part.size]
