"""Rows that are a power of two apart meet in few sets of caches, and of tables of pages."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd

import numpy as np

from kernelcast.analytic.cpu.opencl.addresses import IntArray, list_distinct

FEWEST_LINES = 8
"""Of a vector: with the next one's these are as many rows as
`kernelcast.expressions.row_strides` can tell to be a power of two apart, or not."""
_ROW_BYTES = 512
"""Rows that are no multiple of so much apart meet in an eighth of the sets of a cache, or more."""
_PAGE_BYTES = 4096
_TABLE_SETS, _TABLE_PAGES = 128, 2048
"""Of the second translation buffer: 128 sets of 12 to 24 pages on x86-64 cores since 2015."""


@dataclass(slots=True)
class Crowd:
    """What vectors that follow each other come back to, the mean of work-groups.

    Parameters
    ----------
    room : dict of int to float
        Lines that a cache of so many sets would have to hold beyond theirs, if it were filled
        evenly.
    pages : float
        Pages that the translation buffer would have to hold.
    walked : float
        Pages of each vector alone.
    """

    room: dict[int, float] = field(default_factory=dict)
    pages: float = 0.0
    walked: float = 0.0

    def add(
        self, vector: IntArray, both: IntArray, line_bytes: int, sets: Iterable[int], repeats: float
    ) -> None:
        """Add a buffer's different lines of a vector, and of it and the next one.

        Parameters
        ----------
        vector, both : ndarray of int64
            Sorted.
        repeats : float
            What each of them stands for.
        """
        if find_distance(both) * line_bytes % _ROW_BYTES:
            return
        for one in sets:
            self.room[one] = self.room.get(one, 0.0) + find_room(both, one, repeats)
        pages, own = (list_distinct(one // (_PAGE_BYTES // line_bytes)) for one in (both, vector))
        self.walked += own.size * repeats
        self.pages += pages.size * repeats + find_room(pages, _TABLE_SETS, repeats)

    def count_walks(self) -> float:
        """Count the pages that a vector's core has to look for in memory."""
        return self.walked * min(1.0, max(0.0, self.pages / _TABLE_PAGES - 1))


def find_distance(lines: IntArray) -> int:
    """Give the largest distance that all lines are multiples of apart; 1 where they are few."""
    return int(np.gcd.reduce(np.diff(lines))) if lines.size >= 2 * FEWEST_LINES else 1


def find_room(lines: IntArray, sets: int, repeats: float = 1.0) -> float:
    """Give the room beyond their own that lines take, in lines of a cache that is filled evenly.

    Examples
    --------
    >>> find_room(np.arange(64), sets=64), find_room(128 * np.arange(64), sets=64)
    (0.0, 3968.0)
    """
    count = lines.size * repeats
    used = min(count, sets // gcd(find_distance(lines), sets))
    return max(0.0, sets * (count / used - 1) - count)
