"""Runs streams of accesses, given as NumPy arrays, through simulated caches."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from kernelcast.analytic.cpu.cache_simulator.engine import consume, write_back_all
from kernelcast.analytic.cpu.cache_simulator.hierarchy import CacheHierarchy, CacheRole
from kernelcast.analytic.cpu.cache_simulator.layout import (
    CLOCK,
    EMPTY,
    LOADS,
    TAG,
    IntArray,
    make_state,
)
from kernelcast.analytic.cpu.cache_simulator.traffic import LevelTraffic, SimulatedTraffic
from kernelcast.records.cache_volumes import MEMORY
from kernelcast.records.errors import InputError

Stream = Iterable[tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]]
"""Chunks of (addresses, whether each one stores, bytes of each one)."""


class Simulator:
    """Caches with what they hold.

    Parameters
    ----------
    hierarchy : CacheHierarchy
        The caches; they are empty at first.

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
        self._state = make_state(hierarchy)

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
        """Run accesses through the caches without looking whether they make sense.

        Parameters
        ----------
        addresses : ndarray of int64, shape (n,)
            First byte of each.
        kinds : ndarray of int64, shape (m, 2)
            Whether each writes, and its bytes; they repeat.
        """
        consume(self._state.table, self._state.lines, self._state.tasks, addresses, kinds)

    def reset_counts(self) -> None:
        """Count from 0 again; the caches keep what they hold."""
        self._state.table[:, LOADS:CLOCK] = 0

    def write_back(self) -> None:
        """Write all modified lines back to memory, as a flush does; the lines stay."""
        write_back_all(self._state.table, self._state.lines, self._state.tasks)

    @property
    def is_full(self) -> bool:
        """Whether every way has held a line; those that only collect stores do not matter.

        Lines that go back from a victim cache leave their ways to others, so that it is rarely
        full at any one time.
        """
        first = 0
        for level in self.hierarchy.levels:
            tags = self._state.lines[TAG, first : first + level.lines]
            if level.role is not CacheRole.WRITE_COMBINING and (tags == EMPTY).any():
                return False
            first += level.lines
        return True

    def traffic(self) -> SimulatedTraffic:
        """Give what was counted since the start or the last reset."""
        names = [level.name for level in self.hierarchy.levels]
        counts = self._state.table[:, LOADS:CLOCK]
        return SimulatedTraffic(
            levels=tuple(
                LevelTraffic(
                    name=name, loads=row[0], hits=row[1], misses=row[2], stores=row[3],
                    evicts=row[4], loaded_bytes=row[5], hit_bytes=row[6], missed_bytes=row[7],
                    stored_bytes=row[8], evicted_bytes=row[9],
                )
                for name, row in zip([*names, MEMORY], counts.tolist(), strict=True)
            )
        )  # fmt: skip

    def held_lines(self, name: str) -> frozenset[int]:
        """Give the addresses of the lines that a level holds.

        Raises
        ------
        InputError
            If there is no level of that name.
        """
        first = 0
        for level in self.hierarchy.levels:
            if level.name == name:
                tags = self._state.lines[TAG, first : first + level.lines]
                return frozenset((tags[tags >= 0] * level.line_bytes).tolist())
            first += level.lines
        msg = f"no cache {name}; there are {', '.join(x.name for x in self.hierarchy.levels)}"
        raise InputError(msg)


def simulate(hierarchy: CacheHierarchy, stream: Stream) -> SimulatedTraffic:
    """Run a stream through empty caches.

    Parameters
    ----------
    hierarchy : CacheHierarchy
        The caches.
    stream : iterable of (addresses, is_store, size_bytes)
        Chunks, see `Simulator.feed`; memory use is that of one chunk.

    Returns
    -------
    SimulatedTraffic

    Raises
    ------
    InputError
        If a chunk makes no sense.
    """
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
