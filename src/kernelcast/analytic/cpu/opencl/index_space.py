"""Values of all symbols for the work-items of a work-group."""

from dataclasses import dataclass
from math import prod

import numpy as np

from kernelcast.expressions import Symbol, SymbolKind, Value
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.ndrange import MAX_DIMENSIONS, NDRange

Place = tuple[int, int, int]
_PLACES = (0.2, 0.5, 0.8)
"""Where in the index space work-groups are looked at, as shares of each dimension."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """The grid of work-groups, always of three dimensions.

    Parameters
    ----------
    items, local, counts, offsets : tuple of int
        Work-items, local size, work-groups and first global id per dimension.
    """

    items: Place
    local: Place
    counts: Place
    offsets: Place

    @classmethod
    def of(cls, ndrange: NDRange) -> "Groups":
        """Widen an index space to three dimensions."""
        return cls(
            items=_widen(ndrange.global_size, 1),
            local=_widen(ndrange.known_local_size, 1),
            counts=_widen(ndrange.group_counts, 1),
            offsets=_widen(ndrange.global_offset, 0),
        )

    @property
    def count(self) -> int:
        """Work-groups of the launch."""
        return prod(self.counts)

    def choose(self) -> list[Place]:
        """Choose work-groups that have a neighbour before them in each dimension that has any."""
        chosen = []
        for share in _PLACES:
            x, y, z = (
                min(count - 1, max(1, int(share * count))) if count > 1 else 0
                for count in self.counts
            )
            chosen.append((x, y, z))
        return list(dict.fromkeys(chosen))

    def before(self, place: Place, axis: int) -> Place | None:
        """Give the neighbour before a work-group; None if the dimension has only one."""
        if self.counts[axis] < 2:
            return None
        x, y, z = (one - (at == axis) for at, one in enumerate(place))
        return x, y, z

    def bind(self, launch: ModelledLaunch, place: Place) -> dict[Symbol, Value]:
        """Give the values of all symbols but loops for the work-items of a work-group.

        Returns
        -------
        dict of Symbol to int or ndarray of int64, shape (work-items, 1)
        """
        sizes = [
            min(local, items - own * local)
            for local, items, own in zip(self.local, self.items, place, strict=True)
        ]
        rest = np.arange(prod(sizes), dtype=np.int64)[:, None]
        bound: dict[Symbol, Value] = {
            Symbol(SymbolKind.SCALAR, name): value for name, value in launch.scalars.items()
        }
        for axis in range(MAX_DIMENSIONS):
            local, rest = rest % sizes[axis], rest // sizes[axis]
            values: dict[SymbolKind, Value] = {
                SymbolKind.LOCAL_ID: local,
                SymbolKind.GROUP_ID: place[axis],
                SymbolKind.GLOBAL_ID: place[axis] * self.local[axis] + local + self.offsets[axis],
                SymbolKind.LOCAL_SIZE: sizes[axis],
                SymbolKind.GLOBAL_SIZE: self.items[axis],
                SymbolKind.GROUP_COUNT: self.counts[axis],
                SymbolKind.GLOBAL_OFFSET: self.offsets[axis],
            }
            bound |= {Symbol(kind, axis=axis): value for kind, value in values.items()}
        return bound


def _widen(sizes: tuple[int, ...], filler: int) -> Place:
    x, y, z = (*sizes, filler, filler)[:MAX_DIMENSIONS]
    return x, y, z
