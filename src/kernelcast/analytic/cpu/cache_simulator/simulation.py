"""Runs streams of accesses, given as NumPy arrays, through simulated caches."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.cache_simulator.engine import (
    CLOCK,
    EMPTY,
    LOADS,
    TAG,
    IntArray,
    consume,
    make_state,
    write_back_all,
)
from kernelcast.analytic.cpu.cache_simulator.hierarchy import CacheHierarchy, CacheRole
from kernelcast.records.cache_volumes import MEMORY
from kernelcast.records.errors import InputError

Stream = Iterable[tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Chunks of (addresses, whether each one stores, bytes of each one)."""


@dataclass(frozen=True, slots=True)
class LevelTraffic:
    """Counts of one level; `MEMORY` behind the last.

    An access that crosses lines is a request for each. A store that brings its line in is a load
    (a miss) as well. Loads that miss a victim cache pass it by uncounted. Lines that the nearer
    level evicts are stores; evictions are modified lines, stores that are passed through, and all
    lines that go to a victim cache.
    """

    name: str
    loads: int
    hits: int
    misses: int
    stores: int
    evicts: int
    loaded_bytes: int
    hit_bytes: int
    missed_bytes: int
    stored_bytes: int
    evicted_bytes: int


@dataclass(frozen=True, slots=True)
class SimulatedTraffic:
    """Counts of a hierarchy: caches, nearest first, then memory."""

    levels: tuple[LevelTraffic, ...]

    def level(self, name: str) -> LevelTraffic:
        """Find a level; raises `KeyError` if there is none of that name."""
        return {one.name: one for one in self.levels}[name]

    @property
    def memory(self) -> LevelTraffic:
        """What reaches memory."""
        return self.levels[-1]


class Simulator:
    """Caches with what they hold; empty at first.

    Examples
    --------
    >>> from kernelcast.analytic.cpu.cache_simulator.hierarchy import CacheLevel
    >>> level = CacheLevel(name="L1", size_bytes=32768, ways=8)
    >>> simulator = Simulator(CacheHierarchy(levels=(level,)))
    >>> simulator.feed(np.arange(0, 32768, 8), is_store=False, size_bytes=8)
    >>> simulator.traffic().memory.loads
    512
    """

    def __init__(self, hierarchy: CacheHierarchy) -> None:
        self.hierarchy = hierarchy
        self._table, self._lines = make_state(hierarchy)
        self._tried = np.zeros(64, dtype=np.int64)

    def feed(
        self, addresses: npt.ArrayLike, *, is_store: npt.ArrayLike, size_bytes: npt.ArrayLike
    ) -> None:
        """Run accesses through the caches, in order.

        Parameters
        ----------
        addresses : array of int, shape (n,)
            First byte of each.
        is_store : bool or array of bool, shape (m,)
            Whether each one writes. It and the sizes repeat: a loop's accesses give one period.
        size_bytes : int or array of int, shape (m,)
            Bytes of each, at least 1.

        Raises
        ------
        InputError
            If the arrays are not whole numbers in one dimension, an address is negative, a size
            is below 1, or the lengths do not go into each other.
        """
        places = _read_integers("addresses", addresses)
        if places.size == 0:
            return
        stores = _read_integers("is_store", is_store)
        sizes = _read_integers("size_bytes", size_bytes)
        period = max(stores.size, sizes.size)
        if {stores.size, sizes.size} - {1, period} or places.size % period:
            msg = (
                f"{places.size} addresses, {stores.size} store flags, {sizes.size} sizes: give "
                "one flag and size for each address, or a period of them that repeats"
            )
            raise InputError(msg)
        if places.min() < 0 or sizes.min() < 1:
            msg = (
                f"smallest address {places.min()}, smallest access {sizes.min()} bytes; expected "
                "addresses from 0 and at least 1 byte"
            )
            raise InputError(msg)
        kinds = np.stack([np.resize(stores, period), np.resize(sizes, period)], axis=1)
        self.feed_checked(places, kinds)

    def feed_checked(self, addresses: IntArray, kinds: IntArray) -> None:
        """Run accesses through the caches without checks; `kinds` as `engine.consume` takes it."""
        consume(self._table, self._lines, self._tried, addresses, kinds)

    def reset_counts(self) -> None:
        """Count from 0 again; the caches keep what they hold."""
        self._table[:, LOADS:CLOCK] = 0

    def write_back(self) -> None:
        """Write all modified lines back to memory, as a flush does; the lines stay."""
        write_back_all(self._table, self._lines)

    @property
    def is_full(self) -> bool:
        """Whether every way has held a line; those that only collect stores do not matter.

        Lines that go back from a victim cache leave their ways to others, so that it is rarely
        full at any one time.
        """
        return not any(
            (tags == EMPTY).any()
            for level, tags in zip(self.hierarchy.levels, self._list_tags(), strict=True)
            if level.role is not CacheRole.WRITE_COMBINING
        )

    def traffic(self) -> SimulatedTraffic:
        """Count since the start or the last reset."""
        names = [*(level.name for level in self.hierarchy.levels), MEMORY]
        rows = self._table[:, LOADS:CLOCK].tolist()
        return SimulatedTraffic(
            tuple(LevelTraffic(name, *row) for name, row in zip(names, rows, strict=True))
        )

    def held_lines(self, name: str) -> frozenset[int]:
        """List the addresses of the lines that a level holds.

        Raises
        ------
        InputError
            If there is no level of that name.
        """
        for level, tags in zip(self.hierarchy.levels, self._list_tags(), strict=True):
            if level.name == name:
                return frozenset((tags[tags >= 0] * level.line_bytes).tolist())
        msg = f"no cache {name}; there are {', '.join(x.name for x in self.hierarchy.levels)}"
        raise InputError(msg)

    def _list_tags(self) -> list[IntArray]:
        return np.split(self._lines[TAG], self._table[1:-1, 0])


def simulate(hierarchy: CacheHierarchy, stream: Stream) -> SimulatedTraffic:
    """Run a stream of chunks, see `Simulator.feed`, through empty caches."""
    simulator = Simulator(hierarchy)
    for addresses, is_store, size_bytes in stream:
        simulator.feed(addresses, is_store=is_store, size_bytes=size_bytes)
    return simulator.traffic()


def _read_integers(name: str, given: npt.ArrayLike) -> IntArray:
    array = np.atleast_1d(np.asarray(given))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iub"):
        msg = f"{name}: {array.dtype} of shape {array.shape}; expected whole numbers in a row"
        raise InputError(msg)
    return np.ascontiguousarray(array, dtype=np.int64)
