"""Lines that a cache misses and evicts in a regime: what follows from which distances it keeps."""

from collections.abc import Collection

from kernelcast.analytic.cpu.layer_conditions.polynomial_chains import PolynomialNest
from kernelcast.analytic.cpu.layer_conditions.regimes import Regime

Lines = tuple[float, float, float]
"""Hits, misses and evictions per cache line of work."""

_Stored = tuple[float, tuple[tuple[int, bool], ...]]
"""Lines per cache line of work, and each access's distance and whether it is a store."""

_ENDLESS = -1
"""The place of no distance at all."""


class RegimeTraffic:
    """Counts lines by regimes.

    Parameters
    ----------
    nest : PolynomialNest
        Distances and chains.
    line_bytes : int
        Bytes of a cache line.
    """

    __slots__ = ("_stored", "_total", "_weights", "iterations")

    def __init__(self, nest: PolynomialNest, line_bytes: int) -> None:
        self.iterations = line_bytes / nest.work_bytes
        places = {distance: place for place, distance in enumerate(nest.slopes)}
        self._weights = tuple(slope / nest.work_bytes for slope in nest.slopes.values())
        self._total = sum(self._weights) + nest.endless_slope / nest.work_bytes
        self._stored: tuple[_Stored, ...] = tuple(
            (
                chain.stride / nest.work_bytes,
                tuple(
                    (_ENDLESS if distance is None else places[distance], is_store)
                    for distance, is_store in zip(chain.distances, chain.stores, strict=True)
                ),
            )
            for chain in nest.stored_chains
        )

    def count(self, regime: Regime) -> list[Lines]:
        """Give the lines of every cache, nearest first."""
        order, remembered = regime
        return [self._count_level(order, count) for count in remembered]

    def _count_level(self, order: tuple[int, ...], count: int) -> Lines:
        if count < 0:
            return self._total, 0.0, 0.0
        kept = order[:count]
        hits = 0.0
        for place in kept:
            hits += self._weights[place]
        evicts = 0.0
        for share, accesses in self._stored:
            evicts += share * _count_stays(accesses, kept)
        return hits, self._total - hits, evicts


def _count_stays(accesses: tuple[tuple[int, bool], ...], kept: Collection[int]) -> int:
    """Count how often a line of a chain is brought in, modified and thrown out again."""
    stays = 0
    is_counted = True
    for rank, (place, is_store) in enumerate(accesses):
        if place not in kept:
            is_counted = False
        elif rank == 0:
            is_counted = True  # it never left
        if is_store and not is_counted:
            stays += 1
            is_counted = True
    return stays
