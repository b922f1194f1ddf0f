"""Iterations that run, for many work-items at once: how loops multiply points of a kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kernelcast.expressions import Symbol, Value
from kernelcast.features.counting.trips import Loop, count_trips

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Multiples of these, modulo 1, fill a line and a square evenly without any period.
_GOLDEN, _PLASTIC = 0.6180339887498949, 0.7548776662466927


class OverBudgetError(Exception):
    """More iterations than may be enumerated; never leaves this package."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Places in the space of iterations, each for some lanes that run in step.

    Parameters
    ----------
    bindings : mapping of Symbol to int or ndarray of int64, shape (points, lanes or 1)
        Values of symbols.
    owners : ndarray of int64, shape (points,)
        To what a point belongs: a work-item, or a warp.
    weights : ndarray of float64, shape (points,)
        For how many iterations it stands.
    is_active : ndarray of bool, shape (points, lanes)
        Which lanes run this iteration.
    is_exact : bool
        Whether all trip counts are known and no iterations were left out.
    """

    bindings: Mapping[Symbol, Value]
    owners: IntArray
    weights: FloatArray
    is_active: BoolArray
    is_exact: bool = True

    @classmethod
    def start(cls, bindings: Mapping[Symbol, Value], is_active: BoolArray) -> "Points":
        """Give one point per owner: the entry of the kernel."""
        count = is_active.shape[0]
        return cls(
            bindings=bindings,
            owners=np.arange(count),
            weights=np.ones(count),
            is_active=is_active,
        )

    def take(self, index: IntArray) -> "Points":
        """Give some of the points, or some of them several times."""
        return replace(
            self,
            bindings={
                symbol: value[index] if isinstance(value, np.ndarray) else value
                for symbol, value in self.bindings.items()
            },
            owners=self.owners[index],
            weights=self.weights[index],
            is_active=self.is_active[index],
        )

    def keep(self, symbols: frozenset[Symbol]) -> "Points":
        """Give the points with the values of some symbols only: arrays are costly to copy."""
        kept = {one: value for one, value in self.bindings.items() if one in symbols}
        return replace(self, bindings=kept)


def run_loops(
    points: Points, loops: Sequence[Loop], wanted: frozenset[Symbol], budget: int
) -> Points:
    """Enumerate the iterations of loops around a place.

    Parameters
    ----------
    points : Points
        At the entry of the outermost loop.
    loops : sequence of Loop
        Outermost first.
    wanted : frozenset of Symbol
        What is to be evaluated at each iteration. A loop of which neither this nor an inner loop
        depends is not enumerated: its iterations become a weight.
    budget : int
        Most values that an array may hold. Beyond, iterations spread evenly stand for all.
    """
    try:
        return _run(points, loops, wanted, budget, is_sampled=False)
    except OverBudgetError:
        return _run(points, loops, wanted, budget, is_sampled=True)


def _run(
    points: Points, loops: Sequence[Loop], wanted: frozenset[Symbol], budget: int, *,
    is_sampled: bool,
) -> Points:  # fmt: skip
    for place, loop in enumerate(loops):
        inner = loops[place + 1 :]
        needed = wanted.union(*(one.symbols for one in inner))
        trips, is_exact = count_trips(loop, points.bindings, points.is_active.shape, budget)
        trips = np.where(points.is_active, trips, 0)
        points = replace(points, is_exact=points.is_exact and (is_exact or not trips.size))
        points = points.keep(needed)
        if loop.symbol in needed or not _is_uniform(trips, points.is_active):
            ahead = sum(one.symbol in needed for one in inner) + 1
            points = _enumerate(points, loop, trips, (budget, ahead if is_sampled else 0))
        else:
            points = _repeat(points, trips)
    return points


def _is_uniform(trips: IntArray, is_active: BoolArray) -> bool:
    """Tell whether the lanes of each point make equally many iterations."""
    if trips.shape[1] == 1:
        return True
    most = trips.max(axis=1, keepdims=True)
    return bool(np.all((trips == most) | ~is_active))


def _repeat(points: Points, trips: IntArray) -> Points:
    times = trips.max(axis=1)
    some = np.flatnonzero(times)
    kept = points if some.size == times.size else points.take(some)
    return replace(kept, weights=kept.weights * times[some])


def _enumerate(points: Points, loop: Loop, trips: IntArray, limit: tuple[int, int]) -> Points:
    most = trips.max(axis=1)
    chosen = _choose_counts(most, trips.shape, limit)
    index = np.repeat(np.arange(most.size), chosen)
    within = np.arange(index.size) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    iteration = _spread(within, index, most, chosen)
    inner = points.take(index)
    return replace(
        inner,
        bindings={**inner.bindings, loop.symbol: iteration[:, None]},
        weights=inner.weights * (most[index] / chosen[index]),
        is_active=inner.is_active & (iteration[:, None] < trips[index]),
        is_exact=points.is_exact and bool(np.all(chosen == most)),
    )


def _choose_counts(most: IntArray, shape: tuple[int, ...], limit: tuple[int, int]) -> IntArray:
    """Say how many iterations of each point to look at."""
    budget, loops_ahead = limit
    points, lanes = shape
    if not loops_ahead:
        if float(most.astype(np.float64).sum()) * lanes > budget:
            raise OverBudgetError
        return most
    room = max(1.0, budget / max(1, points * lanes)) ** (1 / loops_ahead)
    return np.minimum(most, max(1, int(room)))


def _spread(within: IntArray, index: IntArray, most: IntArray, chosen: IntArray) -> IntArray:
    """Place sampled iterations one to a stratum, without a period that loops could have too."""
    if np.array_equal(most, chosen):
        return within
    shift = (within * _GOLDEN + index * _PLASTIC) % 1.0
    placed = ((within + shift) * (most[index] / chosen[index])).astype(np.int64)
    is_whole = (chosen == most)[index]
    return np.where(is_whole, within, np.minimum(placed, most[index] - 1))
