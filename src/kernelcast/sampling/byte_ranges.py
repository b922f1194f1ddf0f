"""Ranges of bytes that are there, and those that are not yet."""

from bisect import bisect_right
from collections.abc import Iterable


class Ranges:
    """Ranges of bytes, each from its first to the one behind its last; sorted and apart.

    Examples
    --------
    >>> known = Ranges()
    >>> known.add([(0, 10), (30, 40)])
    [(0, 10), (30, 40)]
    >>> known.add([(5, 35)])
    [(10, 30)]
    >>> known.list_all()
    [(0, 40)]
    """

    def __init__(self) -> None:
        self._known: list[tuple[int, int]] = []

    def list_all(self) -> list[tuple[int, int]]:
        """Give them all."""
        return self._known

    def add(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Add ranges; give the parts of them that were not there."""
        wanted = _merge(ranges)
        missing = [part for one in wanted for part in self._cut(one)]
        if missing:
            self._known = _merge([*self._known, *missing])
        return missing

    def _cut(self, one: tuple[int, int]) -> list[tuple[int, int]]:
        """Give the parts of a range that are not there."""
        (low, high), found = one, []
        # The last range that begins before this one may reach into it; thousands before do not.
        place = max(bisect_right(self._known, one) - 1, 0)
        while place < len(self._known) and self._known[place][0] < high:
            begin, end = self._known[place]
            place += 1
            if end <= low:
                continue
            if begin > low:
                found.append((low, begin))
            low = max(low, end)
        return [*found, (low, high)] if low < high else found


def _merge(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort ranges, and join those that touch."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found
